// The workbench: brings the parts together and keeps one state.

import * as api from "./api.js";
import { keepDraft, keptDraft } from "./draft.js";
import { Brush, TaskEditor, blankTask } from "./editor.js";
import { sayFamiliarity } from "./familiarity.js";
import { Gallery } from "./gallery.js";
import { Guide } from "./guide.js";
import { SIDE } from "./grid.js";
import { inspect } from "./inspector.js";
import { listenToKeys } from "./keyboard.js";
import { Lane } from "./lane.js";
import { copyLink } from "./link.js";
import { rememberedLooks, usePalette, useTheme } from "./looks.js";
import { Player } from "./player.js";
import { save, saveFilm, savePicture, saveTrace } from "./saving.js";
import { SettingsForm } from "./settings.js";
import { checkedState, freshState, fromLink, keptState, otherWay, readTask, requestOf, settingsOf } from "./state.js";
import { Undo } from "./undo.js";

const by = (id) => document.getElementById(id);
const FIRST_TASKS = ["c3e719e8", "0ca9ddb6", "23581191"]; // colorful ones; of the first, two specialists decide about half each

let state = null;
let lanes = [];
let looked = { lane: null, cell: null };
let running = null; // attempt 1 under way
let trying = null; // attempt 2 under way
let listing = [];
let brush, editor, forms, player, about, guide;
const undo = new Undo();
const REMEMBERED = 30;
const solved = new Map(); // request -> run, so that what was taken back is there at once

function complain(error) {
  by("alert").hidden = false;
  by("alert").querySelector("p").textContent = error.message ?? String(error);
}
function calm() { by("alert").hidden = true; }

// Run something that may fail; what fails becomes a sentence.
const guarded = (work) => async (...values) => {
  try {
    calm();
    return await work(...values);
  } catch (error) {
    complain(error);
  }
};

const truth = () => state.task.content.test[state.test]?.output ?? null;

function showStage(at = player.at) {
  for (const lane of lanes) lane.show(at, state.given, truth(), looked.cell, state.second);
  inspect(by("inspector"), looked.lane?.run ?? null, looked.cell, at);
  const fixed = Object.keys(state.given).length;
  by("unfix").hidden = !fixed;
  by("fixed-note").textContent = fixed ? `${fixed} ${fixed === 1 ? "cell" : "cells"} fixed` : "";
}

function newLanes() {
  const shown = state.compare ? [0, 1] : [0];
  lanes = shown.map((number) => new Lane(number, state.settings[number], state.compare, {
    look: (lane, cell) => {
      if (looked.lane === lane && looked.cell === cell) return;
      looked = { lane, cell };
      showStage();
    },
    fix: (cell, color) => {
      const wanted = color ?? brush.color;
      if (color === null && state.given[cell] === wanted) delete state.given[cell];
      else state.given[cell] = wanted;
      stale();
    },
    unfix: (cell) => { delete state.given[cell]; stale(); },
  }));
  looked = { lane: lanes[0], cell: looked.cell };
  by("lanes").replaceChildren(...lanes.map((lane) => lane.root));
}

function exportable(is) {
  for (const id of ["save-png", "save-gif", "save-trace"]) by(id).disabled = !is;
}

// What can be taken back, and what outlives a reload.
const changeable = () => ({ task: state.task, edited: state.edited, test: state.test, given: state.given });
function noted() {
  undo.note(changeable());
  by("undo").disabled = !undo.past.length;
  by("redo").disabled = !undo.future.length;
  keepDraft(state);
}

// Go back or forward; a run that was seen with that very request comes back with it.
function travel(to) {
  if (!to) return;
  abandon();
  Object.assign(state, to);
  by("undo").disabled = !undo.past.length;
  by("redo").disabled = !undo.future.length;
  keepDraft(state);
  showTask();
  newLanes();
  const runs = lanes.map((lane) => solved.get(keyOf(lane)));
  if (!runs.every(Boolean)) { clearStage(); by("status").textContent = "Changed. Solve to see what comes of it."; return; }
  lanes.forEach((lane, number) => lane.use(runs[number], askOf(lane)));
  player.reset(false);
  player.grow(Math.max(...runs.map((run) => run.steps.length)));
  player.go(player.length);
  ended();
  trySecond();
}

