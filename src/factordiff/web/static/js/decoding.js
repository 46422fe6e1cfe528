// One step of routing with the `fast` reveal rule, from what the experts say: the library's loop at temperature 0.

import { MASK } from "./grid.js";

const COLORS = 10;
const SUREST = -99; // the log-doubt written for a point mass
const ALL_RIGHT = Math.log(0.99); // how probably all cells of a step are right: `fast` in factordiff.sampling.rules

const logSumExp = (values) => {
  const top = Math.max(...values);
  return top === -Infinity ? top : top + Math.log(values.reduce((sum, value) => sum + Math.exp(value - top), 0));
};

export const logSoftmax = (logits) => {
  const total = logSumExp(logits);
  return logits.map((value) => value - total);
};

// log(1 - margin) = log(2 p2 + p3 + ...), which does not round to nothing where a network is sure.
export function logDoubt(logProbs) {
  const sorted = [...logProbs].sort((one, other) => other - one);
  return logSumExp([sorted[1], ...sorted.slice(1)]) - logSumExp(sorted);
}

const bestOf = (logProbs) => logProbs.indexOf(Math.max(...logProbs));
const rounded = (doubt) => Math.round(Math.max(doubt, SUREST) * 100) / 100;

const voiceOf = (each) => ({
  best: each.map(bestOf),
  log_doubt: each.map((logProbs) => rounded(logDoubt(logProbs))),
  probs: each.map((logProbs) => logProbs.map((value) => Math.round(Math.exp(value) * 1000))),
});

// As many of the surest cells as are all right with enough probability, and the surest in any case.
function chosen(said, doubts) {
  const order = said.map((_, place) => place).sort((one, other) => doubts[one] - doubts[other] || one - other);
  const taken = [];
  let together = 0;
  for (const place of order) {
    const best = bestOf(said[place]);
    const wrong = said[place].reduce((sum, value, color) => (color === best ? sum : sum + Math.exp(value)), 0);
    together += Math.log1p(-Math.min(wrong, 1));
    if (taken.length && together < ALL_RIGHT) break;
    taken.push(place);
  }
  return taken;
}

// x: the canvas; logits: per expert, COLORS numbers for each cell of it; temperatures: per expert.
// The canvas after the step, and the step as the page shows it.
export function decodeStep(x, logits, temperatures) {
  const cells = x.flatMap((value, cell) => (value === MASK ? [cell] : []));
  const experts = logits.map((all) => cells.map((cell) => logSoftmax(Array.from(all.slice(cell * COLORS, (cell + 1) * COLORS)))));
  const compared = experts.map((each, place) => each.map((logProbs) =>
    logDoubt(logSoftmax(logProbs.map((value) => value / temperatures[place])))));
  // The least doubt decides, and of equals the first expert.
  const routing = cells.map((_, at) => compared.reduce((best, doubts, place) => (doubts[at] < compared[best][at] ? place : best), 0));
  const said = routing.map((place, at) => experts[place][at]);
  const taken = chosen(said, said.map(logDoubt));
  const after = [...x];
  for (const at of taken) after[cells[at]] = bestOf(said[at]);
  const step = {
    x: after, cells, revealed: taken.map((at) => cells[at]).sort((one, other) => one - other), composed: voiceOf(said),
    experts: experts.map(voiceOf),
    routing: logits.length > 1 ? routing : null,
    compared: logits.length > 1 ? compared.map((doubts) => doubts.map(rounded)) : null,
  };
  return { after, step };
}
