// The keys that work anywhere on the page; inside a grid or a control they belong to it.

const OWN_KEYS = "input, select, textarea, button, dialog, .grid, summary, a";

export function listenToKeys({ solve, player, help }) {
  const acts = {
    " ": () => player.toggle(),
    ArrowLeft: () => player.go(player.at - 1),
    ArrowRight: () => player.go(player.at + 1),
    Home: () => player.go(0),
    End: () => player.go(player.length),
    "?": help,
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      solve();
      return;
    }
    if (event.target.closest?.(OWN_KEYS) || event.ctrlKey || event.metaKey || event.altKey || !(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  });
}
