// The page of texts: what is hidden of a text is filled in by experts together, and by each alone.

import * as api from "./api.js";
import { inspect } from "./inspector.js";
import { listenToKeys } from "./keyboard.js";
import { pictureOf } from "./kinds.js";
import { copyLink, unpacked } from "./link.js";
import { rememberedLooks, usePalette, useTheme } from "./looks.js";
import { flagsOf } from "./marks.js";
import { panelOf } from "./panel.js";
import { Player } from "./player.js";
import { Run } from "./run.js";
import { SettingsForm } from "./settings.js";
import { freshSettings, methodOf } from "./state.js";
import { TextEditor } from "./text_editor.js";

const VERSION = 1;
const DRAFT = "text";
const SOME = 0.15;
const by = (id) => document.getElementById(id);
const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

let about, editor, form, player, settings;
let panels = [];
let shown = null; // what was asked for the panels that are there
let looked = { panel: null, cell: null };
let running = null;

function complain(error) {
  by("alert").hidden = false;
  by("alert").querySelector("p").textContent = error.message ?? String(error);
}

const guarded = (work) => async (...values) => {
  try {
    by("alert").hidden = true;
    return await work(...values);
  } catch (error) {
    complain(error);
  }
};

// What a link restores, and a reload.
const state = () => ({ version: VERSION, text: editor.text, hidden: editor.stretches, settings, alone: by("alone").checked });

// What there is to fill in, and by whom: all together, and each alone.
function asked() {
  const question = { text: editor.text, hidden: editor.stretches };
  const together = methodOf(settings, about);
  const alone = by("alone").checked && settings.experts.length > 1
    ? settings.experts.map((name) => ({ experts: [name], method: "single", reveal: together.reveal, seed: settings.seed }))
    : [];
  return [together, ...alone].map((how) => ({ version: 1, ...question, ...how }));
}

function show(at = player.at) {
  for (const panel of panels) panel.show(Math.min(at, panel.run.steps.length), true, looked.cell);
  const run = looked.panel?.run ?? null;
  inspect(by("inspector"), run, looked.cell, Math.min(at, run?.steps.length ?? 0), panels[0]?.picture ?? EMPTY);
}
const EMPTY = pictureOf({ kind: "text", side: 0, mask: 0, right: [[]], start: [], letters: "" });

function look(panel, cell) {
  if (looked.panel === panel && looked.cell === cell) return;
  looked = { panel, cell };
  show();
}

function newPanels(requests) {
  const { text, hidden } = requests[0];
  const right = Array.from(text, (letter) => about.letters.indexOf(letter));
  const mask = about.letters.length;
  const flags = flagsOf(text, hidden);
  const start = right.map((value, cell) => (flags[cell] ? mask : value));
  const picture = pictureOf({ kind: "text", side: text.length, mask, right: [right], start, letters: about.letters });
  panels = requests.map(({ experts, method }) => {
    const label = experts.length > 1 ? `Together: ${method}` : "Alone";
    return panelOf(label, new Run(experts, method, start), picture, null, look);
  });
  by("panels").replaceChildren(...panels.map((panel) => panel.root));
  looked = { panel: panels[0], cell: null };
}

const stop = () => running?.abort();

async function fill() {
  stop();
  if (!editor.hidden) throw new Error("Nothing is hidden. Select some of the text and press “Hide selection”, or hide 15 %.");
  const control = new AbortController();
  running = control;
  by("alert").hidden = true;
  const requests = asked();
  shown = JSON.stringify(requests);
  newPanels(requests);
  player.reset(true);
  by("stop").hidden = false;
  by("copy-text").disabled = true;
  by("status").textContent = "Asking the experts…";
  by("stage").focus({ preventScroll: true }); // so that the keys belong to the trajectory
  by("stage").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  show();
  let drawing = false;
  const follow = () => { // as often as the screen, not as often as the steps
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (running !== control) return;
      player.grow(Math.max(...panels.map(({ run }) => run.steps.length)));
      show();
    });
  };
  const failed = [];
  await Promise.all(requests.map((request, number) => api.infill(request, (event) => {
    panels[number].run.take(event);
    follow();
  }, control.signal).catch((error) => { if (!control.signal.aborted) failed.push(error); })));
  if (running !== control) return;
  running = null;
  by("stop").hidden = true;
  player.grow(Math.max(...panels.map(({ run }) => run.steps.length)));
  player.live = false;
  player.pause();
  by("copy-text").disabled = !panels[0].run.answer;
  by("status").textContent = control.signal.aborted ? "Stopped." : summary();
  show();
  if (failed.length) throw failed[0];
}

