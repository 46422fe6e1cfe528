// What `api.js` asks the server, answered by the page itself: tasks from a file beside it, experts in this browser.

import { asked, hidden } from "./browser_experts.js";
import { decodeStep } from "./decoding.js";
import { MASK } from "./grid.js";
import { answerGrid } from "./shapes.js";

const told = globalThis.FACTORDIFF_SOLVER;

export const about = async () => told.about;
export const stories = async () => globalThis.FACTORDIFF_RECORDED;
export const tasks = async () => told.listing;

export async function task(id, source, number) {
  const found = told.tasks[id]?.[source]?.[number];
  if (!found) throw new Error(`The page has no ${source} test ${number + 1} of task ${id}.`);
  return structuredClone(found);
}

export const methods = async (experts) => ({
  routing: experts.length > 1 ? null : "takes two experts or more",
  single: experts.length === 1 ? null : "takes one expert",
});

// Between two passes the page draws, and hears whether anybody still wants the answer.
async function pause(signal) {
  await new Promise((resolve) => { setTimeout(resolve, 0); });
  signal?.throwIfAborted();
}

export const tell = () => { throw new Error("The page tells recorded stories only."); };

// The events of a run, as the server would send them.
export async function solve(request, onEvent, signal) {
  const { task: given, test = 0, experts } = request;
  const begun = performance.now();
  let x = hidden(request.given);
  onEvent({ event: "start", version: told.about.version, experts, masked: x.filter((value) => value === MASK).length });
  await pause(signal);
  const ask = await asked(experts, given, test);
  const temperatures = experts.map((name) => request.temperatures?.[name] ?? 1);
  let number = 0;
  for (; x.includes(MASK); number++) {
    const { after, step } = decodeStep(x, await ask(x), temperatures);
    x = after;
    onEvent({ event: "step", number, run: 0, ...step });
    await pause(signal);
  }
  const grid = answerGrid(x, given, test);
  const truth = given.test[test].output;
  const passes = number * experts.length;
  onEvent({
    event: "answer", version: told.about.version, canvas: x, grid,
    right: truth ? JSON.stringify(grid) === JSON.stringify(truth) : null,
    evidence: null, passes: { nominal: passes, executed: passes }, seconds: (performance.now() - begun) / 1000, trace: null,
  });
}
