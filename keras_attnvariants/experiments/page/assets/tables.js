"use strict";

/* Sorts tables by a column: its heading is a button, and says in `aria-sort` how. */
(() => {
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = cell.textContent.trim();
    return text === "–" ? null : text;
  };

  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });

  const sort = (heading, first) => {
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const turned = { ascending: "descending", descending: "ascending" };
    const order = turned[heading.getAttribute("aria-sort")] ?? first;
    for (const other of heading.parentNode.cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
    // What has no value comes last in both orders.
    rows.sort(([a], [b]) =>
      a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b),
    );
    body.append(...rows.map(([, row]) => row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const button of table.querySelectorAll("thead button")) {
      button.addEventListener("click", () =>
        sort(button.closest("th"), button.dataset.first),
      );
    }
  }
})();