// The address described something else: a reload is to find what is here now.
const leaveAddress = () => history.replaceState(null, "", location.pathname);

// Something changed that the shown run does not know about.
function stale() {
  leaveAddress();
  noted();
  showStage();
  guide.hide();
  if (lanes.some((lane) => lane.steps.length) && !running) sayStatus();
}

// Another task or another set of lanes: nothing on the stage belongs to it.
function clearStage() {
  abandon();
  player.reset(false);
  newLanes();
  guide.hide();
  sayFamiliarity(by("familiarity"), null, 0);
  state.solved = false;
  exportable(false);
  by("status").textContent = "";
  showStage();
}

function showName() {
  by("task-name").textContent = state.task.id ? `${state.task.id}${state.edited ? " (edited)" : ""}` : "your own task";
}

function showTask() {
  const { id, source, number } = state.task;
  showName();
  by("instance-tools").hidden = !id;
  if (id) {
    const known = listing.find((one) => one.id === id);
    by("source").value = source;
    by("source").querySelector('[value="published"]').disabled = !known?.published;
    by("instance").value = number + 1;
    by("instance").max = source === "rearc" ? known?.instances ?? 1 : known?.published ?? 1;
  }
  editor.show(state);
}

function showSettings() {
  by("compare").checked = state.compare;
  by("second").checked = state.second;
  forms.forEach((form, lane) => {
    form.root.hidden = lane === 1 && !state.compare;
    form.show(state.settings[lane], state.compare);
  });
}

async function openTask(id, source, number) {
  const content = await api.task(id, source, number);
  Object.assign(state, { task: { id, source, number, content }, edited: false, test: 0, given: {} });
  guide.forget();
  showTask();
  clearStage();
  noted();
}

function useOwn(content) {
  leaveAddress();
  Object.assign(state, { task: { id: null, source: "own", number: 0, content }, edited: true, test: 0, given: {} });
  guide.forget();
  showTask();
  clearStage();
  noted();
}

// Tasks of one's own are compared with those that the experts know.
const askOf = (lane) => ({ ...requestOf(state, state.settings[lane.number], about), evidence: state.edited && lane.number === 0 });
const keyOf = (lane) => JSON.stringify(askOf(lane));

function stop() {
  running?.abort();
  trying?.abort();
}

// Stop, and forget about it: what is on the stage will be something else.
function abandon() {
  stop();
  running = trying = null;
  by("stop").hidden = true;
}

async function solve() {
  stop();
  const control = new AbortController();
  running = control;
  calm();
  newLanes();
  player.reset(true);
  exportable(false);
  guide.hide();
  by("stop").hidden = false;
  by("stage").focus({ preventScroll: true }); // so that the keys belong to the trajectory
  by("stage").scrollIntoView({ block: "start", behavior: calmly() });
  by("status").textContent = about.in_browser ? "Loading the experts…" : "Waiting for the worker…";
  showStage();
  let drawing = false;
  const follow = () => { // as often as the screen, not as often as the steps
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (running !== control) return;
      player.grow(Math.max(...lanes.map((lane) => lane.steps.length)));
      showStage();
    });
  };
  const work = lanes.map(async (lane) => {
    const request = askOf(lane);
    lane.request = structuredClone(request); // the task may be painted on before it is asked again
    try {
      await api.solve(request, (event) => {
        lane.take(event);
        if (event.event === (about.in_browser ? "step" : "start")) by("status").textContent = "Solving…";
        follow();
      }, control.signal);
      solved.set(JSON.stringify(request), lane.run);
      if (solved.size > REMEMBERED) solved.delete(solved.keys().next().value);
    } catch (error) {
      if (control.signal.aborted) return;
      lane.run.error = error.message;
      complain(error);
    }
  });
  await Promise.all(work);
  if (running !== control) return;
  running = null;
  by("stop").hidden = !trying;
  player.grow(Math.max(...lanes.map((lane) => lane.steps.length)));
  player.live = false;
  player.pause();
  ended(control.signal.aborted);
  if (!control.signal.aborted) trySecond();
}

