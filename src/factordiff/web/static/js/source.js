// Where stories come from: solved by the server when they are asked for, or recorded beside the page.

import * as api from "./api.js";
import { pictureOf } from "./kinds.js";
import { Run } from "./run.js";

const recording = globalThis.FACTORDIFF_RECORDED ?? null;
export const recorded = recording !== null;
export const solves = !recorded || Boolean(recording.solves); // whether there is a workbench to go to
export const stories = async () => recording ?? api.stories();

const outcomeOf = (runs) => runs.map((run) => (run.answer.right ? 1 : 0)).join("");

async function played(story, place, signal, onStep) {
  const { requests, picture, events } = story.candidates[place];
  return Promise.all(requests.map(async ({ experts, method }, number) => {
    const run = new Run(experts, method, pictureOf(picture).start);
    if (events) events[number].forEach((event) => run.take(event));
    else await api.tell({ story: story.name, candidate: place, run: number }, (event) => { run.take(event); onStep(event); }, signal);
    return run;
  }));
}

// The story on the first of its candidates on which it comes out as it is meant to; on the first of all otherwise.
// `onStep` hears every event of a run that is being solved.
export async function tell(story, signal, onStep) {
  let first = null;
  for (const [place, candidate] of story.candidates.entries()) {
    const runs = await played(story, place, signal, onStep);
    const told = { story, candidate, runs, outcome: outcomeOf(runs) };
    if (told.outcome === story.holds) return told;
    first ??= told;
  }
  return first;
}
