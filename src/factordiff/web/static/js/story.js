// A story on the stage: what is asked, one panel for each run, and the sentence that its outcome allows.

import { counted } from "./counts.js";
import { pictureOf } from "./kinds.js";
import { panelOf } from "./panel.js";
import { drawQuestion } from "./question.js";

const HOLD = 8; // steps of rest after an act, to read what came out

export class StoryView {
  // roots: {title, caption, task, panels}; told: what `tell` gives
  constructor(roots, { story, candidate, runs, outcome }, onLook) {
    Object.assign(this, { roots, story, runs, outcome, picture: pictureOf(candidate.picture) });
    this.panels = runs.map((run, number) => panelOf(story.labels[number], run, this.picture, candidate.fixed[number], onLook));
    const lengths = story.acts.map((act, number) => Math.max(...act.map((place) => runs[place].steps.length)) + (number < story.acts.length - 1 ? HOLD : 0));
    this.starts = lengths.map((_, act) => lengths.slice(0, act).reduce((sum, length) => sum + length, 0));
    this.length = lengths.reduce((sum, length) => sum + length, 0);
    roots.title.textContent = story.title;
    drawQuestion(roots.task, candidate.picture);
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
    const says = ended ? counted(this.story.captions[ended] ?? `${plain()}.`, this.panels) : this.story.intro;
    if (this.roots.caption.textContent !== says) this.roots.caption.textContent = says;
    this.roots.caption.dataset.outcome = ended;
  }
}
