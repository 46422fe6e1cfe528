// Change its mind: a wrong answer, one corrected cell, and what changes with it.

import { COLOR_NAMES, SIDE, element } from "./grid.js";

const placeOf = (cell) => `row ${Math.floor(cell / SIDE) + 1}, column ${(cell % SIDE) + 1}`;
const cells = (number) => `${number} ${number === 1 ? "cell" : "cells"}`;

// root: where it speaks; correct(cell, color): fix the cell and solve again; undo(): take it back
export class Guide {
  constructor(root, correct, undo) {
    Object.assign(this, { root, correct, undo, before: null, wanted: null });
  }

  hide() { this.root.hidden = true; }

  forget() { Object.assign(this, { before: null, wanted: null }); this.hide(); }

  // A run is over: offer a correction, or say what the last one has changed.
  show(run, truth, given) {
    const wrong = run.wrongCells(truth);
    const fixed = Object.keys(given).map(Number);
    const parts = [];
    if (this.before && fixed.length) parts.push(element("p", {}, this.#changed(run, truth, fixed)));
    else if (wrong.length) parts.push(element("p", {}, element("b", {}, "Change its mind. "), `${cells(wrong.length)} of this answer ${wrong.length === 1 ? "is" : "are"} not right. Correct one of them, and the rest is drawn anew.`));
    const next = wrong.includes(this.wanted) ? this.wanted : wrong[0];
    const tools = element("div", { class: "guide-tools" });
    if (wrong.length) {
      const color = truth[Math.floor(next / SIDE)][next % SIDE];
      tools.append(element("button", { type: "button", id: "correct", onclick: () => { this.before = run; this.correct(next, color); } }, `Correct ${placeOf(next)}: ${COLOR_NAMES[color]}`));
    }
    if (this.before && fixed.length) tools.append(element("button", { type: "button", id: "take-back", class: "quiet", onclick: () => this.undo() }, "Take it back"));
    this.root.replaceChildren(...parts, tools);
    this.root.hidden = !parts.length;
  }

  #changed(run, truth, fixed) {
    let others = 0;
    let mended = 0;
    truth.forEach((row, r) => row.forEach((color, c) => {
      const cell = r * SIDE + c;
      if (fixed.includes(cell) || run.answer.canvas[cell] === this.before.answer.canvas[cell]) return;
      others++;
      if (run.answer.canvas[cell] === color) mended++;
    }));
    const end = run.answer.right ? "Now the answer is right." : "The answer is still not right.";
    return `${cells(fixed.length)} corrected, and ${others ? `${cells(others)} changed by themselves, ${mended} of them to what is right` : "nothing else changed"}. ${end}`;
  }
}