// Attempt 2 of every lane that has attempt 1: after it, so that nobody waits longer for that one.
async function trySecond() {
  const asked = lanes;
  const missing = asked.filter((lane) => lane.answer && !lane.run.second);
  trying?.abort();
  if (!state.second || !missing.length) {
    showStage();
    if (asked.some((lane) => lane.answer) && !running) sayStatus();
    return;
  }
  const control = new AbortController();
  trying = control;
  by("stop").hidden = false;
  for (const lane of missing) lane.second.wait();
  showStage();
  sayStatus();
  await Promise.all(missing.map(async (lane) => {
    try {
      await api.solve({ ...lane.request, evidence: false, attempt: 2 }, (event) => lane.takeSecond(event), control.signal);
    } catch (error) {
      lane.second.fail(control.signal.aborted ? "Stopped." : error.message);
    }
  }));
  if (trying !== control) return;
  trying = null;
  by("stop").hidden = !running;
  if (asked === lanes) sayStatus();
}

// Every lane has its answer, or will not have one.
function ended(stopped = false) {
  state.solved = lanes.every((lane) => lane.answer);
  exportable(lanes.some((lane) => lane.steps.length));
  if (stopped) by("status").textContent = "Stopped.";
  else sayStatus();
  const { run } = lanes[0];
  sayFamiliarity(by("familiarity"), run.answer?.evidence ?? null, listing.length);
  if (run.answer && truth() && !state.compare) guide.show(run, truth(), state.given);
  showStage();
}

const calmly = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");

// What became of it; or that what is shown is not what would be asked now.
function sayStatus() {
  const changed = lanes.some((lane) => lane.request && keyOf(lane) !== JSON.stringify(lane.request));
  by("status").textContent = changed
    ? "Changed since this was solved. Solve again to see the difference."
    : lanes.map((lane) => summary(lane)).join("  ·  ");
}

function summary(lane) {
  if (!lane.answer) return `${lane.settings.method}: no answer`;
  const { right, grid } = lane.answer;
  const first = right === null ? `an answer of ${grid.length} × ${grid[0].length}` : right ? "right" : "not right";
  const second = trying && !lane.run.second ? ", attempt 2 follows" : state.second && !right && lane.run.second?.right ? ", attempt 2 right" : "";
  return `${lane.settings.method}: ${first}${second}`;
}

const linked = () => ({ ...keptState(state), step: state.solved ? player.at : null, palette: by("palette").value });

const truthAndInput = () => state.task.content.test[state.test];
const taskName = () => state.task.id ?? "own-task";

function wire() {
  const on = (id, kind, work) => by(id).addEventListener(kind, guarded(work));
  by("alert").querySelector("button").addEventListener("click", calm);
  on("palette", "change", (event) => usePalette(event.target.value));
  on("theme", "change", (event) => useTheme(event.target.value));
  on("copy-link", "click", () => copyLink(linked(), by("copy-link")));
  on("show-keys", "click", () => by("keys").showModal());
  const gallery = new Gallery(listing, guarded((id) => { leaveAddress(); return openTask(id, "rearc", 0); }));
  on("choose", "click", () => gallery.open());
  on("source", "change", (event) => openTask(state.task.id, event.target.value, 0));
  on("instance", "change", async (event) => {
    const number = Math.min(Math.max(Math.round(Number(event.target.value)) || 1, 1), Number(event.target.max));
    await openTask(state.task.id, state.task.source, number - 1);
  });
  on("new-task", "click", () => useOwn(blankTask()));
  on("paste-task", "click", () => { by("paste-error").textContent = ""; by("paste-dialog").showModal(); });
  by("paste-cancel").addEventListener("click", () => by("paste-dialog").close());
  by("paste-use").addEventListener("click", () => {
    try {
      useOwn(readTask(by("paste-text").value));
      by("paste-dialog").close();
    } catch (error) {
      by("paste-error").textContent = error.message;
    }
  });
  on("upload-task", "click", () => by("file").click());
  on("file", "change", async (event) => {
    const file = event.target.files[0];
    event.target.value = "";
    if (file) useOwn(readTask(await file.text()));
  });
  on("save-task", "click", () => save(new Blob([JSON.stringify(state.task.content)], { type: "application/json" }), `${taskName()}.json`));
  on("second", "change", (event) => { leaveAddress(); state.second = event.target.checked; return trySecond(); });
  on("compare", "change", (event) => {
    state.compare = event.target.checked;
    if (state.compare) state.settings[1] = otherWay(state.settings[0], about);
    showSettings();
    clearStage();
  });
  on("undo", "click", () => travel(undo.undo()));
  on("redo", "click", () => travel(undo.redo()));
  on("solve", "click", solve);
  on("stop", "click", stop);
  on("unfix", "click", () => { state.given = {}; stale(); });
  on("save-png", "click", () => savePicture(lanes, taskName(), truthAndInput()));
  on("save-gif", "click", () => { saveFilm(lanes, taskName(), truthAndInput(), player.length, showStage); showStage(); });
  on("save-trace", "click", () => saveTrace(lanes, taskName()));
  listenToKeys({ solve: guarded(solve), player, help: () => by("keys").showModal(), undo: () => travel(undo.undo()), redo: () => travel(undo.redo()) });
  addEventListener("hashchange", guarded(restore));
}

