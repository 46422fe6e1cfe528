// How far a task of one's own is from what the experts know, in words and numbers.

import { element } from "./grid.js";

const bits = (number) => (number < 0.005 ? "less than 0.01" : number.toFixed(number < 10 ? 2 : 0));

export function sayFamiliarity(root, evidence, knownTasks) {
  root.hidden = !evidence;
  if (!evidence) return;
  if (evidence.explained === null) {
    root.className = "familiarity";
    root.replaceChildren(element("p", {}, `The experts know ${knownTasks} tasks. With one example it cannot be said whether this is like one of them; add another.`));
    return;
  }
  const verdict = evidence.explained
    ? "These examples look like something the experts know."
    : `No task that the experts know explains these examples: they know ${knownTasks}, and nothing else. Expect a wrong answer.`;
  const rows = evidence.experts.map((one) => element("li", {},
    `${one.expert}: ${bits(one.bits)} bits a cell to predict each example from the others (0: sure and right); on known tasks ${bits(one.known_median)}, and in nine of ten no more than ${bits(one.known_worst)}.`));
  root.className = `familiarity ${evidence.explained ? "near" : "far"}`;
  root.replaceChildren(element("p", {}, element("b", {}, verdict)), element("ul", {}, ...rows));
}
