// Everything that a link restores, and how it travels in the address.

import { SIDE } from "./grid.js";
import { unpacked } from "./link.js";
import { numbersOf } from "./settings.js";

const VERSION = 2;

// The settings to begin with: the first team there is, with its fitted numbers, or the first two experts.
export function freshSettings(about) {
  const team = about.teams[0];
  const names = about.experts.map((expert) => expert.name);
  return {
    experts: team ? [...team.experts] : names.slice(0, 2),
    method: team?.method ?? (names.length > 1 ? "routing" : "single"),
    options: team ? numbersOf(team) : {}, // by name; of an option per expert, a number by expert
    rule: about.rules.includes("exact") ? "exact" : about.rules[0], // how cells are revealed, and the number that the rule takes
    number: null,
    seed: 0,
  };
}

// The same experts another way: what a comparison begins with; one of them alone where there is no other method.
export function otherWay(settings, about) {
  if (!about.methods.some((one) => one.name === "mixture")) return { ...structuredClone(settings), experts: settings.experts.slice(0, 1), method: "single" };
  const method = settings.experts.length < 2 ? settings.method : settings.method === "mixture" ? "routing" : "mixture";
  return { ...structuredClone(settings), method };
}

export function freshState(about) {
  const settings = freshSettings(about);
  return {
    version: VERSION,
    task: null, // {id, source, number, content}; id is null for a task of one's own
    edited: false,
    test: 0,
    given: {}, // cell -> color
    compare: false,
    second: false, // attempt 2 as well
    settings: [settings, otherWay(settings, about)],
    solved: false,
    step: null,
    palette: "arc",
  };
}

// Who answers and how, as a request spells it: options that the method does not take are left out.
export function methodOf(settings, about) {
  const options = {};
  for (const option of about.methods.find((one) => one.name === settings.method).options) {
    const value = settings.options[option.name];
    if (value == null) continue;
    options[option.name] = option.per_expert
      ? Object.fromEntries(Object.entries(value).filter(([name]) => settings.experts.includes(name)))
      : value;
  }
  return {
    experts: settings.experts,
    method: settings.method,
    ...options,
    reveal: settings.number === null ? settings.rule : `${settings.rule}:${settings.number}`,
    seed: settings.seed,
  };
}

// The request that a lane's settings make.
export function requestOf(state, settings, about) {
  const given = Object.keys(state.given).length ? Array.from({ length: SIDE }, () => Array(SIDE).fill(null)) : null;
  for (const [cell, color] of Object.entries(state.given)) given[Math.floor(cell / SIDE)][cell % SIDE] = color;
  return { version: 1, task: state.task.content, test: state.test, ...methodOf(settings, about), given };
}

// The settings that a request spells, as the form keeps them; what is not offered here is left to the page.
export function settingsOf({ experts, method: wanted, reveal, given, ...options }, about) {
  const method = about.methods.some((one) => one.name === wanted) ? wanted : experts.length > 1 ? "routing" : "single";
  const [rule, number] = about.rules.includes(reveal.split(":")[0]) ? reveal.split(":") : [about.rules[0]];
  return { ...freshSettings(about), experts, method, rule, number: number === undefined ? null : Number(number), options: numbersOf({ experts, options }) };
}

// What a link keeps: of a task that the server has, its name alone.
export function keptState(state) {
  const kept = { ...state, task: { ...state.task } };
  if (!state.edited && state.task.id) delete kept.task.content;
  return kept;
}

export const fromLink = async (text, about) => checkedState(await unpacked(text), about);

// A state that was kept somewhere: of this version, and with experts that are here.
export function checkedState(parsed, about) {
  if (parsed?.version !== VERSION || !parsed.task || !Array.isArray(parsed.settings) || parsed.settings.length !== 2) {
    throw new Error("This link was made by another version of the page. The page starts afresh.");
  }
  const fresh = freshState(about);
  const state = { ...fresh, ...parsed };
  state.settings = parsed.settings.map((one, lane) => {
    const missing = (one.experts ?? []).filter((name) => !about.experts.some((expert) => expert.name === name));
    if (missing.length) throw new Error(`This link needs the expert ${missing[0]}, which this server does not have.`);
    return { ...fresh.settings[lane], ...one };
  });
  return state;
}

// A task in ARC's JSON, or an Error with a sentence: enough for the page; the server checks the rest.
export function readTask(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${error.message}.`);
  }
  if (content?.train === undefined && content && typeof content === "object") {
    const inner = Object.values(content)[0];
    if (inner?.train) content = inner; // a challenges file: take its first task
  }
  for (const key of ["train", "test"]) {
    if (!Array.isArray(content?.[key]) || !content[key].length) throw new Error(`A task needs a list “${key}” with at least one pair.`);
    content[key].forEach((pair, number) => {
      for (const side of ["input", "output"]) {
        if (side === "output" && key === "test" && pair?.output === undefined) continue;
        checkGrid(pair?.[side], `${key} pair ${number + 1}, ${side}`);
      }
    });
  }
  return { train: content.train.map(pairOf), test: content.test.map(pairOf) };
}

const pairOf = (pair) => (pair.output === undefined ? { input: pair.input } : { input: pair.input, output: pair.output });

function checkGrid(rows, where) {
  if (!Array.isArray(rows) || !rows.length || !rows.every((row) => Array.isArray(row) && row.length && row.length === rows[0].length)) {
    throw new Error(`${where}: expected rows of the same length.`);
  }
  if (rows.length > SIDE || rows[0].length > SIDE) {
    throw new Error(`${where}: ${rows.length} × ${rows[0].length} cells; the experts work on at most ${SIDE} × ${SIDE}.`);
  }
  rows.forEach((row, r) => row.forEach((value, c) => {
    if (!Number.isInteger(value) || value < 0 || value > 9) {
      throw new Error(`${where}, row ${r + 1}, column ${c + 1}: expected a color from 0 to 9, got ${JSON.stringify(value)}.`);
    }
  }));
}
