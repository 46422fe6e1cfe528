// What of a text is hidden: a flag for each character, which an edit moves along with it.

export function flagsOf(text, stretches) {
  const flags = Array(text.length).fill(false);
  for (const [begin, end] of stretches) flags.fill(true, begin, end);
  return flags;
}

export function stretchesOf(flags) {
  const found = [];
  flags.forEach((hidden, place) => {
    if (!hidden) return;
    if (found.length && found.at(-1)[1] === place) found.at(-1)[1]++;
    else found.push([place, place + 1]);
  });
  return found;
}

// The flags after an edit: what stands before and behind it keeps its own; what is new is shown.
export function carried(flags, before, after) {
  const most = Math.min(before.length, after.length);
  let same = 0;
  while (same < most && before[same] === after[same]) same++;
  let behind = 0;
  while (behind < most - same && before.at(-1 - behind) === after.at(-1 - behind)) behind++;
  return [...flags.slice(0, same), ...Array(after.length - same - behind).fill(false), ...flags.slice(flags.length - behind)];
}

// The text as the experts read it: four spaces for a tab, a question mark for each letter that they do not know.
export function readable(text, letters) {
  let unknown = 0;
  const found = Array.from(text.replaceAll("\r\n", "\n").replaceAll("\t", "    "), (letter) => {
    if (letters.includes(letter)) return letter;
    if (letter.trim() === "") return " ";
    unknown++;
    return "?";
  }).join("");
  return { text: found, unknown };
}
