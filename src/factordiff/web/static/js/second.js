// Attempt 2 of one lane: how far it is, then the team's best other answer and how it came about.

import { COLOR_NAMES, GridView, element } from "./grid.js";

const FIRST = 0.2; // attempt 1 once more is about a fifth of the work
const LAST = 0.9; // one more run follows only where the first others agree with it

// The library counts rows and columns from 0, the page from 1.
const fromOne = (reason) => reason.replace(/row (\d+), column (\d+)/, (_, row, column) => `row ${Number(row) + 1}, column ${Number(column) + 1}`);

// The share of the work that is done, from what the runs say one after the other; it never goes back.
export class Share {
  constructor() { Object.assign(this, { run: 0, ended: false, share: 0 }); }

  take({ done, total }) {
    if (this.ended) this.run++;
    this.ended = done === total;
    const [from, to] = [[0, FIRST], [FIRST, LAST], [LAST, 1]][Math.min(this.run, 2)];
    this.share = Math.max(this.share, from + (to - from) * (done / total));
    return this.share;
  }
}

export class SecondPanel {
  constructor() {
    this.view = null; // its grid, once there is one
    this.root = element("div", { class: "panel second", hidden: true });
  }

  #fill(...parts) {
    this.root.replaceChildren(element("div", { class: "panel-title" }, "Attempt 2"), ...parts);
  }

  wait() {
    this.view = null;
    this.begun = performance.now();
    this.share = new Share();
    this.bar = element("progress", { max: 1, value: 0, "aria-label": "Attempt 2" });
    this.left = element("p", { class: "hint" }, "asking the team again");
    this.#fill(this.bar, this.left);
  }

  progress(event) {
    const share = this.share.take(event);
    const seconds = ((performance.now() - this.begun) / 1000) * (1 - share) / share;
    this.bar.value = share;
    this.left.textContent = seconds < 1 ? "asking the team again" : `about ${Math.round(seconds)} s left`;
  }

  fail(sentence) { this.#fill(element("p", { class: "hint" }, sentence)); }

  // second: the event that brought it; grid: attempt 1
  show(second, grid) {
    this.view = null;
    if (!second.grid) {
      this.#fill(element("p", { class: "hint" }, "The team has no other answer."));
      return;
    }
    const { grid: rows, reason, right } = second;
    this.view = new GridView("Attempt 2", rows.length, rows[0].length);
    const alike = rows.length === grid.length && rows[0].length === grid[0].length;
    let differing = 0;
    rows.forEach((row, r) => row.forEach((value, c) => {
      const other = alike && grid[r][c] !== value;
      differing += other;
      this.view.set(r * row.length + c, { value, classes: other ? "other" : "", label: `${COLOR_NAMES[value]}${other ? ", not as in the answer" : ""}` });
    }));
    this.view.root.style.width = `${rows[0].length * 10}%`; // cells as large as those of the other maps
    const verdict = right === null ? null : element("b", { class: right ? "right" : "wrong" }, right ? "right" : "not right");
    const far = alike ? `${differing} ${differing === 1 ? "cell differs" : "cells differ"}` : `${rows.length} × ${rows[0].length}`;
    this.#fill(this.view.root,
      element("p", { class: "verdict" }, verdict, verdict ? " · " : null, far),
      element("p", { class: "hint" }, `What the team answers ${fromOne(reason)}.`));
  }
}
