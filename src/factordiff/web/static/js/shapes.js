// The shape of an answer, inferred from the demonstrations: as `factordiff.arc.shapes` does it, rule by rule.

import { SIDE } from "./grid.js";

const shapeOf = (rows) => [rows.length, rows[0].length];

// The whole number that every first is times its second, if there is one.
function quotient(pairs) {
  const [first, second] = pairs[0];
  const found = first / second;
  return Number.isInteger(found) && found && pairs.every(([one, other]) => one === found * other) ? found : null;
}

// (demonstrations as [input, output] shapes, query, axis) -> the length along the axis, or null where it does not hold
const RULES = [
  (shown, query, axis) => (shown.every(([given, answer]) => given[axis] === answer[axis]) ? query[axis] : null),
  (shown, query, axis) => (shown.every(([given, answer]) => given[axis] ** 2 === answer[axis]) ? query[axis] ** 2 : null),
  (shown, query, axis) => {
    const factor = quotient(shown.map(([given, answer]) => [answer[axis], given[axis]]));
    return factor && factor * query[axis];
  },
  (shown, query, axis) => {
    const divisor = quotient(shown.map(([given, answer]) => [given[axis], answer[axis]]));
    return divisor && query[axis] % divisor === 0 ? query[axis] / divisor : null;
  },
  (shown, query, axis) => (shown.every(([given, answer]) => given[1 - axis] === answer[axis]) ? query[1 - axis] : null),
  (shown, query, axis) => {
    const panels = quotient(shown.map(([given, answer]) => [given[axis] + 1, answer[axis] + 1]));
    return panels && (query[axis] + 1) % panels === 0 ? (query[axis] + 1) / panels - 1 : null;
  },
  (shown, query, axis) => (shown.every(([, answer]) => answer[axis] === shown[0][1][axis]) ? shown[0][1][axis] : null),
];

// What the canvas shows must not be cut off; where no rule leaves it whole, it decides itself.
function lengthOf(shown, query, axis, canvas) {
  let least = 1;
  canvas.forEach((color, cell) => { if (color) least = Math.max(least, (axis ? cell % SIDE : Math.floor(cell / SIDE)) + 1); });
  for (const rule of RULES) {
    const length = rule(shown, query, axis);
    if (length !== null && least <= length && length <= SIDE) return length;
  }
  return least;
}

// The rows of the answer that a canvas holds.
export function answerGrid(canvas, task, test) {
  const shown = task.train.map(({ input, output }) => [shapeOf(input), shapeOf(output)]);
  const query = shapeOf(task.test[test].input);
  const [height, width] = [0, 1].map((axis) => lengthOf(shown, query, axis, canvas));
  return Array.from({ length: height }, (_, row) => canvas.slice(row * SIDE, row * SIDE + width));
}
