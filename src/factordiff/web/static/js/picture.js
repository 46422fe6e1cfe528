// The stage as a picture: the same grids, drawn from what the page shows.

const CELL = 16;
const GAP = 24;
const HEAD = 34;

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
    if (cell.classList.contains("fresh")) {
      pen.strokeStyle = "#fff";
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, CELL - 3, CELL - 3);
    }
  });
}

const shade = (style) => (style.colorScheme === "dark" || matchMediaDark() ? "#232936" : "#dfdcd3");
const matchMediaDark = () => document.documentElement.dataset.theme === "dark"
  || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

export function drawStage(lanes, caption) {
  const across = Math.max(...lanes.map((lane) => 2 + lane.voices.length + (lane.second ? 1 : 0))); // the same for every frame
  const side = 10 * CELL;
  const canvas = document.createElement("canvas");
  canvas.width = GAP + across * (side + GAP);
  canvas.height = HEAD + lanes.length * (side + 2 * HEAD) + 8;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const style = getComputedStyle(document.body);
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.color;
  pen.font = "700 15px ui-sans-serif, system-ui, sans-serif";
  pen.fillText(caption, GAP, 26);
  lanes.forEach((lane, number) => {
    const top = HEAD + number * (side + 2 * HEAD) + HEAD;
    const views = [[lane.grid, `answer · ${lane.settings.method}`], [lane.map, lane.routed ? "who decides" : "how sure"],
      ...lane.voices.map((view, place) => [view, lane.settings.experts[place]])];
    if (lane.second && !lane.secondPanel.hidden) views.push([lane.second, `attempt 2 · ${lane.answer.alternative.by}`]);
    views.forEach(([view, title], place) => drawGrid(pen, view, GAP + place * (side + GAP), top, title));
  });
  return canvas;
}
