// A preview of a pair, small enough that 120 of them are drawn at once.

import { element } from "./grid.js";

export function thumbnail({ input, output }) {
  const canvas = element("canvas", { width: 22 * 4, height: 10 * 4, "aria-hidden": true });
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const paint = (rows, left) => rows.forEach((row, r) => row.forEach((value, c) => {
    pen.fillStyle = style.getPropertyValue(`--c${value}`);
    const down = (10 - rows.length) * 2;
    const right = (10 - rows[0].length) * 2;
    pen.fillRect(left + right + c * 4, down + r * 4, 4, 4);
  }));
  paint(input, 0);
  if (output) paint(output, 48);
  return canvas;
}
