// Where stories come from: solved by the server when they are asked for, or recorded beside the page.

import * as api from "./api.js";
import { Run } from "./run.js";

const recording = globalThis.FACTORDIFF_RECORDED ?? null;
export const recorded = recording !== null;
export const solves = !recorded || Boolean(recording.solves); // whether there is a workbench to go to
export const stories = async () => recording ?? api.stories();

const outcomeOf = (runs) => runs.map((run) => (run.answer.right ? 1 : 0)).join("");

async function played(candidate, signal, onStep) {
  return Promise.all(candidate.requests.map(async (request, number) => {
    const run = new Run(request.experts, request.method);
    if (candidate.events) candidate.events[number].forEach((event) => run.take(event));
    else await api.solve({ task: candidate.task, ...request }, (event) => { run.take(event); onStep(event); }, signal);
    return run;
  }));
}

// The story on the first of its tasks on which it comes out as it is meant to; on the first of all otherwise.
// `onStep` hears every event of a run that is being solved.
export async function tell(story, signal, onStep) {
  let first = null;
  for (const candidate of story.candidates) {
    const runs = await played(candidate, signal, onStep);
    const told = { story, candidate, runs, outcome: outcomeOf(runs) };
    if (told.outcome === story.holds) return told;
    first ??= told;
  }
  return first;
}
