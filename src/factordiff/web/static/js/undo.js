// What was changed, so that it can be taken back: snapshots of the task and the fixed cells.

const MOST = 200;
let stroke = 0; // everything that one press of the pointer paints is one change
let pressed = false;
addEventListener("pointerdown", () => { stroke++; pressed = true; }, true);
addEventListener("pointerup", () => { pressed = false; }, true);

export class Undo {
  constructor() { this.clear(null); }

  clear(now) { Object.assign(this, { past: [], future: [], now: JSON.stringify(now), stroke: null }); }

  // The state has changed to this.
  note(state) {
    const text = JSON.stringify(state);
    if (text === this.now) return;
    if (!(pressed && this.stroke === stroke)) this.past.push(this.now);
    this.past = this.past.slice(-MOST);
    Object.assign(this, { now: text, future: [], stroke: pressed ? stroke : null });
  }

  undo() { return this.#move(this.past, this.future); }
  redo() { return this.#move(this.future, this.past); }

  #move(from, to) {
    if (!from.length) return null;
    to.push(this.now);
    this.now = from.pop();
    return JSON.parse(this.now);
  }
}
