// What everybody says about one cell: a bar per color, a margin, and who is followed.

import { COLOR_NAMES, MASK, SIDE, element } from "./grid.js";
import { sayMargin } from "./margins.js";

function voice(name, place, { best, log_doubt, probs }, at, compared, speaks) {
  const dot = place === null ? null : element("span", { class: `dot x${place}` });
  const bars = (probs?.[at] ?? []).map((thousandths, color) => {
    const bar = element("div", { class: `bar v${color}`, title: `${COLOR_NAMES[color]}: ${(thousandths / 10).toFixed(1)} %` });
    bar.style.height = `${thousandths / 10}%`;
    return bar;
  });
  const words = [`${COLOR_NAMES[best[at]]}${probs ? ` ${(probs[at][best[at]] / 10).toFixed(1)} %` : ""}`, sayMargin(log_doubt[at])];
  if (compared !== null && Math.abs(compared - log_doubt[at]) > 0.02) words.push(`compared as ${sayMargin(compared).replace("margin ", "")}`);
  return element("div", { class: "voice" },
    element("div", { class: "voice-head" }, dot, name, speaks ? element("span", { class: "tag speaks" }, "decides") : null),
    bars.length ? element("div", { class: "bars", "aria-hidden": true }, ...bars) : null,
    bars.length ? element("div", { class: "bar-names", "aria-hidden": true }, ...bars.map((_, color) => element("span", {}, String(color)))) : null,
    element("p", {}, words.join(" · ")));
}

export function inspect(root, run, cell, index) {
  root.classList.toggle("empty", !run || cell === null || !run.steps.length);
  if (root.classList.contains("empty")) {
    root.replaceChildren(element("h3", {}, "Look at a cell"),
      element("p", { class: "hint" }, "Point at a cell of any map, or walk there with the arrow keys: every expert’s distribution appears here."));
    return;
  }
  const title = element("h3", {}, `Row ${Math.floor(cell / SIDE) + 1}, column ${(cell % SIDE) + 1}`);
  const word = run.lastWord(cell, Math.max(index, 1));
  if (!word) {
    root.replaceChildren(title, element("p", { class: "hint" }, "This cell was fixed before the first step; nobody was asked."));
    return;
  }
  const { step, at, place } = word;
  const done = step.revealed.includes(cell) && step.x[cell] !== MASK;
  const said = done ? `decided in step ${at}: ${COLOR_NAMES[step.x[cell]]}` : `still hidden after step ${at}`;
  const parts = step.experts.map((one, number) => {
    const expert = run.placeOf(step, number);
    return voice(run.experts[expert], expert, one, place, step.compared?.[number][place] ?? null, step.routing?.[place] === number);
  });
  if (!step.routing && step.experts.length > 1) parts.push(voice("together", null, step.composed, place, null, true));
  root.replaceChildren(title, element("p", { class: "hint" }, said), ...parts);
}
