// Palette and theme: attributes of the page, remembered in this browser.

const choices = { palette: ["arc", "safe"], theme: ["auto", "light", "dark"] };

function use(kind, name) {
  const chosen = choices[kind].includes(name) ? name : choices[kind][0];
  document.documentElement.dataset[kind] = chosen;
  document.getElementById(kind).value = chosen;
  localStorage.setItem(kind, chosen);
}

export const usePalette = (name) => use("palette", name);
export const useTheme = (name) => use("theme", name);

export function rememberedLooks() {
  usePalette(localStorage.getItem("palette"));
  useTheme(localStorage.getItem("theme"));
}
