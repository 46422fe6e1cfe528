// The task: pairs of grids that can be painted, resized, added and removed.

import { COLOR_NAMES, GridView, SIDE, element } from "./grid.js";

export class Brush {
  constructor(root) {
    this.color = 2;
    this.swatches = COLOR_NAMES.map((name, color) =>
      element("button", {
        type: "button", class: `swatch v${color}`, role: "radio", "aria-label": `${color}: ${name}`, title: `${color}: ${name}`,
        onclick: () => this.take(color),
        onkeydown: (event) => {
          const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          if (!move) return;
          event.preventDefault();
          event.stopPropagation();
          this.take((this.color + move + 10) % 10);
          this.swatches[this.color].focus();
        },
      }, String(color)));
    root.replaceChildren(...this.swatches);
    this.take(this.color);
  }

  take(color) {
    this.color = color;
    this.swatches.forEach((swatch, index) => {
      swatch.setAttribute("aria-checked", index === color);
      swatch.tabIndex = index === color ? 0 : -1;
    });
  }
}

export class TaskEditor {
  constructor(root, brush, limits, onChange) {
    Object.assign(this, { root, brush, limits, onChange });
    this.adder = document.getElementById("add-pair");
    this.adder.addEventListener("click", () => this.#add());
  }

  show(state) {
    this.state = state;
    const { train, test } = state.task.content;
    const cards = train.map((pair, number) => this.#pair("train", pair, number));
    cards.push(...test.map((pair, number) => this.#pair("test", pair, number)));
    this.adder.disabled = train.length >= this.limits.demonstrations;
    this.root.replaceChildren(...cards);
  }

  #changed(redraw = true) {
    this.state.edited = true;
    if (redraw) this.show(this.state);
    this.onChange();
  }

  #add() {
    const { train } = this.state.task.content;
    const last = train.at(-1);
    const blank = (rows) => rows.map((row) => row.map(() => 0));
    train.push({ input: blank(last.input), output: blank(last.output) });
    this.#changed();
    this.root.querySelectorAll(".pair:not(.asked)")[train.length - 1].querySelector(".cell").focus();
  }

  #pair(key, pair, number) {
    const asked = key === "test";
    const chosen = asked && number === this.state.test;
    const title = asked ? (this.state.task.content.test.length > 1 ? `Asked ${number + 1}` : "Asked") : `Example ${number + 1}`;
    const head = element("div", { class: "pair-head" }, title);
    if (asked && this.state.task.content.test.length > 1) {
      head.append(element("button", {
        type: "button", class: "quiet", disabled: chosen,
        onclick: () => { this.state.test = number; this.show(this.state); this.onChange(); },
      }, chosen ? "solved here" : "Solve this one"));
    }
    if (!asked && this.state.task.content.train.length > 1) {
      head.append(element("button", {
        type: "button", class: "quiet", "aria-label": `Remove pair ${number + 1}`, title: "Remove this pair",
        onclick: () => { this.state.task.content.train.splice(number, 1); this.#changed(); },
      }, "×"));
    }
    const right = pair.output
      ? this.#sized(pair, "output", `${title}, ${asked ? "right answer" : "output"}`)
      : element("div", { class: "unknown", "aria-label": "The answer is not known" }, "?");
    if (asked && pair.output) {
      head.append(element("button", {
        type: "button", class: "quiet", title: "Forget the right answer",
        onclick: () => { delete pair.output; this.#changed(); },
      }, "forget answer"));
    }
    return element("div", { class: `pair${asked ? " asked" : ""}`, role: "group", "aria-label": title },
      head,
      element("div", { class: "pair-grids" },
        this.#sized(pair, "input", `${title}, input`), element("span", { class: "arrow", "aria-hidden": true }, "→"), right));
  }

  #sized(pair, side, label) {
    const rows = pair[side];
    const view = new GridView(label, rows.length, rows[0].length, {
      paint: (row, column, color) => {
        rows[row][column] = color ?? this.brush.color;
        view.set(row * rows[0].length + column, { value: rows[row][column] });
        this.#changed(false);
      },
    });
    view.rows(rows);
    const holder = element("div", { class: "sized" }, view.root);
    holder.style.setProperty("--columns", rows[0].length);
    const size = (name, value, resize) => element("input", {
      type: "number", min: 1, max: SIDE, value, "aria-label": `${label}: ${name}`,
      onchange: (event) => {
        const wanted = Math.min(Math.max(Math.round(Number(event.target.value)) || 1, 1), SIDE);
        pair[side] = resize(wanted);
        this.#changed();
      },
    });
    holder.append(element("div", { class: "size" },
      size("rows", rows.length, (height) => Array.from({ length: height }, (_, row) => rows[row] ?? rows[0].map(() => 0))), "×",
      size("columns", rows[0].length, (width) => rows.map((row) => Array.from({ length: width }, (_, column) => row[column] ?? 0)))));
    return holder;
  }
}

export function blankTask() {
  const blank = () => Array.from({ length: 3 }, () => [0, 0, 0]);
  return { train: [{ input: blank(), output: blank() }, { input: blank(), output: blank() }], test: [{ input: blank() }] };
}
