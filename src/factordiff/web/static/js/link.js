// What a link restores, packed into its address.

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

export async function packed(state) {
  const found = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  return btoa(String.fromCharCode(...found)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function unpacked(text) {
  try {
    const found = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), found)));
  } catch {
    throw new Error("This link is damaged: part of it may be missing. The page starts afresh.");
  }
}

// Put a link to this state into the address and the clipboard; the button says what became of it.
export async function copyLink(state, button) {
  const link = `${location.origin}${location.pathname}#s=${await packed(state)}`;
  const usual = button.textContent;
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(link);
    button.textContent = "Copied";
  } catch {
    button.textContent = "In the address bar";
  }
  setTimeout(() => { button.textContent = usual; }, 2000);
}
