addEventListener("beforeprint", () => {  // on paper nothing can be unfolded
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    addEventListener("afterprint", () => { folded.open = false; }, { once: true });
  }
});
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((heading, column) => {
    let up = true;
    const sort = () => {
      const value = row => {
        const text = row.cells[column].textContent.trim(), number = parseFloat(text.replace(/,/g, ""));
        return /^[-+]?[0-9]/.test(text) && !/[a-f]/i.test(text) ? number : text;
      };
      const rows = [...body.rows].sort((one, other) => {
        const a = value(one), b = value(other);
        const order = typeof a == typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a == "number" ? -1 : 1;
        return up ? order : -order;
      });
      up = !up;
      body.append(...rows);
    };
    heading.tabIndex = 0;
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", event => { if (event.key == "Enter") sort(); });
  });
}
