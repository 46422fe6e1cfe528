// What a story's runs are asked, beside them: a task's demonstrations, or the text as it is; and small, on a card.

import { GridView, element } from "./grid.js";
import { pictureOf } from "./kinds.js";
import { linesOf, stretches } from "./text.js";
import { thumbnail } from "./thumbnail.js";

function grid(rows, label, kind) {
  const view = new GridView(label, rows.length, rows[0].length);
  view.root.classList.add(kind);
  view.rows(rows);
  for (const cell of view.cells) cell.removeAttribute("tabindex"); // to be looked at, not walked through
  return view.root;
}

// The demonstrations, what is asked, and what is right.
function drawTask({ task, kind }) {
  const pair = (title, { input, output }, asked = false) => element("div", { class: `small-pair${asked ? " asked" : ""}`, role: "group", "aria-label": title },
    element("h3", {}, title),
    element("div", { class: "small-grids" }, grid(input, `${title}, input`, kind), element("span", { class: "arrow", "aria-hidden": true }, "→"), grid(output, `${title}, ${asked ? "right answer" : "output"}`, kind)));
  return [element("p", { class: "hint" }, "The task: find the rule in the examples, and apply it."),
    ...task.train.map((one, number) => pair(`Example ${number + 1}`, one)), pair("Asked, and the right answer", task.test[0], true)];
}

// Everything that stands there; prose and what was hidden look different.
function drawText(data) {
  const picture = pictureOf(data);
  const { right: [values], letters, owners, start, mask } = picture;
  const look = (cell) => `${owners[cell] === 0 ? "prose" : "code"}${start[cell] === mask ? " was-hidden" : ""}`;
  const rows = linesOf(picture).map((line) => element("div", { class: "text-row" },
    ...stretches(line, look).map((some) => element("span", { class: look(some[0]) }, some.map((cell) => letters[values[cell]]).join("").replace("\n", "")))));
  return [element("div", { class: "small-pair", role: "group", "aria-label": "What it says" },
    element("h3", {}, "What it says"),
    element("p", { class: "hint" }, "Prose is slanted, code is not; what was hidden is underlined."),
    element("div", { class: "text" }, ...rows))];
}

export function drawQuestion(root, picture) {
  root.replaceChildren(...(picture.kind === "text" ? drawText(picture) : drawTask(picture)));
}

// A text as a card shows it: a stroke for each stretch of a line.
function strokes(data) {
  const canvas = element("canvas", { width: 88, height: 40, "aria-hidden": true });
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const { right: [values], letters, owners } = data;
  linesOf(data).forEach((line, row) => line.forEach((cell, column) => {
    if (letters[values[cell]].trim() === "") return;
    pen.fillStyle = style.getPropertyValue(`--e${owners[cell]}`);
    pen.fillRect(column * 2, row * 4 + 1, 2, 2);
  }));
  return canvas;
}

export const cardPicture = (picture) => (picture.kind === "text" ? strokes(picture) : thumbnail(picture.task.test[0]));
