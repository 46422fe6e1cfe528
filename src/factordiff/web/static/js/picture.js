// The stage as a picture: the same grids, drawn from what the page shows.

const CELL = 16;
const GAP = 24;
const HEAD = 34;
const SIDE_LENGTH = 10 * CELL;

function drawGrid(pen, view, left, top, title) {
  const style = getComputedStyle(document.body);
  pen.fillStyle = style.color;
  pen.font = "600 13px ui-sans-serif, system-ui, sans-serif";
  pen.fillText(title, left, top - 9, view.width * CELL);
  pen.fillStyle = "#7d828c";
  pen.fillRect(left - 1, top - 1, view.width * CELL + 1, view.height * CELL + 1);
  view.cells.forEach((cell, index) => {
    const x = left + (index % view.width) * CELL;
    const y = top + Math.floor(index / view.width) * CELL;
    const look = getComputedStyle(cell);
    pen.fillStyle = look.getPropertyValue("--hidden-a") && cell.classList.contains("hidden-cell") ? shade(style) : look.backgroundColor;
    pen.fillRect(x, y, CELL - 1, CELL - 1);
    if (cell.classList.contains("outside")) {
      pen.fillStyle = `color-mix(in srgb, ${getComputedStyle(document.body).backgroundColor} 72%, transparent)`;
      pen.fillRect(x, y, CELL - 1, CELL - 1);
    }
    if (cell.classList.contains("pin")) {
      pen.strokeStyle = "#fff";
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x + CELL / 2 - 0.5, y + CELL / 2 - 0.5, CELL / 4, 0, 7);
      pen.stroke();
    }
    if (cell.classList.contains("miss") || cell.classList.contains("other")) drawCorner(pen, x + CELL - 1, y, look.getPropertyValue("--mark"));
    if (cell.classList.contains("fresh")) {
      pen.strokeStyle = "#fff";
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, CELL - 3, CELL - 3);
    }
  });
}

// The mark of a cell that is wrong, or other than in attempt 1: a corner with a white edge.
function drawCorner(pen, right, top, color) {
  for (const [size, fill] of [[7, "#fff"], [5, color]]) {
    pen.fillStyle = fill;
    pen.beginPath();
    pen.moveTo(right - size, top);
    pen.lineTo(right, top);
    pen.lineTo(right, top + size);
    pen.fill();
  }
}

const shade = (style) => (style.colorScheme === "dark" || matchMediaDark() ? "#232936" : "#dfdcd3");
const matchMediaDark = () => document.documentElement.dataset.theme === "dark"
  || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

// The input as it was asked, from its rows.
function drawInput(pen, rows, left, top) {
  const style = getComputedStyle(document.documentElement);
  pen.fillStyle = getComputedStyle(document.body).color;
  pen.font = "600 13px ui-sans-serif, system-ui, sans-serif";
  pen.fillText("input", left, top - 9);
  pen.fillStyle = "#7d828c";
  pen.fillRect(left - 1, top - 1, rows[0].length * CELL + 1, rows.length * CELL + 1);
  rows.forEach((row, r) => row.forEach((value, c) => {
    pen.fillStyle = style.getPropertyValue(`--c${value}`);
    pen.fillRect(left + c * CELL, top + r * CELL, CELL - 1, CELL - 1);
  }));
}

// Below the grids: the verdict, and which color is whose.
function drawWords(pen, lane, left, top) {
  const style = getComputedStyle(document.body);
  const colors = getComputedStyle(document.documentElement);
  pen.font = "13px ui-sans-serif, system-ui, sans-serif";
  pen.fillStyle = style.color;
  pen.fillText(lane.verdict.textContent, left, top);
  let across = left;
  for (const [place, entry] of [...lane.legend.children].entries()) {
    pen.fillStyle = colors.getPropertyValue(`--e${place}`);
    pen.fillRect(across, top + 12, 11, 11);
    pen.fillStyle = style.color;
    pen.fillText(entry.textContent, across + 17, top + 22);
    across += 17 + pen.measureText(entry.textContent).width + 18;
  }
}

export function drawStage(lanes, caption, { input }) {
  const across = Math.max(...lanes.map((lane) => 3 + lane.voices.length + (lane.second.view ? 1 : 0))); // the same for every frame
  const side = SIDE_LENGTH;
  const canvas = document.createElement("canvas");
  canvas.width = GAP + across * (side + GAP);
  canvas.height = HEAD + lanes.length * (side + 3 * HEAD) - 4;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const style = getComputedStyle(document.body);
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.color;
  pen.font = "700 15px ui-sans-serif, system-ui, sans-serif";
  pen.fillText(caption, GAP, 26);
  lanes.forEach((lane, number) => {
    const top = HEAD + number * (side + 3 * HEAD) + HEAD;
    drawInput(pen, input, GAP, top);
    const views = [[lane.grid, `answer · ${lane.settings.method}`], [lane.map, lane.run.routed ? "who decides" : "how sure"],
      ...lane.voices.map((view, place) => [view, lane.settings.experts[place]])];
    if (lane.second.view && !lane.second.root.hidden) views.push([lane.second.view, "attempt 2"]);
    views.forEach(([view, title], place) => drawGrid(pen, view, GAP + (place + 1) * (side + GAP), top, title));
    drawWords(pen, lane, GAP + side + GAP, top + side + 22);
  });
  return canvas;
}
