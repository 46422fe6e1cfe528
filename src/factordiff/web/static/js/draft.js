// The task outlives a reload: one of one's own as it is drawn, with its settings; of one that was chosen, its name.

const KEY = "draft";

export function keepDraft(state) {
  const { version, task, edited, test, given, settings } = state;
  const { id, source, number } = task;
  localStorage.setItem(KEY, JSON.stringify(edited ? { version, task, edited, test, given, settings } : { version, task: { id, source, number } }));
}

export function keptDraft() {
  try {
    return JSON.parse(localStorage.getItem(KEY));
  } catch {
    return null; // whatever it was, it is no task
  }
}