function take(found) {
  state = found;
  usePalette(state.palette === "safe" ? "safe" : "arc");
  showTask();
  showSettings();
  clearStage();
  noted();
}

// A story's task and team, to go on with: solved as the story begins.
async function openStory(name) {
  const story = (await api.stories()).stories.find((one) => one.name === name);
  if (story?.kind !== "grid") throw new Error(`There is no story “${name}” that the workbench can open.`);
  const [candidate] = story.candidates;
  const correcting = candidate.fixed.find(Boolean);
  const request = correcting ? candidate.requests[0] : candidate.requests.at(-1);
  const begun = freshState(about);
  begun.settings[0] = settingsOf(request, about);
  begun.settings[1] = otherWay(begun.settings[0], about);
  begun.task = { id: candidate.id, source: "published", number: candidate.number, content: candidate.picture.task };
  take(begun);
  if (correcting) guide.wanted = correcting[0] * SIDE + correcting[1];
  await solve();
}

// The state that a link spells; it is solved again, and shown at the step it was.
async function openLink(packed) {
  const found = await fromLink(packed, about);
  const { step, solved: wasSolved, task } = found;
  if (!task.content) task.content = await api.task(task.id, task.source, task.number);
  take(found);
  if (!wasSolved) return;
  await solve();
  if (step !== null) player.go(step);
}

// What the address describes, or the task that was there last, or the first task.
async function restore() {
  const asked = new URLSearchParams(location.hash.slice(1));
  let first = { id: FIRST_TASKS.find((id) => listing.some((one) => one.id === id)) ?? listing[0].id, source: "rearc", number: 0 };
  try {
    if (asked.has("s")) { await openLink(asked.get("s")); return; }
    if (asked.has("story")) { await openStory(asked.get("story")); return; }
    const draft = keptDraft();
    if (draft?.task?.content) { take(checkedState(draft, about)); return; }
    if (listing.some((one) => one.id === draft?.task?.id)) first = draft.task;
  } catch (error) {
    complain(error);
    if (state) return;
  }
  state = freshState(about);
  showSettings();
  await openTask(first.id, first.source, first.number);
}

async function begin() {
  rememberedLooks();
  const [told, tasks] = await Promise.all([api.about(), api.tasks()]);
  listing = tasks;
  about = told;
  brush = new Brush(by("brush"));
  player = new Player((at) => showStage(at));
  editor = new TaskEditor(by("pairs"), brush, about.limits, () => { showName(); stale(); });
  guide = new Guide(by("guide"), guarded((cell, color) => { state.given[cell] = color; noted(); return solve(); }), () => travel(undo.undo()));
  forms = [0, 1].map((lane) => new SettingsForm(lane, about, () => stale()));
  by("settings").replaceChildren(...forms.map((form) => form.root));
  for (const part of document.querySelectorAll('[data-needs="server"]')) part.hidden = Boolean(about.in_browser);
  for (const part of document.querySelectorAll("[data-known]")) part.textContent = listing.length;
  wire();
  await restore();
  undo.clear(changeable());
  noted();
  by("undo").disabled = true;
  document.documentElement.dataset.ready = "yes";
}

begin().catch(complain);
