// What everybody says about one cell: a bar per color, a margin, and who is followed.

import { element } from "./grid.js";
import { GRID } from "./kinds.js";
import { sayMargin } from "./margins.js";

const percent = (thousandths) => `${(thousandths / 10).toFixed(1)} %`;

// Whether what routing compares is another number than the margin that is shown.
const isOther = (compared, logDoubt) => compared !== null && Math.abs(compared - logDoubt) > 0.02;

// What is said beside a name: who decides, or how much each counts where several do.
function part(speaks, hundredths) {
  const counts = hundredths > 0 && hundredths < 99;
  if (!speaks && !counts) return null;
  return element("span", { class: `tag${speaks ? " speaks" : ""}` }, counts ? `counts ${hundredths} %` : "decides");
}

function voice(picture, name, place, said, at, compared, speaks, hundredths) {
  const dot = place === null ? null : element("span", { class: `dot x${place}` });
  const { best, log_doubt } = said;
  const shares = picture.shares(said, at);
  const bars = shares.map(([value, thousandths]) => {
    const bar = element("div", { class: `bar ${picture.bar(value)}`, title: `${picture.name(value)}: ${percent(thousandths)}` });
    bar.style.height = `${thousandths / 10}%`;
    return bar;
  });
  const share = shares.find(([value]) => value === best[at]);
  const words = [`${picture.name(best[at])}${share ? ` ${percent(share[1])}` : ""}`, sayMargin(log_doubt[at])];
  if (isOther(compared, log_doubt[at])) words.push(`compared as ${sayMargin(compared).replace("margin ", "")}`);
  return element("div", { class: "voice" },
    element("div", { class: "voice-head" }, dot, name, part(speaks, hundredths)),
    bars.length ? element("div", { class: "bars", "aria-hidden": true }, ...bars) : null,
    bars.length ? element("div", { class: "bar-names", "aria-hidden": true }, ...shares.map(([value]) => element("span", {}, picture.short(value)))) : null,
    element("p", {}, words.join(" · ")));
}

export function inspect(root, run, cell, index, picture = GRID) {
  root.classList.toggle("empty", !run || cell === null || !run.steps.length);
  if (root.classList.contains("empty")) {
    root.replaceChildren(element("h3", {}, `Look at a ${picture.unit}`),
      element("p", { class: "hint" }, `Point at ${picture.which}, tap it or walk there with the arrow keys: what every expert says there, and how sure it is.`));
    return;
  }
  const title = element("h3", {}, picture.where(cell));
  const word = run.lastWord(cell, Math.max(index, 1));
  if (!word) {
    root.replaceChildren(title, element("p", { class: "hint" }, `This ${picture.unit} was fixed before the first step; nobody was asked.`));
    return;
  }
  const { step, at, place } = word;
  const done = step.revealed.includes(cell) && step.x[cell] !== picture.mask;
  const said = done ? `decided in step ${at}: ${picture.name(step.x[cell])}` : `still hidden after step ${at}`;
  const parts = step.experts.map((one, number) => {
    const expert = run.placeOf(step, number);
    return voice(picture, run.experts[expert], expert, one, place, step.compared?.[number][place] ?? null, step.routing?.[place] === number, step.weights?.[number][place]);
  });
  if (!step.routing && step.experts.length > 1) parts.push(voice(picture, "together", null, step.composed, place, null, true));
  const others = step.experts.some((one, number) => isOther(step.compared?.[number][place] ?? null, one.log_doubt[place]));
  root.replaceChildren(title, element("p", { class: "hint" }, said), ...parts,
    element("p", { class: "hint note" }, `Margin: how far the likeliest ${picture.stands} is ahead of the next, from 0 to 1.${others ? " Compared is the margin at the expert’s temperature, over the cell’s factor." : ""}`));
}
