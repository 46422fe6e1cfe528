// A task of one's own outlives a reload: it is kept in this browser until another task is opened.

const KEY = "draft";

export function keepDraft(state) {
  if (!state.edited) { localStorage.removeItem(KEY); return; }
  const { task, edited, test, given, settings } = state;
  localStorage.setItem(KEY, JSON.stringify({ version: state.version, task, edited, test, given, settings }));
}

export function keptDraft() {
  try {
    return JSON.parse(localStorage.getItem(KEY));
  } catch {
    return null; // whatever it was, it is no task
  }
}
