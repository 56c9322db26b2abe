// Attention by position: a row for each layer and head, and a cell for each position, whose opacity is its weight.

const MAX_POSITIONS_SHOWN = 64;

// Return the first position that is drawn, and a row of weights for each layer and head.
function attentionRows(player, analysis, step) {
  const first = Math.max(0, step - MAX_POSITIONS_SHOWN);
  const rows = attentionAt(player, analysis, step).flatMap((byHead, layer) => byHead.map((weights, head) => ({
    label: `layer ${layer + 1}, head ${head + 1}`,
    weights: weights.slice(first),
    earlier: weights.slice(0, first).reduce((sum, weight) => sum + weight, 0),
  })));
  return { first, step, rows };
}

function attentionTable(run, analysis, { first, rows }, cell) {
  const table = document.createElement("table");
  const heading = table.createTHead().insertRow();
  heading.append(headerCell("col", ""));
  for (let position = first; position < first + rows[0].weights.length; position++) {
    heading.append(headerCell("col", run.symbols[analysis.symbols[position]], `position ${position + 1}`));
  }
  const body = table.createTBody();
  rows.forEach(({ label, weights }, row) => {
    const line = body.insertRow();
    line.append(headerCell("row", label));
    weights.forEach((weight, index) => {
      const data = line.insertCell();
      data.title = percent(weight);
      Object.assign(data.dataset, { row, position: first + index });
      if (cell && cell.row === row && cell.position === first + index) data.className = "chosen";
      const ink = document.createElement("span");
      ink.style.opacity = weight;
      data.append(ink);
    });
  });
  return table;
}

function headerCell(scope, text, title = "") {
  const header = document.createElement("th");
  Object.assign(header, { scope, textContent: text, title });
  return header;
}

// Return the chosen cell after an arrow key, or null after another key. The first cell that is chosen is the newest one in the first row.
function movedCell(cell, key, { first, step, rows }) {
  const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[key] || [0, 0];
  if (!down && !right) return null;
  const start = cell || { row: -down, position: step - 1 - right };
  return drawnCell({ row: start.row + down, position: start.position + right }, { first, step, rows });
}

// Return the nearest cell that is drawn: another prefix or net may have fewer.
function drawnCell(cell, { first, step, rows }) {
  const between = (number, least, most) => Math.max(least, Math.min(most, number));
  return cell && { row: between(cell.row, 0, rows.length - 1), position: between(cell.position, first, step - 1) };
}

function attentionSentence(run, analysis, { first, rows }, cell) {
  if (!cell) return "Click on a cell, or press an arrow key, to read its weight here.";
  const { label, weights, earlier } = rows[cell.row];
  const symbol = run.symbols[analysis.symbols[cell.position]];
  const hidden = first ? ` The ${counted(first, "earlier position")} together: ${percent(earlier)}.` : "";
  return `In ${label}, position ${cell.position + 1} (${symbol}) gets ${percent(weights[cell.position - first])} ` +
    `of the attention.${hidden}`;
}

function attentionNote({ first, step }) {
  const more = first ? ` Only the newest ${MAX_POSITIONS_SHOWN} of ${step} positions are drawn.` : "";
  return `The attention of the last symbol read, by position. The more opaque a cell, the larger its weight.${more}`;
}
