// The keys that work anywhere on the page; inside a grid or a control they belong to it.

const OWN_KEYS = "input, select, textarea, button, dialog, .grid, .text, summary, a";

// What a page does not have is left out: `solve`, `help`, `undo`, `redo`.
export function listenToKeys({ solve, player, help, undo, redo }) {
  const acts = {
    " ": () => player.toggle(),
    ArrowLeft: () => player.go(player.at - 1),
    ArrowRight: () => player.go(player.at + 1),
    Home: () => player.go(0),
    End: () => player.go(player.length),
    "?": help,
  };
  addEventListener("keydown", (event) => {
    if (solve && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      solve();
      return;
    }
    if (undo && (event.ctrlKey || event.metaKey) && ["z", "Z", "y"].includes(event.key) && !event.target.closest?.("input, textarea")) {
      event.preventDefault();
      (event.key === "z" && !event.shiftKey ? undo : redo)();
      return;
    }
    if (event.target.closest?.(OWN_KEYS) || event.ctrlKey || event.metaKey || event.altKey || !acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
}
