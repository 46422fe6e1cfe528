// The kinds of pictures that stories are told about, and what is said differently about each.

import { COLOR_NAMES, MASK, SIDE } from "./grid.js";

// What every kind has: a canvas of cells, `side` to a row, and what is right in rows.
class Picture {
  constructor(data) {
    Object.assign(this, data);
    this.start = data.start ?? Array(data.side * data.side).fill(data.mask);
  }

  rightAt(cell) { return this.right[Math.floor(cell / this.side)]?.[cell % this.side]; }

  many(count) { return `${count} ${this.unit}${count === 1 ? "" : "s"}`; }
}

class Cells extends Picture {
  unit = "cell";
  which = "a cell of any map";
  stands = "color";

  name(value) { return COLOR_NAMES[value]; }
  short(value) { return String(value); }
  bar(value) { return `v${value}`; }
  where(cell) { return `Row ${Math.floor(cell / this.side) + 1}, column ${(cell % this.side) + 1}`; }

  // A share in thousandths for each of the ten colors; of a mosaic only the largest are known.
  shares({ probs, likeliest }, at) {
    if (probs) return probs[at].map((share, value) => [value, share]);
    if (!likeliest) return [];
    const known = new Map(likeliest[at]);
    return COLOR_NAMES.map((_, value) => [value, known.get(value) ?? 0]);
  }
}

const NAMES = { "\n": "end of line", " ": "space" };
const SIGNS = { "\n": "↵", " ": "␣" };

class Characters extends Picture {
  unit = "character";
  which = "a character that was hidden";
  stands = "character";

  name(value) { return NAMES[this.letters[value]] ?? `“${this.letters[value]}”`; }
  short(value) { return SIGNS[this.letters[value]] ?? this.letters[value]; }
  bar() { return "plain"; }
  shares({ likeliest }, at) { return likeliest[at]; }

  where(cell) {
    const before = this.right[0].slice(0, cell).map((value) => this.letters[value]);
    return `Line ${before.filter((letter) => letter === "\n").length + 1}, character ${cell - before.lastIndexOf("\n")}`;
  }
}

const KINDS = { grid: Cells, mosaic: Cells, text: Characters };

// The picture that a story's candidate spells.
export const pictureOf = (data) => new KINDS[data.kind](data);

export const GRID = pictureOf({ kind: "grid", side: SIDE, mask: MASK, right: [] }); // what the workbench shows
