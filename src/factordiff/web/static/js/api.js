// The server, as the page sees it. Whatever goes wrong becomes an Error whose message is a sentence.

const BASE = "api/v1";

async function refusal(response) {
  try {
    const { reason } = await response.json();
    if (reason) return new Error(reason);
  } catch { /* not JSON: say what we know */ }
  return new Error(`The server answered with status ${response.status}.`);
}

async function get(path) {
  let response;
  try {
    response = await fetch(`${BASE}/${path}`);
  } catch {
    throw new Error("The server cannot be reached. Is `factordiff play` still running?");
  }
  if (!response.ok) throw await refusal(response);
  return response.json();
}

export const about = () => get("about");
export const stories = () => get("stories");
export const texts = () => get("texts"); // what there is for texts
export const methods = async (experts) => (await get(`methods?experts=${experts.map(encodeURIComponent).join(",")}`)).methods;
export const tasks = async () => (await get("tasks")).tasks;
export const task = async (id, source, number) =>
  (await get(`tasks/${encodeURIComponent(id)}?source=${encodeURIComponent(source)}&number=${number}`)).task;

// Every event of a run's stream goes to onEvent. Aborting the signal frees the server's worker.
async function run(path, request, onEvent, signal) {
  let response;
  try {
    response = await fetch(`${BASE}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("The server cannot be reached. Is `factordiff play` still running?");
  }
  if (!response.ok) throw await refusal(response);
  let rest = "";
  let ended = false;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (signal?.aborted) throw error;
      return { done: true }; // the server went away
    });
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const event = JSON.parse(line);
      if (event.event === "error") throw new Error(event.reason);
      ended ||= event.event === "answer" || event.event === "second";
      onEvent(event);
    }
  }
  if (!ended) throw new Error("The connection ended before the answer came. Is `factordiff play` still running?");
}

export const solve = (...asked) => run("solve", ...asked);
export const infill = (...asked) => run("infill", ...asked);
export const tell = (...asked) => run("tell", ...asked); // one run of a story
