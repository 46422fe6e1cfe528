// The page: brings the parts together and keeps one state.

import * as api from "./api.js";
import { Brush, TaskEditor, blankTask } from "./editor.js";
import { Gallery } from "./gallery.js";
import { inspect } from "./inspector.js";
import { listenToKeys } from "./keyboard.js";
import { Lane } from "./lane.js";
import { rememberedLooks, usePalette, useTheme } from "./looks.js";
import { Player } from "./player.js";
import { save, saveFilm, savePicture, saveTrace } from "./saving.js";
import { SettingsForm } from "./settings.js";
import { freshState, fromLink, readTask, requestOf, toLink } from "./state.js";

const by = (id) => document.getElementById(id);
const FIRST_TASKS = ["0ca9ddb6", "23581191", "d90796e8"]; // colorful ones

let state = null;
let lanes = [];
let looked = { lane: null, cell: null };
let running = null;
let listing = [];
let brush, editor, forms, player, experts;

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
  for (const lane of lanes) lane.show(at, state.given, truth(), looked.cell);
  inspect(by("inspector"), looked.lane, looked.cell, at);
  const fixed = Object.keys(state.given).length;
  by("unfix").hidden = !fixed;
  by("fixed-note").textContent = fixed ? `${fixed} ${fixed === 1 ? "cell" : "cells"} fixed` : "";
}

function newLanes() {
  const shown = state.compare ? [0, 1] : [0];
  lanes = shown.map((number) => new Lane(number, state.settings[number], state.compare, state.alternative, {
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

// Something changed that the shown run does not know about.
function stale() {
  showStage();
  if (lanes.some((lane) => lane.steps.length) && !running) by("status").textContent = "Changed since this was solved. Solve again to see the difference.";
}

// Another task or another set of lanes: nothing on the stage belongs to it.
function clearStage() {
  running?.abort();
  player.reset(false);
  newLanes();
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
  by("alternative").checked = state.alternative;
  forms.forEach((form, lane) => {
    form.root.hidden = lane === 1 && !state.compare;
    form.show(state.settings[lane], state.compare);
  });
}

async function openTask(id, source, number) {
  const content = await api.task(id, source, number);
  Object.assign(state, { task: { id, source, number, content }, edited: false, test: 0, given: {} });
  showTask();
  clearStage();
}

function useOwn(content) {
  Object.assign(state, { task: { id: null, source: "own", number: 0, content }, edited: true, test: 0, given: {} });
  showTask();
  clearStage();
}

async function solve() {
  running?.abort();
  const control = new AbortController();
  running = control;
  calm();
  newLanes();
  player.reset(true);
  exportable(false);
  by("stop").hidden = false;
  by("solve").textContent = "Solve again";
  by("status").textContent = "Waiting for the worker…";
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
    try {
      await api.solve(requestOf(state, lane.settings), (event) => {
        lane.take(event);
        if (event.event === "start") by("status").textContent = "Solving…";
        follow();
      }, control.signal);
    } catch (error) {
      if (control.signal.aborted) return;
      lane.error = error.message;
      complain(error);
    }
  });
  await Promise.all(work);
  if (running !== control) return;
  running = null;
  by("stop").hidden = true;
  player.grow(Math.max(...lanes.map((lane) => lane.steps.length)));
  player.live = false;
  player.pause();
  state.solved = lanes.every((lane) => lane.answer);
  exportable(lanes.some((lane) => lane.steps.length));
  by("status").textContent = control.signal.aborted ? "Stopped." : lanes.map((lane) => summary(lane)).join("  ·  ");
  showStage();
}

function summary(lane) {
  if (!lane.answer) return `${lane.settings.method}: no answer`;
  const { right, grid, alternative } = lane.answer;
  const second = !right && alternative?.right ? ", attempt 2 right" : "";
  return `${lane.settings.method}: ${right === null ? `an answer of ${grid.length} × ${grid[0].length}` : right ? "right" : "not right"}${second}`;
}

async function copyLink() {
  const packed = await toLink({ ...state, step: state.solved ? player.at : null, palette: by("palette").value });
  const link = `${location.origin}${location.pathname}#s=${packed}`;
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(link);
    by("copy-link").textContent = "Copied";
  } catch {
    by("copy-link").textContent = "In the address bar";
  }
  setTimeout(() => { by("copy-link").textContent = "Copy link"; }, 2000);
}

const taskName = () => state.task.id ?? "own-task";

function wire() {
  const on = (id, kind, work) => by(id).addEventListener(kind, guarded(work));
  by("alert").querySelector("button").addEventListener("click", calm);
  on("palette", "change", (event) => usePalette(event.target.value));
  on("theme", "change", (event) => useTheme(event.target.value));
  on("copy-link", "click", copyLink);
  on("show-keys", "click", () => by("keys").showModal());
  const gallery = new Gallery(listing, guarded((id) => openTask(id, "rearc", 0)));
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
  on("alternative", "change", (event) => { state.alternative = event.target.checked; stale(); });
  on("compare", "change", (event) => { state.compare = event.target.checked; showSettings(); clearStage(); });
  on("solve", "click", solve);
  on("stop", "click", () => running?.abort());
  on("unfix", "click", () => { state.given = {}; stale(); });
  on("save-png", "click", () => savePicture(lanes, taskName()));
  on("save-gif", "click", () => { saveFilm(lanes, taskName(), player.length, showStage); showStage(); });
  on("save-trace", "click", () => saveTrace(lanes, taskName(), (lane) => requestOf(state, lane.settings)));
  listenToKeys({ solve: guarded(solve), player, help: () => by("keys").showModal() });
  addEventListener("hashchange", guarded(restore));
}

// The state that the address describes, or the first task.
async function restore() {
  const packed = new URLSearchParams(location.hash.slice(1)).get("s");
  if (packed) {
    try {
      const linked = await fromLink(packed, experts);
      const wanted = linked.step;
      const solved = linked.solved;
      const { id, source, number } = linked.task;
      if (!linked.task.content) linked.task.content = await api.task(id, source, number);
      state = linked;
      usePalette(state.palette === "safe" ? "safe" : "arc");
      showTask();
      showSettings();
      clearStage();
      if (solved) {
        await solve();
        if (wanted !== null) player.go(wanted);
      }
      return;
    } catch (error) {
      complain(error);
      if (state) return;
    }
  }
  state = freshState(experts);
  showSettings();
  const first = FIRST_TASKS.find((id) => listing.some((one) => one.id === id)) ?? listing[0].id;
  await openTask(first, "rearc", 0);
}

async function begin() {
  rememberedLooks();
  const [about, tasks] = await Promise.all([api.about(), api.tasks()]);
  listing = tasks;
  experts = about.experts.map((expert) => expert.name);
  brush = new Brush(by("brush"));
  player = new Player((at) => showStage(at));
  editor = new TaskEditor(by("pairs"), brush, about.limits, () => { showName(); stale(); });
  forms = [0, 1].map((lane) => new SettingsForm(lane, about, () => stale()));
  by("settings").replaceChildren(...forms.map((form) => form.root));
  wire();
  await restore();
  document.documentElement.dataset.ready = "yes";
}

begin().catch(complain);
