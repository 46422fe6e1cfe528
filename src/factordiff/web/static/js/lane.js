// One run on the stage: the answer, who decided each cell, what every expert would say.

import { COLOR_NAMES, GridView, MASK, SIDE, element } from "./grid.js";
import { marginOf, sayMargin } from "./margins.js";
import { CELLS, Run, sharedBy } from "./run.js";
import { SecondPanel } from "./second.js";

const LETTERS = "ABCDEF";

export class Lane {
  // handlers: look(lane, cell), fix(cell, color | null), unfix(cell)
  constructor(number, settings, compared, handlers) {
    Object.assign(this, { number, settings: structuredClone(settings), handlers });
    this.request = null; // what was asked for the run that is shown
    this.run = new Run(this.settings.experts, this.settings.method);
    const look = (row, column) => handlers.look(this, row * SIDE + column);
    this.grid = new GridView("Answer, on the canvas of 10 by 10; paint to fix cells", SIDE, SIDE, {
      look, drag: false,
      paint: (row, column, color) => handlers.fix(row * SIDE + column, color),
      erase: (row, column) => handlers.unfix(row * SIDE + column),
    });
    this.map = new GridView("Who decides each cell", SIDE, SIDE, { look });
    this.map.root.classList.add("letters");
    this.voices = this.settings.experts.map((name) => new GridView(`What ${name} would say`, SIDE, SIDE, { look }));
    this.second = new SecondPanel();
    this.verdict = element("p", { class: "verdict" });
    this.mapTitle = element("span", {}, "Who decides");
    this.mapNote = element("p", { class: "hint" });
    this.legend = element("div", { class: "legend" });
    const title = `${compared ? `${"AB"[number]} · ` : ""}${this.settings.method}`;
    this.root = element("article", { class: "lane", "aria-label": `${title}: ${this.settings.experts.join(", ")}` },
      element("div", { class: "lane-head" }, element("h3", {}, title), this.verdict),
      element("div", { class: "panels" },
        element("div", { class: "panel" }, element("div", { class: "panel-title" }, "Answer ", element("small", {}, "paint a cell to fix it")), this.grid.root),
        element("div", { class: "maps" },
          element("div", { class: "panel" }, element("div", { class: "panel-title" }, this.mapTitle), this.map.root, this.legend, this.mapNote),
          ...this.voices.map((view, place) =>
          element("div", { class: "panel" },
            element("div", { class: "panel-title" }, element("span", { class: `dot x${place}` }), this.settings.experts[place], " ", element("small", {}, "says")),
            view.root)),
          element("p", { class: "hint voices-note" }, "What each expert says: the fainter, the less sure it is."),
          this.second.root)));
  }

  get steps() { return this.run.steps; }
  get answer() { return this.run.answer; }

  // A run that is known already, and what was asked for it.
  use(run, request) {
    Object.assign(this, { run, request });
    if (run.second) this.second.show(run.second, run.answer.grid);
  }

  take(event) { this.run.take(event); }

  takeSecond(event) {
    if (event.event === "progress") this.second.progress(event);
    if (event.event !== "second") return;
    this.run.second = event;
    this.second.show(event, this.answer.grid);
  }

  // twice: whether attempt 2 is to be seen
  show(index, given, truth, looked, twice) {
    const at = Math.min(index, this.steps.length);
    const step = at ? this.steps[at - 1] : null;
    const final = this.run.isOver(at);
    const x = this.run.canvas(at, given);
    const shape = final ? [this.answer.grid.length, this.answer.grid[0].length] : null;
    this.second.root.hidden = !(final && twice);
    const fresh = new Set(step && !final ? step.revealed : []);
    const decided = this.run.decided(at);
    for (let cell = 0; cell < CELLS; cell++) {
      const row = Math.floor(cell / SIDE);
      const column = cell % SIDE;
      const marks = [];
      if (fresh.has(cell)) marks.push("fresh");
      if (given[cell] != null) marks.push("pin");
      if (shape && (row >= shape[0] || column >= shape[1])) marks.push("outside");
      const value = given[cell] ?? x[cell]; // a fixed cell shows its color at once
      if (final && truth && !marks.includes("outside") && truth[row]?.[column] !== value) marks.push("miss");
      if (looked === cell) marks.push("looked");
      this.grid.set(cell, { value, classes: marks.join(" "), label: `${value === MASK ? "hidden" : COLOR_NAMES[value]}${given[cell] != null ? ", fixed" : ""}${marks.includes("miss") ? ", not the right one" : ""}` });
      this.#showMap(cell, step, decided.get(cell), looked);
      this.#showVoices(cell, step, decided.get(cell), x, looked);
    }
    this.#words(at, final);
  }

