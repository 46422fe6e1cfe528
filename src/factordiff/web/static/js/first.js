// The first screen: a story that plays itself once, and the other stories below it.

import { element } from "./grid.js";
import { inspect } from "./inspector.js";
import { listenToKeys } from "./keyboard.js";
import { rememberedLooks, usePalette, useTheme } from "./looks.js";
import { Player } from "./player.js";
import { cardPicture, drawQuestion } from "./question.js";
import { recorded, solves, stories, tell } from "./source.js";
import { StoryView } from "./story.js";

const by = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");

let all = [];
let view = null;
let looked = { panel: null, cell: null };
let asking = null;
const player = new Player((at) => show(at));

function complain(error) {
  by("caption").textContent = ""; // nobody is being asked any more
  by("alert").hidden = false;
  by("alert").querySelector("p").textContent = error.message ?? String(error);
}

function show(at = player.at) {
  if (!view) return;
  view.show(at, looked.cell);
  const number = view.panels.indexOf(looked.panel);
  inspect(by("inspector"), looked.panel?.run ?? null, looked.cell, number < 0 ? at : view.stepAt(number, at), view.picture);
}

function look(panel, cell) {
  if (looked.panel === panel && looked.cell === cell) return;
  looked = { panel, cell };
  show();
}

// Where a story can be gone on with: single tasks in the workbench, texts where a server fills them in, mosaics nowhere.
function placeToTry(story) {
  if (story.kind === "grid") return solves ? `workbench.html#story=${encodeURIComponent(story.name)}` : null;
  return story.kind === "text" && !recorded ? `texts.html#example=${encodeURIComponent(story.candidates[0].id)}` : null;
}

async function open(story) {
  asking?.abort();
  const control = new AbortController();
  asking = control;
  by("alert").hidden = true;
  player.reset(false);
  document.documentElement.dataset.ready = "no";
  Object.assign(by("stage").dataset, { story: story.name, kind: story.kind });
  by("story-title").textContent = story.title;
  by("caption").textContent = recorded ? story.intro : "Asking the experts…";
  by("panels").replaceChildren();
  for (const card of by("cards").children) card.setAttribute("aria-pressed", card.dataset.name === story.name);
  const place = placeToTry(story);
  by("try").hidden = !place;
  if (place) by("try").href = place;
  drawQuestion(by("task"), story.candidates[0].picture); // something to look at while they think
  let steps = 0;
  const told = await tell(story, control.signal, (event) => {
    if (asking === control && event.event === "step") by("caption").textContent = `Asking the experts: ${++steps} steps so far…`;
  });
  if (asking !== control) return;
  looked = { panel: null, cell: null };
  view = new StoryView({ title: by("story-title"), caption: by("caption"), task: by("task"), panels: by("panels") }, told, look);
  player.grow(view.length);
  // Nothing moves by itself for those who asked for that: they see how it ends, and can go back.
  if (still.matches) player.go(view.length);
  else { show(0); player.play(); }
  show();
  document.documentElement.dataset.ready = "yes";
}

const wanted = () => all.find((story) => story.name === new URLSearchParams(location.hash.slice(1)).get("story")) ?? all[0];
const guarded = (work) => async () => { try { await work(); } catch (error) { if (error.name !== "AbortError") complain(error); } };

function drawCards() {
  by("cards").replaceChildren(...all.map((story) => element("button", {
    type: "button", class: "story-card", "data-name": story.name, "aria-pressed": false,
    onclick: () => {
      if (location.hash === `#story=${story.name}`) guarded(() => open(story))();
      else location.hash = `story=${story.name}`;
      by("stage").scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });
    },
  }, cardPicture(story.candidates[0].picture), element("b", {}, story.title), element("span", {}, story.intro))));
}

async function begin() {
  rememberedLooks();
  by("palette").addEventListener("change", (event) => { usePalette(event.target.value); drawCards(); });
  by("theme").addEventListener("change", (event) => useTheme(event.target.value));
  by("alert").querySelector("button").addEventListener("click", () => { by("alert").hidden = true; });
  const found = await stories();
  all = found.stories;
  // A link into the workbench, or experts that can tell no story: the workbench is the place.
  if (!recorded && (!all.length || new URLSearchParams(location.hash.slice(1)).has("s"))) {
    location.replace(`workbench.html${location.hash}`);
    return;
  }
  const there = { server: !recorded, recording: recorded, solver: solves };
  for (const part of document.querySelectorAll("[data-needs]")) part.hidden = !there[part.dataset.needs];
  for (const part of document.querySelectorAll("[data-known]")) part.textContent = found.known_tasks;
  drawCards();
  listenToKeys({ solve: null, player, help: null });
  addEventListener("hashchange", guarded(() => open(wanted())));
  await open(wanted());
}

guarded(begin)();
