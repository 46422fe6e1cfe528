// What leaves the page as a file: a picture, a film, a trace.

import { encodeGif } from "./gif.js";
import { drawStage } from "./picture.js";

const LAST_FRAME = 200; // hundredths of a second
const FRAME = 12;

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// pair: the asked input, and the right output where it is known
export function savePicture(lanes, name, pair) {
  drawStage(lanes, `FactorDiff · ${name}`, pair).toBlob((blob) => save(blob, `factordiff-${name}.png`));
}

// Every step as a frame; `show` puts a step on the stage, from where it is drawn.
export function saveFilm(lanes, name, pair, steps, show) {
  const frames = [];
  for (let at = 0; at <= steps; at++) {
    show(at);
    const canvas = drawStage(lanes, `FactorDiff · ${name} · step ${at} of ${steps}`, pair);
    frames.push(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height));
  }
  save(encodeGif(frames, frames.map((_, at) => (at === steps ? LAST_FRAME : FRAME))), `factordiff-${name}.gif`);
}

export function saveTrace(lanes, name) {
  const runs = lanes.map((lane) => {
    const { trace, ...answer } = lane.answer ?? {};
    const rest = JSON.stringify({ request: lane.request, steps: lane.steps, answer, second: lane.run.second });
    return `${rest.slice(0, -1)},"trace":${trace ?? "null"}}`; // as the server wrote it: JavaScript would turn 0.0 into 0
  });
  save(new Blob([`{"version":1,"runs":[${runs.join(",")}]}`], { type: "application/json" }), `factordiff-${name}.trace.json`);
}
