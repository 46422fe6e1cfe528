// Experts that answer in this browser: networks as ONNX files beside the page, run by onnxruntime-web.

import { MASK, SIDE } from "./grid.js";

const CELLS = SIDE * SIDE;
const OUTSIDE = -1; // what an expert reads in a cell that belongs to no grid

const sessions = new Map();

function session(name) {
  const { ort } = globalThis;
  ort.env.logLevel = "error";
  ort.env.wasm.numThreads = 1; // more would need headers that a plain static host does not send
  ort.env.wasm.wasmPaths = new URL("ort/", document.baseURI).href;
  if (!sessions.has(name)) {
    const loading = ort.InferenceSession.create(new URL(`experts/${name}.onnx`, document.baseURI).href, { executionProviders: ["wasm"], logSeverityLevel: 3 }); // 3: errors
    sessions.set(name, loading.catch((error) => {
      sessions.delete(name);
      throw new Error(`The expert ${name} could not be loaded: ${error.message ?? error}. The page needs a static host; it does not solve from a file.`);
    }));
  }
  return sessions.get(name);
}

function canvasOf(rows) {
  const canvas = Array(CELLS).fill(OUTSIDE);
  rows.forEach((row, r) => row.forEach((color, c) => { canvas[r * SIDE + c] = color; }));
  return canvas;
}

const tensor = (values, dimensions) => new globalThis.ort.Tensor("int64", BigInt64Array.from(values, BigInt), dimensions);

// Ask some experts about one test: a function from a canvas to the logits of each.
export async function asked(names, task, test) {
  const open = [];
  for (const name of names) open.push(await session(name)); // one after the other: together they need twice the memory
  const frames = task.train.length;
  const told = {
    query: tensor(canvasOf(task.test[test].input), [1, CELLS]),
    inputs: tensor(task.train.flatMap((pair) => canvasOf(pair.input)), [1, frames, CELLS]),
    outputs: tensor(task.train.flatMap((pair) => canvasOf(pair.output)), [1, frames, CELLS]),
  };
  return async (x) => {
    const said = [];
    for (const one of open) said.push((await one.run({ x_t: tensor(x, [1, CELLS]), ...told })).logits.data);
    return said;
  };
}

export const hidden = (given) => Array.from({ length: CELLS }, (_, cell) => given?.[Math.floor(cell / SIDE)]?.[cell % SIDE] ?? MASK);