  #showMap(cell, step, word, looked) {
    const here = step ? step.cells.indexOf(cell) : -1;
    const now = word ?? (here >= 0 ? { step, place: here } : null);
    const extra = looked === cell ? " looked" : "";
    if (!now) { this.map.set(cell, { classes: extra, label: "nobody yet" }); return; }
    if (now.step.routing) {
      const expert = now.step.routing[now.place];
      const share = sharedBy(now.step, now.place);
      const kind = word ? (share === null ? "" : "shared") : "faint";
      const counts = share === null ? "" : `, counts ${share} %`;
      this.map.set(cell, { value: expert, kind: "x", text: LETTERS[expert], sure: word && share !== null ? share / 100 : 0.3, classes: kind + extra, label: this.settings.experts[expert] + counts });
      return;
    }
    const sure = marginOf(now.step.composed.log_doubt[now.place]);
    this.map.set(cell, { value: this.run.placeOf(now.step, 0), kind: "x", text: "", sure: Math.max(sure * 0.9, 0.05), classes: "faint" + extra, label: `margin ${sure.toFixed(2)}` });
  }

  // What each expert says; of a decided cell, what it said when that was decided.
  #showVoices(cell, step, word, x, looked) {
    const extra = looked === cell ? " looked" : "";
    const asked = word?.step ?? step;
    const here = word?.place ?? (step ? step.cells.indexOf(cell) : -1);
    this.voices.forEach((view, place) => {
      const index = asked ? asked.experts.findIndex((_, number) => this.run.placeOf(asked, number) === place) : -1;
      if (here < 0 || index < 0) {
        view.set(cell, { value: x[cell], classes: `known${extra}`, label: x[cell] === MASK ? "not asked" : `${COLOR_NAMES[x[cell]]}, already there` });
        return;
      }
      const voice = asked.experts[index];
      view.set(cell, { value: voice.best[here], sure: marginOf(voice.log_doubt[here]), classes: `faint${extra}`, label: `${COLOR_NAMES[voice.best[here]]}, ${sayMargin(voice.log_doubt[here])}` });
    });
  }

  // How to read the map.
  #note(final) {
    if (!this.steps.length) return "";
    if (!this.run.routed) return "The stronger the color, the larger the margin: how far the likeliest color is ahead of the next.";
    return [final ? "" : "Faint: not decided yet.", this.run.weighted ? "Ringed: shared." : ""].join(" ").trim();
  }

  #words(at, final) {
    this.mapTitle.textContent = this.steps.length && !this.run.routed ? "How sure" : "Who decides";
    this.mapNote.textContent = this.#note(final);
    const counts = this.settings.experts.map(() => 0);
    for (const { step, place } of this.run.decided(at).values()) if (step.routing) counts[step.routing[place]]++;
    this.legend.replaceChildren(...(this.run.routed || !this.steps.length ? this.settings.experts.map((name, place) => {
      return element("span", {}, element("span", { class: `dot x${place}` }), `${LETTERS[place]} ${name}: ${counts[place]}`);
    }) : []));
    this.verdict.replaceChildren();
    if (this.run.error) this.verdict.append(element("b", { class: "wrong" }, this.run.error));
    else if (final) {
      const { right, passes, seconds } = this.answer;
      if (right !== null) this.verdict.append(element("b", { class: right ? "right" : "wrong" }, right ? "right" : "not right"), " · ");
      this.verdict.append(`${this.answer.grid.length} × ${this.answer.grid[0].length} · ${passes.executed} passes · ${seconds.toFixed(1)} s`);
    } else if (this.steps.length) this.verdict.append(`${this.run.total - (this.steps[Math.max(at, 1) - 1].x.filter((value) => value === MASK).length)} of ${this.run.total} cells`);
    else this.verdict.append("not solved yet");
  }
}
