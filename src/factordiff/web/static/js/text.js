// A text whose hidden characters can be looked at and walked through with the arrow keys.

import { element } from "./grid.js";

// The cells of each line, as far as what is right breaks them; the end of a line belongs to it.
export function linesOf({ right: [values], letters }) {
  const lines = [[]];
  values.forEach((value, cell) => {
    lines.at(-1).push(cell);
    if (letters[value] === "\n" && cell < values.length - 1) lines.push([]);
  });
  return lines;
}

// The cells of a line in stretches: those that are alike by `kindOf` and come one after another.
export function stretches(line, kindOf) {
  const found = [];
  for (const cell of line) {
    if (found.length && kindOf(cell) !== null && kindOf(found.at(-1)[0]) === kindOf(cell)) found.at(-1).push(cell);
    else found.push([cell]);
  }
  return found;
}

export class TextView {
  // look(cell): a hidden character is pointed at or walked to
  constructor(label, picture, look) {
    this.characters = new Map(); // by cell, those that were hidden
    this.lines = [];
    const { right: [values], letters, start, mask } = picture;
    const rows = linesOf(picture).map((line) => {
      this.lines.push(line.filter((cell) => start[cell] === mask));
      return element("div", { class: "text-row", role: "row" }, ...stretches(line, (cell) => (start[cell] === mask ? null : "given")).map((some) => {
        if (start[some[0]] === mask) return this.#hidden(some[0], line[0]);
        const text = some.map((cell) => letters[values[cell]]).join("").replace("\n", "");
        return element("span", { class: "given", role: "gridcell" }, text);
      }));
    });
    this.root = element("div", { class: "text", role: "grid", "aria-label": label }, ...rows);
    this.root.querySelector(".ch")?.setAttribute("tabindex", 0);
    const lookAt = ({ target }) => { const one = target.closest?.(".ch"); if (one) look(Number(one.dataset.cell)); };
    this.root.addEventListener("focusin", lookAt);
    this.root.addEventListener("pointerover", lookAt);
    this.root.addEventListener("keydown", (event) => this.#key(event));
  }

  #hidden(cell, first) {
    const made = element("span", { class: "ch", role: "gridcell", tabindex: -1, "data-cell": cell, "data-column": cell - first });
    this.characters.set(cell, made);
    return made;
  }

  // text: what stands there; classes: what it looks like; label: what is said about it
  set(cell, { text, classes, label }) {
    const one = this.characters.get(cell);
    if (one.className !== `ch ${classes}`) one.className = `ch ${classes}`;
    if (one.textContent !== text) one.textContent = text;
    one.setAttribute("aria-label", label);
  }

  #key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const here = event.target.closest?.(".ch");
    if (!here || !(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const [down, across] = moves[event.key];
    const there = down ? this.#beside(here, down) : this.#next(here, across);
    if (!there) return;
    here.setAttribute("tabindex", -1);
    there.setAttribute("tabindex", 0);
    there.focus();
  }

  #next(here, across) {
    const all = [...this.characters.values()];
    return all[all.indexOf(here) + across];
  }

  // The nearest hidden character of the next line that has one.
  #beside(here, down) {
    const far = (cell) => Math.abs(this.characters.get(cell).dataset.column - here.dataset.column);
    const at = this.lines.findIndex((line) => line.includes(Number(here.dataset.cell)));
    for (let line = at + down; this.lines[line]; line += down) {
      if (this.lines[line].length) return this.characters.get(this.lines[line].reduce((one, other) => (far(other) < far(one) ? other : one)));
    }
    return null;
  }
}
