// What is known about one run: its steps so far, its answer, who decided which cell.

import { MASK, SIDE } from "./grid.js";

export const CELLS = SIDE * SIDE;

// How much who speaks for a cell counts there, in hundredths of what all count; null where it speaks alone.
export function sharedBy(step, place) {
  if (!step.weights || !step.routing) return null;
  const all = step.weights.map((ofExpert) => ofExpert[place]);
  const sum = all.reduce((one, other) => one + other, 0);
  const share = sum > 0 ? Math.round((100 * all[step.routing[place]]) / sum) : 100;
  return share < 99 ? share : null;
}

export class Run {
  // start: the canvas before the first step
  constructor(experts, method, start = Array(CELLS).fill(MASK)) {
    Object.assign(this, { experts, method, start, steps: [], answer: null, second: null, error: null, total: CELLS });
  }

  take(event) {
    if (event.event === "start") this.total = event.masked;
    if (event.event === "step") {
      this.steps.push(event);
      this.steps.sort((one, other) => one.number - other.number);
    }
    if (event.event === "answer") this.answer = event;
  }

  get routed() { return this.steps.some((step) => step.routing); }
  get weighted() { return this.steps.some((step) => step.weights && step.routing); }

  // A vote's runs ask one expert each; its place among the experts is the number of the run.
  placeOf(step, index) { return this.method === "vote" ? step.run : index; }

  isOver(index) { return Boolean(this.answer) && index >= this.steps.length; }

  // The canvas after step `index`; before the first one only what was given is there.
  canvas(index, given = {}) {
    if (this.isOver(index)) return this.answer.canvas;
    const at = Math.min(index, this.steps.length);
    return at ? this.steps[at - 1].x : this.start.map((value, cell) => given[cell] ?? value);
  }

  // The last step up to `index` that asked about the cell, and whether it decided it.
  lastWord(cell, index) {
    for (let at = Math.min(index, this.steps.length) - 1; at >= 0; at--) {
      const place = this.steps[at].cells.indexOf(cell);
      if (place >= 0) return { step: this.steps[at], at: at + 1, place };
    }
    return null;
  }

  // Who spoke for each cell, as far as decided by step `index`: cell -> {step, place}.
  decided(index) {
    const found = new Map();
    for (const step of this.steps.slice(0, index)) {
      for (const cell of step.revealed) found.set(cell, { step, place: step.cells.indexOf(cell) });
    }
    return found;
  }

  // The cells of the right grid that the answer has otherwise, in the order in which they were decided.
  wrongCells(truth, side = SIDE) {
    if (!this.answer || !truth) return [];
    const at = new Map();
    this.steps.forEach((step, number) => step.revealed.forEach((cell) => at.set(cell, number)));
    const wrong = [];
    truth.forEach((row, r) => row.forEach((color, c) => { if (this.answer.canvas[r * side + c] !== color) wrong.push(r * side + c); }));
    return wrong.sort((one, other) => (at.get(one) ?? -1) - (at.get(other) ?? -1));
  }
}
