// A grid of cells that can be looked at, walked through with the arrow keys and, if asked for, painted.

export const SIDE = 10;
export const MASK = 10;
export const COLOR_NAMES = ["black", "blue", "red", "green", "yellow", "grey", "magenta", "orange", "light blue", "maroon"];

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

let painting = null; // the grid on which the pointer went down
addEventListener("pointerup", () => { painting = null; });

export class GridView {
  // handlers: paint(row, column, color | null for the brush, event), erase(row, column), look(row, column)
  constructor(label, height, width, handlers = {}) {
    this.handlers = handlers;
    this.height = height;
    this.width = width;
    this.cells = [];
    this.root = element("div", { class: `grid${handlers.paint ? " editable" : ""}`, role: "grid", "aria-label": label });
    this.root.style.gridTemplateColumns = `repeat(${width}, 1fr)`;
    for (let row = 0; row < height; row++) {
      const line = element("div", { class: "grid-row", role: "row" });
      for (let column = 0; column < width; column++) {
        const cell = element("div", { class: "cell", role: "gridcell", tabindex: this.cells.length ? -1 : 0 }, element("span", { "aria-hidden": true }));
        cell.dataset.row = row;
        cell.dataset.column = column;
        this.cells.push(cell);
        line.append(cell);
      }
      this.root.append(line);
    }
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("focusin", (event) => this.#look(event));
    this.root.addEventListener("pointerover", (event) => {
      this.#look(event);
      if (painting === this && event.buttons) this.#paint(event, null);
    });
    this.root.addEventListener("pointerdown", (event) => {
      if (!handlers.paint || event.button) return;
      painting = handlers.drag === false ? null : this;
      this.#paint(event, null);
    });
  }

  // what: {value, mark: "faint" | "known" | ..., sure, text, classes}
  set(index, { value = null, kind = "v", text = null, classes = "", sure = null, label = null }) {
    const cell = this.cells[index];
    const shown = value === null || value === MASK ? "hidden-cell" : `${kind}${value}`;
    const name = `cell ${shown} ${classes}`.trim();
    if (cell.className !== name) cell.className = name;
    if (sure !== null) cell.style.setProperty("--sure", sure);
    const letter = text ?? (value === null || value === MASK ? "" : String(value));
    if (cell.firstChild.textContent !== letter) cell.firstChild.textContent = letter;
    const said = label ?? (value === null || value === MASK ? "hidden" : COLOR_NAMES[value]);
    cell.setAttribute("aria-label", `row ${Math.floor(index / this.width) + 1}, column ${(index % this.width) + 1}: ${said}`);
  }

  rows(rows) {
    rows.forEach((row, r) => row.forEach((value, c) => this.set(r * this.width + c, { value })));
  }

  #place(event) {
    const cell = event.target.closest?.(".cell");
    return cell && this.root.contains(cell) ? [Number(cell.dataset.row), Number(cell.dataset.column)] : null;
  }

  #look(event) {
    const place = this.#place(event);
    if (place) this.handlers.look?.(...place);
  }

  #paint(event, color) {
    const place = this.#place(event);
    if (place) this.handlers.paint?.(...place, color);
  }

  #key(event) {
    const place = this.#place(event);
    if (!place || event.ctrlKey || event.metaKey || event.altKey) return;
    const [row, column] = place;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in moves) {
      const [down, right] = moves[event.key];
      this.focus(Math.min(Math.max(row + down, 0), this.height - 1), Math.min(Math.max(column + right, 0), this.width - 1));
    } else if (/^[0-9]$/.test(event.key) && this.handlers.paint) this.#paint(event, Number(event.key));
    else if ((event.key === "Enter" || event.key === " ") && this.handlers.paint) this.#paint(event, null);
    else if ((event.key === "Delete" || event.key === "Backspace") && this.handlers.erase) this.handlers.erase(row, column);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focus(row, column) {
    this.root.querySelector('.cell[tabindex="0"]')?.setAttribute("tabindex", -1);
    const cell = this.cells[row * this.width + column];
    cell.setAttribute("tabindex", 0);
    cell.focus();
  }
}
