// The numbers of a caption, counted in what happened: {wrong 0} are the cells that run 0 has wrong, and so on.

const quarterOf = (cell, side) => 2 * Math.floor(cell / side / (side / 2)) + Math.floor((cell % side) / (side / 2));

// The quarters of a mosaic none of whose cells is among those given.
const quartersWithout = (cells, side) => 4 - new Set(cells.map((cell) => quarterOf(cell, side))).size;

const COUNTS = {
  // {wrong 0 of 1}: those of them that expert 1 should know
  wrong: ({ picture }, wrong, of) => wrong.filter((cell) => of === undefined || picture.owners[cell] === Number(of)).length,
  // those of them that should be empty
  empty: ({ picture }, wrong) => wrong.filter((cell) => picture.rightAt(cell) === 0).length,
  // those of them that have another color
  colored: ({ picture, run }, wrong) => wrong.filter((cell) => picture.rightAt(cell) !== 0 && run.answer.canvas[cell] !== 0).length,
  // what the run asked of the networks
  passes: ({ run }) => run.answer.passes.executed,
  // quarters of a mosaic that are right
  quarters: ({ picture }, wrong) => quartersWithout(wrong, picture.side),
  // quarters that the expert decided who was trained on their task
  owned({ picture, run }) {
    const others = [...run.decided(run.steps.length)].filter(([cell, { step, place }]) => step.routing[place] !== picture.owners[cell]);
    return quartersWithout(others.map(([cell]) => cell), picture.side);
  },
};

export function counted(says, panels) {
  return says.replace(/\{(\w+) (\d)(?: of (\d))?\}/g, (_, what, number, of) => COUNTS[what](panels[number], panels[number].wrong(), of));
}
