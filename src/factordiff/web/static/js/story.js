// A story on the stage: the task, one panel for each run, and the sentence that its outcome allows.

import { COLOR_NAMES, GridView, MASK, SIDE, element } from "./grid.js";

const LETTERS = "ABCDEF";
const HOLD = 8; // steps of rest after an act, to read what came out

export function dot(place) {
  return element("span", { class: `dot x${place}`, "aria-hidden": true });
}

function picture(rows, label) {
  const view = new GridView(label, rows.length, rows[0].length);
  view.rows(rows);
  for (const cell of view.cells) cell.removeAttribute("tabindex"); // to be looked at, not walked through
  return view.root;
}

// The demonstrations, what is asked, and what is right.
export function drawTask(root, task) {
  const pair = (title, { input, output }, asked = false) => element("div", { class: `small-pair${asked ? " asked" : ""}`, role: "group", "aria-label": title },
    element("h3", {}, title),
    element("div", { class: "small-grids" }, picture(input, `${title}, input`), element("span", { class: "arrow", "aria-hidden": true }, "→"), picture(output, `${title}, ${asked ? "right answer" : "output"}`)));
  root.replaceChildren(...task.train.map((one, number) => pair(`Shown ${number + 1}`, one)), pair("Asked, and what is right", task.test[0], true));
}

class Panel {
  constructor(label, run, truth, fixed, onLook) {
    Object.assign(this, { label, run, truth, fixed: new Set(fixed ? [fixed[0] * SIDE + fixed[1]] : []) });
    this.width = truth[0].length;
    const look = (row, column) => onLook(this, row * SIDE + column);
    this.grid = new GridView(`${label}: the answer`, truth.length, this.width, { look });
    this.verdict = element("p", { class: "chip" });
    this.map = run.routed && run.experts.length > 1 ? new GridView(`${label}: who decides each cell`, truth.length, this.width, { look }) : null;
    this.legend = element("p", { class: "legend" });
    this.map?.root.classList.add("letters");
    this.root = element("article", { class: `story-panel${this.map ? " wide" : ""}`, "aria-label": label },
      element("h3", {}, label),
      element("p", { class: "who" }, run.experts.length > 1 ? run.experts.map((name, place) => `${LETTERS[place]} ${name}`).join(" + ") : run.experts[0]),
      element("div", { class: "story-grids" }, this.grid.root, this.map ? this.map.root : null, this.verdict, this.map ? this.legend : null));
  }

  cellAt(index) { return Math.floor(index / this.width) * SIDE + (index % this.width); }

  show(at, active, looked) {
    const { run, truth } = this;
    const over = run.isOver(at);
    const x = run.canvas(at, {});
    const fresh = new Set(at && !over ? run.steps[Math.min(at, run.steps.length) - 1].revealed : []);
    const decided = run.decided(at);
    const counts = run.experts.map(() => 0);
    for (let index = 0; index < this.grid.cells.length; index++) {
      const cell = this.cellAt(index);
      const right = truth[Math.floor(cell / SIDE)][cell % SIDE];
      const value = this.fixed.has(cell) ? right : x[cell];
      const marks = [];
      if (fresh.has(cell)) marks.push("fresh");
      if (this.fixed.has(cell)) marks.push("pin");
      if (over && value !== right) marks.push("miss");
      if (looked === cell) marks.push("looked");
      const said = value === MASK ? "hidden" : COLOR_NAMES[value];
      this.grid.set(index, { value, classes: marks.join(" "), label: `${said}${this.fixed.has(cell) ? ", corrected" : ""}${marks.includes("miss") ? ", not the right one" : ""}` });
      const word = decided.get(cell);
      if (!this.map) continue;
      if (!word) { this.map.set(index, { label: this.fixed.has(cell) ? "given" : "nobody yet", classes: looked === cell ? "looked" : "" }); continue; }
      const expert = word.step.routing[word.place];
      counts[expert]++;
      this.map.set(index, { value: expert, kind: "x", text: LETTERS[expert], classes: looked === cell ? "looked" : "", label: `${LETTERS[expert]}, ${run.experts[expert]}` });
    }
    this.legend.replaceChildren(...run.experts.map((name, place) => element("span", {}, dot(place), `${LETTERS[place]}: ${counts[place]} ${counts[place] === 1 ? "cell" : "cells"}`)));
    this.root.classList.toggle("waiting", !active && !over);
    this.#judge(over);
  }