function summary() {
  const [{ run, picture }] = panels;
  if (!run.answer) return "No answer.";
  const total = picture.start.filter((value) => value === picture.mask).length;
  const { passes, seconds } = run.answer;
  return `${total - panels[0].wrong().length} of ${many(total, "hidden character")} right · ${passes.executed} passes · ${seconds.toFixed(1)} s`;
}

// Something changed: a reload is to find it, and what is shown may be the answer to something else.
function changed() {
  history.replaceState(null, "", location.pathname);
  localStorage.setItem(DRAFT, JSON.stringify(state()));
  by("count").textContent = `${many(editor.text.length, "character")} of at most ${about.longest}, ${editor.hidden} hidden.`;
  if (panels.length && !running) by("status").textContent = JSON.stringify(asked()) === shown ? summary() : "Changed since this was filled in.";
}

function edited({ unknown, cut }) {
  const notes = [];
  if (unknown) notes.push(`${many(unknown, "letter")} that the experts do not know became a question mark.`);
  if (cut) notes.push(`The last ${many(cut, "character")} had no room.`);
  by("note").textContent = notes.join(" ");
  changed();
}

function mark(hidden) {
  if (!editor.mark(hidden)) throw new Error(`Select some of the text first; then it can be ${hidden ? "hidden" : "shown"}.`);
}

function use({ text, hidden }) {
  editor.use(text, hidden);
  by("example").value = about.examples.find((one) => one.text === text)?.name ?? "";
}

function take(found) {
  if (found?.version !== VERSION || typeof found.text !== "string" || !Array.isArray(found.hidden) || !found.settings) {
    throw new Error("This link was made by another version of the page. The page starts afresh.");
  }
  const missing = found.settings.experts.filter((name) => !about.experts.some((expert) => expert.name === name));
  if (missing.length) throw new Error(`This link needs the expert ${missing[0]}, which this server does not have.`);
  settings = { ...fresh(), ...found.settings };
  by("alone").checked = found.alone !== false;
  form.show(settings, false);
  use(found);
}

// The two specialists, so that one sees how much each counts.
const fresh = () => ({ ...freshSettings(about), method: "soft-routing", rule: "fast" });

function kept() {
  try {
    return JSON.parse(localStorage.getItem(DRAFT));
  } catch {
    return null; // whatever it was, it is no text
  }
}

// What the address describes, or what was being written, or the first example.
async function restore() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  try {
    if (wanted.has("s")) { take(await unpacked(wanted.get("s"))); return; }
    const draft = wanted.has("example") ? null : kept();
    if (draft) { take(draft); return; }
  } catch (error) {
    complain(error);
  }
  settings = fresh();
  form.show(settings, false);
  use(about.examples.find((one) => one.name === wanted.get("example")) ?? about.examples[0]);
}

function wire() {
  const on = (id, kind, work) => by(id).addEventListener(kind, guarded(work));
  by("alert").querySelector("button").addEventListener("click", () => { by("alert").hidden = true; });
  on("palette", "change", (event) => usePalette(event.target.value));
  on("theme", "change", (event) => useTheme(event.target.value));
  on("copy-link", "click", () => copyLink(state(), by("copy-link")));
  on("example", "change", (event) => { const found = about.examples.find((one) => one.name === event.target.value); if (found) use(found); });
  on("hide", "click", () => mark(true));
  on("show", "click", () => mark(false));
  on("hide-some", "click", () => editor.markAll(() => Math.random() < SOME));
  on("show-all", "click", () => editor.markAll(() => false));
  on("upload", "click", () => by("file").click());
  on("file", "change", async (event) => {
    const file = event.target.files[0];
    event.target.value = "";
    if (file) use({ text: await file.text(), hidden: [] });
  });
  on("alone", "change", changed);
  on("solve", "click", fill);
  on("stop", "click", stop);
  on("copy-text", "click", () => navigator.clipboard.writeText(panels[0].run.answer.text));
  listenToKeys({ solve: guarded(fill), player, help: null });
  addEventListener("hashchange", guarded(restore));
}

async function begin() {
  rememberedLooks();
  about = await api.texts();
  player = new Player((at) => show(at));
  editor = new TextEditor(by("editor"), about.letters, about.longest, edited);
  form = new SettingsForm(0, about, changed);
  by("settings").replaceChildren(form.root);
  by("example").replaceChildren(...[["", "a text of your own"], ...about.examples.map(({ name }) => [name, `example “${name}”`])].map(([value, text]) => {
    const option = document.createElement("option");
    Object.assign(option, { value, textContent: text });
    return option;
  }));
  wire();
  await restore();
  document.documentElement.dataset.ready = "yes";
}

begin().catch(complain);
