// A text that is written in one place and marked behind it: what is hidden, and what is not.

import { element } from "./grid.js";
import { carried, flagsOf, readable, stretchesOf } from "./marks.js";

export class TextEditor {
  // letters: those that the experts know; onChange(unknown): the text or what is hidden of it is another
  constructor(root, letters, longest, onChange) {
    Object.assign(this, { letters, longest, onChange, text: "", flags: [] });
    this.marks = element("div", { class: "text-marks", "aria-hidden": true });
    this.area = element("textarea", { "aria-label": "The text", spellcheck: "false", autocapitalize: "off", autocomplete: "off", rows: 1 });
    this.area.addEventListener("input", () => this.#edited());
    root.replaceChildren(this.marks, this.area);
  }

  get stretches() { return stretchesOf(this.flags); }
  get hidden() { return this.flags.filter(Boolean).length; }

  use(text, stretches) {
    const read = readable(text, this.letters);
    const kept = read.text.slice(0, this.longest);
    Object.assign(this, { text: kept, flags: flagsOf(kept, stretches) });
    this.area.value = kept;
    this.#draw();
    this.onChange({ unknown: read.unknown, cut: read.text.length - kept.length });
  }

  // Hide or show what is selected; all of it where nothing is.
  mark(hidden) {
    const { selectionStart: begin, selectionEnd: end } = this.area;
    this.flags.fill(hidden, begin, end);
    this.#changed();
    return end - begin;
  }

  markAll(hidden) {
    this.flags = this.flags.map((_, place) => hidden(place));
    this.#changed();
  }

  #edited() {
    const { value, selectionStart } = this.area;
    const before = readable(value.slice(0, selectionStart), this.letters).text.length;
    const read = readable(value, this.letters);
    const kept = read.text.slice(0, this.longest);
    if (kept !== value) {
      this.area.value = kept;
      this.area.setSelectionRange(before, before);
    }
    this.flags = carried(this.flags, this.text, kept);
    this.text = kept;
    this.#draw();
    this.onChange({ unknown: read.unknown, cut: read.text.length - kept.length });
  }

  #changed() {
    this.#draw();
    this.onChange({ unknown: 0, cut: 0 });
  }

  #draw() {
    const parts = [];
    let at = 0;
    for (const [begin, end] of this.stretches) {
      parts.push(this.text.slice(at, begin), element("mark", {}, this.text.slice(begin, end)));
      at = end;
    }
    this.marks.replaceChildren(...parts, `${this.text.slice(at)}\u200b`); // a last line that is empty has a height too
  }
}