  #judge(over) {
    const { answer } = this.run;
    this.verdict.className = `chip${over ? (answer.right ? " right" : " wrong") : ""}`;
    if (!over) { this.verdict.textContent = ""; return; }
    const wrong = this.run.wrongCells(this.truth).length;
    const far = wrong ? `${wrong} ${wrong === 1 ? "cell" : "cells"} wrong` : `answers ${answer.grid.length} × ${answer.grid[0].length}`;
    this.verdict.textContent = answer.right ? "✓ right" : `✗ ${far}`;
  }
}

export class StoryView {
  // roots: {title, caption, task, panels}; told: what `tell` gives
  constructor(roots, { story, candidate, runs, outcome }, onLook) {
    Object.assign(this, { roots, story, runs, outcome });
    const truth = candidate.task.test[0].output;
    this.panels = runs.map((run, number) => new Panel(story.labels[number], run, truth, candidate.fixed[number], onLook));
    const lengths = story.acts.map((act, number) => Math.max(...act.map((place) => runs[place].steps.length)) + (number < story.acts.length - 1 ? HOLD : 0));
    this.starts = lengths.map((_, act) => lengths.slice(0, act).reduce((sum, length) => sum + length, 0));
    this.length = lengths.reduce((sum, length) => sum + length, 0);
    roots.title.textContent = story.title;
    drawTask(roots.task, candidate.task);
    roots.panels.replaceChildren(...this.panels.map((panel) => panel.root));
    roots.panels.dataset.runs = runs.length;
  }

  // The step of a run at a moment of the story.
  stepAt(number, at) {
    const act = this.story.acts.findIndex((places) => places.includes(number));
    return Math.max(0, at - this.starts[act]);
  }

  show(at, looked) {
    this.panels.forEach((panel, number) => {
      const act = this.story.acts.findIndex((places) => places.includes(number));
      panel.show(this.stepAt(number, at), at >= this.starts[act], looked);
    });
    this.#say(at);
  }

  // Only acts that are over may be spoken about.
  #say(at) {
    let ended = "";
    for (const act of this.story.acts) {
      if (!act.every((number) => this.runs[number].isOver(this.stepAt(number, at)))) break;
      ended += act.map((number) => this.outcome[number]).join("");
    }
    const plain = () => this.story.labels.slice(0, ended.length).map((label, number) => `${label}: ${ended[number] === "1" ? "right" : "not right"}`).join(" · ");
    const says = ended ? this.#counted(this.story.captions[ended] ?? `${plain()}.`) : this.story.intro;
    if (this.roots.caption.textContent !== says) this.roots.caption.textContent = says;
    this.roots.caption.dataset.outcome = ended;
  }

  // {wrong 0}: cells that run 0 has wrong; {empty 0}: those of them that should be empty; {colored 0}: that have another color.
  #counted(says) {
    return says.replace(/\{(wrong|empty|colored) (\d)\}/g, (_, kind, number) => {
      const { run, truth } = this.panels[number];
      const right = (cell) => truth[Math.floor(cell / SIDE)][cell % SIDE];
      const kinds = { wrong: () => true, empty: (cell) => right(cell) === 0, colored: (cell) => right(cell) !== 0 && run.answer.canvas[cell] !== 0 };
      return run.wrongCells(truth).filter(kinds[kind]).length;
    });
  }
}
