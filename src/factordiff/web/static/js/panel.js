// One run of a story: its picture as far as it is filled, who decided, and whether it is right.

import { COLOR_NAMES, GridView, element } from "./grid.js";
import { sharedBy } from "./run.js";
import { TextView } from "./text.js";

const LETTERS = "ABCDEF";
const MOST = 75; // hundredths of the weight: who has less did not decide alone

class Panel {
  constructor(label, run, picture, fixed, onLook) {
    Object.assign(this, { label, run, picture, fixed: new Set(fixed ? [fixed[0] * picture.side + fixed[1]] : []) });
    this.look = (cell) => onLook(this, cell);
    this.verdict = element("p", { class: "chip" });
    this.legend = element("p", { class: "legend" });
  }

  frame(wide, ...views) {
    const { experts } = this.run;
    this.root = element("article", { class: `story-panel${wide ? " wide" : ""}`, "aria-label": this.label },
      element("h3", {}, this.label),
      element("p", { class: "who" }, experts.length > 1 ? experts.map((name, place) => `${LETTERS[place]} ${name}`).join(" + ") : experts[0]),
      element("div", { class: "story-grids" }, ...views, this.verdict, experts.length > 1 ? this.legend : null));
  }

  show(at, active, looked) {
    const { run } = this;
    const over = run.isOver(at);
    const fresh = new Set(at && !over ? run.steps[Math.min(at, run.steps.length) - 1].revealed : []);
    this.draw({ over, looked, fresh, x: run.canvas(at), decided: run.decided(at) });
    this.legend.hidden = !run.routed; // known once the run has begun
    this.root.classList.toggle("waiting", !active && !over);
    this.#judge(over);
  }

  // Below a picture of who decides: what it shows, and how much went to whom.
  say(entries) { this.legend.replaceChildren(element("b", {}, `Who decides each ${this.picture.unit}`), ...entries); }

  wrong() { return this.run.wrongCells(this.picture.right, this.picture.side); }

  #judge(over) {
    const { answer } = this.run;
    this.verdict.className = `chip${over ? (answer.right ? " right" : " wrong") : ""}`;
    if (!over) { this.verdict.textContent = ""; return; }
    const wrong = this.wrong().length;
    const far = () => (wrong ? `${this.picture.many(wrong)} wrong` : `answers ${answer.grid.length} × ${answer.grid[0].length}`);
    this.verdict.textContent = answer.right ? "✓ right" : `✗ ${far()}`;
  }
}

// A grid or a mosaic, and beside it the map of who decides.
class GridPanel extends Panel {
  constructor(...given) {
    super(...given);
    const { run, picture, label } = this;
    this.width = picture.right[0].length;
    const view = (title) => {
      const made = new GridView(`${label}: ${title}`, picture.right.length, this.width, { look: (row, column) => this.look(row * picture.side + column) });
      made.root.classList.add(picture.kind);
      return made;
    };
    this.grid = view("the answer");
    this.map = run.routed && run.experts.length > 1 ? view("who decides each cell") : null;
    this.map?.root.classList.add("letters");
    this.frame(this.map, this.grid.root, this.map?.root);
  }

  draw({ over, looked, fresh, x, decided }) {
    const { run, picture } = this;
    const counts = run.experts.map(() => 0);
    for (let index = 0; index < this.grid.cells.length; index++) {
      const cell = Math.floor(index / this.width) * picture.side + (index % this.width);
      const right = picture.rightAt(cell);
      const value = this.fixed.has(cell) ? right : x[cell];
      const marks = [];
      if (fresh.has(cell)) marks.push("fresh");
      if (this.fixed.has(cell)) marks.push("pin");
      if (over && value !== right) marks.push("miss");
      if (looked === cell) marks.push("looked");
      const said = value === picture.mask ? "hidden" : COLOR_NAMES[value];
      this.grid.set(index, { value, classes: marks.join(" "), label: `${said}${this.fixed.has(cell) ? ", corrected" : ""}${marks.includes("miss") ? ", not the right one" : ""}` });
      const word = decided.get(cell);
      if (!this.map) continue;
      if (!word) { this.map.set(index, { label: this.fixed.has(cell) ? "given" : "nobody yet", classes: looked === cell ? "looked" : "" }); continue; }
      const expert = word.step.routing[word.place];
      counts[expert]++;
      const share = sharedBy(word.step, word.place);
      const classes = [share !== null && "shared", looked === cell && "looked"].filter(Boolean).join(" ");
      const weight = share === null ? "" : `, counts ${share} %`;
      this.map.set(index, { value: expert, kind: "x", text: LETTERS[expert], sure: share === null ? null : share / 100, classes, label: `${LETTERS[expert]}, ${run.experts[expert]}${weight}` });
    }
    this.say(run.experts.map((_, place) => element("span", {},
      element("span", { class: `dot x${place}`, "aria-hidden": true }), `${LETTERS[place]}: ${picture.many(counts[place])}`)));
  }
}

// A text, in which who decided a character is how the character looks.
class TextPanel extends Panel {
  constructor(...given) {
    super(...given);
    this.text = new TextView(`${this.label}: the text`, this.picture, this.look);
    this.frame(false, this.text.root);
  }

  // The place of the expert that decided a character, or "shared" where none counted for most of it.
  #speaker({ step, place }) {
    if (this.run.experts.length < 2) return "alone";
    const weights = step.weights?.map((hundredths) => hundredths[place]);
    if (!weights && !step.routing) return "shared";
    const expert = weights ? weights.indexOf(Math.max(...weights)) : step.routing[place];
    return weights && weights[expert] < MOST ? "shared" : expert;
  }

  #by(speaker) {
    if (speaker === "alone") return "";
    return speaker === "shared" ? ", shared" : `, decided by ${LETTERS[speaker]}, ${this.run.experts[speaker]}`;
  }

  draw({ over, looked, fresh, x, decided }) {
    const { run, picture } = this;
    const counts = new Map([...run.experts.keys(), "shared"].map((speaker) => [speaker, 0]));
    for (const cell of this.text.characters.keys()) {
      const word = x[cell] === picture.mask ? null : decided.get(cell); // a window's last quarter is hidden again
      const speaker = word ? this.#speaker(word) : null;
      counts.set(speaker, (counts.get(speaker) ?? 0) + 1);
      const miss = over && x[cell] !== picture.rightAt(cell);
      const classes = [word ? `by-${speaker}` : "hidden-cell", fresh.has(cell) && "fresh", miss && "miss", looked === cell && "looked"];
      const said = word ? `${picture.name(x[cell])}${this.#by(speaker)}` : "hidden";
      this.text.set(cell, {
        text: word ? (picture.letters[x[cell]] === "\n" ? "↵" : picture.letters[x[cell]]) : " ",
        classes: classes.filter(Boolean).join(" "),
        label: `${picture.where(cell)}: ${said}${miss ? `, right is ${picture.name(picture.rightAt(cell))}` : ""}`,
      });
    }
    const entry = (speaker, name) => element("span", {}, element("span", { class: `ch by-${speaker}`, "aria-hidden": true }, "a"), `${name}: ${picture.many(counts.get(speaker))}`);
    this.say([...run.experts.map((_, place) => entry(place, LETTERS[place])), entry("shared", "shared")]);
  }
}

export const panelOf = (label, run, picture, ...given) => new (picture.kind === "text" ? TextPanel : GridPanel)(label, run, picture, ...given);
