// Everything that a link restores, and how it travels in the address.

import { SIDE } from "./grid.js";

const VERSION = 1;

export function freshSettings(experts, method) {
  return {
    experts: experts.slice(0, 2),
    method: method ?? (experts.length > 1 ? "routing" : "single"),
    temperatures: {},
    factors: "pixel",
    block: [2, 2],
    reveal: { rule: "exact", steps: 128, threshold: 0.995, gamma: 0.005 },
    particles: 8,
    runs: 3, // of each expert in a vote
    softness: 0.1,
    seed: 0,
  };
}

export function freshState(experts) {
  return {
    version: VERSION,
    task: null, // {id, source, number, content}; id is null for a task of one's own
    edited: false,
    test: 0,
    given: {}, // cell -> color
    compare: false,
    alternative: false, // attempt 2 as well
    settings: [freshSettings(experts), freshSettings(experts, experts.length > 1 ? "mixture" : "single")],
    solved: false,
    step: null,
    palette: "arc",
  };
}

// The request that a lane's settings make.
export function requestOf(state, settings) {
  const given = Object.keys(state.given).length ? Array.from({ length: SIDE }, () => Array(SIDE).fill(null)) : null;
  for (const [cell, color] of Object.entries(state.given)) given[Math.floor(cell / SIDE)][cell % SIDE] = color;
  const temperatures = Object.fromEntries(
    settings.experts.filter((name) => settings.temperatures[name] != null).map((name) => [name, settings.temperatures[name]]),
  );
  return {
    version: VERSION,
    task: state.task.content,
    test: state.test,
    experts: settings.experts,
    method: settings.method,
    temperatures,
    factors: settings.factors === "block" ? `block:${settings.block.join("x")}` : settings.factors,
    reveal: settings.reveal,
    particles: settings.method === "vote" ? settings.runs : settings.particles,
    softness: settings.softness,
    seed: settings.seed,
    given,
    alternative: state.alternative,
  };
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

export async function toLink(state) {
  const kept = { ...state, task: { ...state.task } };
  if (!state.edited && state.task.id) delete kept.task.content; // the server has it
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(kept)));
  return btoa(String.fromCharCode(...packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function fromLink(text, experts) {
  let parsed;
  try {
    const packed = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    parsed = JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed)));
  } catch {
    throw new Error("This link is damaged: part of it may be missing. The page starts afresh.");
  }
  if (parsed?.version !== VERSION || !parsed.task || !Array.isArray(parsed.settings) || parsed.settings.length !== 2) {
    throw new Error("This link was made by another version of the page. The page starts afresh.");
  }
  const fresh = freshState(experts);
  const state = { ...fresh, ...parsed };
  state.settings = parsed.settings.map((one, lane) => {
    const missing = (one.experts ?? []).filter((name) => !experts.includes(name));
    if (missing.length) throw new Error(`This link needs the expert ${missing[0]}, which this server does not have.`);
    return { ...fresh.settings[lane], ...one, reveal: { ...fresh.settings[lane].reveal, ...one.reveal } };
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
