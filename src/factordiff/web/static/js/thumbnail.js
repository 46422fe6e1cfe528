// A preview of a pair, small enough that 120 of them are drawn at once.

import { element } from "./grid.js";

export function thumbnail({ input, output }) {
  const canvas = element("canvas", { width: 88, height: 40, "aria-hidden": true });
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const most = Math.max(...[input, output ?? input].flatMap((rows) => [rows.length, rows[0].length]));
  const cell = Math.min(Math.floor(40 / most), 8);
  const paint = (rows, left) => rows.forEach((row, r) => row.forEach((value, c) => {
    pen.fillStyle = style.getPropertyValue(`--c${value}`);
    const down = (40 - rows.length * cell) / 2;
    const right = (40 - rows[0].length * cell) / 2;
    pen.fillRect(left + right + c * cell, down + r * cell, cell, cell);
  }));
  paint(input, 0);
  if (output) paint(output, 48);
  return canvas;
}
