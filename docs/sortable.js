// A click on a column's name sorts a table of results by it, a second one the other way; so does the Enter key.

const numberIn = (text) => {
  const found = text.replaceAll(",", "").match(/-?\d+(\.\d+)?/);
  return found ? Number(found[0]) : null;
};

function compared(left, right) {
  const [a, b] = [numberIn(left), numberIn(right)];
  if (a !== null && b !== null && a !== b) return a - b;
  return left.localeCompare(right);
}

function makeSortable(table) {
  const headers = [...table.querySelectorAll("thead th")];
  headers.forEach((header, column) => {
    header.tabIndex = 0;
    header.title = "Sort by this column";
    header.style.cursor = "pointer";
    const sort = () => {
      const body = table.tBodies[0];
      const descending = header.getAttribute("aria-sort") !== "descending";
      const lines = [...body.rows].sort((a, b) => compared(a.cells[column].textContent, b.cells[column].textContent));
      body.replaceChildren(...(descending ? lines.reverse() : lines));
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    };
    header.addEventListener("click", sort);
    header.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sort();
    });
  });
}

document.querySelectorAll("article table").forEach((table) => {
  if (table.tBodies.length && table.tBodies[0].rows.length > 2) makeSortable(table);
});
