// Pictures: the tree of states, and the probability of the answers.

const MAX_LEAVES_SHOWN = 64;

function svgNode(name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// Return a hue for each class, far from the hues of its neighbors.
function hueOf(number) {
  return (210 + 137.508 * number) % 360;
}

function tint(node, number) {
  if (number === null || number === undefined || number < 0) node.classList.add("plain");
  else node.style.setProperty("--hue", hueOf(number));
}

// Draw the tree over a prefix, or over its newest symbols if it is long; the root is at the top.
function treePicture(player, analysis, length) {
  const { run } = player;
  const root = treeOf(player, analysis, length);
  const first = Math.max(0, length - MAX_LEAVES_SHOWN);
  const [gapX, gapY, radius] = [26, 46, 10];
  const svg = svgNode("svg", { role: "img", "aria-label": `Tree over ${length} symbols` });
  const [branches, nodes] = [svgNode("g", {}), svgNode("g", {})];
  svg.append(branches, nodes);
  const y = (level) => 18 + (root.level - level) * gapY;
  let column = 0;
  function place(node) {
    if (node.end <= first) return null;
    const below = node.parts.map(place).filter((x) => x !== null);
    if (node.isPad && !(node.level === 0 && length < 9)) return null;
    const x = below.length ? (below[0] + below[below.length - 1]) / 2 : 16 + gapX * column++;
    below.forEach((to) => branches.append(svgNode("line", {
      class: "branch", x1: x, y1: y(node.level), x2: to, y2: y(node.level - 1),
    })));
    nodes.append(nodePicture(run, analysis, node, x, y(node.level), node === root ? radius + 3 : radius, node === root));
    return x;
  }
  place(root);
  const [width, height] = [32 + gapX * column, y(0) + 34];
  for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) {
    svg.setAttribute(key, value);
  }
  return svg;
}

function nodePicture(run, analysis, node, x, y, radius, isRoot) {
  const group = svgNode("g", {});
  if (node.isPad) {
    group.append(svgNode("circle", { class: "pad", cx: x, cy: y, r: 3 }));
    return group;
  }
  const circle = svgNode("circle", { cx: x, cy: y, r: radius });
  const color = run.machine ? node.stateClass : node.answer;
  tint(circle, color);
  if (isRoot) circle.classList.add("root");
  if (run.machine && node.stateClass !== node.machineClass) circle.classList.add("apart");
  const window = quoted(run, analysis.symbols.slice(node.begin, node.end));
  const named = run.machine ? `: ${className(run, node.stateClass)}` : "";
  group.append(svgNode("title", {}, `${window}${named}`), circle);
  if (run.machine) group.append(svgNode("text", { x, y: y + 4 }, String(node.stateClass)));
  if (node.symbol !== null) group.append(svgNode("text", { x, y: y + 26 }, run.symbols[node.symbol]));
  return group;
}

// Return the probability of the right answer, or of the net's own if the task has no machine; null without an answer.
function shareOf(run, prefix) {
  const answer = run.task ? prefix.taskAnswer : prefix.answer;
  if (run.task && answer === null) return null;
  return prefix.probabilities ? prefix.probabilities[answer] : 0;
}

// Draw a curve through points, with gaps at points that are null; a point between two gaps becomes a dot.
function curveThrough(points) {
  return points.map((point, index) => {
    if (!point) return "";
    const [x, y] = point;
    return index && points[index - 1] ? `L${x},${y}` : `M${x},${y}h0`;
  }).join("");
}

function chartPicture(run, analysis, step) {
  const [width, height, left, top] = [560, 120, 44, 10];
  const points = analysis.prefixes.map((prefix, index) => (
    { at: index + 1, share: shareOf(run, prefix), isWrong: prefix.isWrong }
  ));
  const count = Math.max(1, points.length - 1);
  const x = (at) => left + ((at - 1) / count) * (width - left - 12);
  const y = (share) => top + (1 - share) * (height - top - 26);
  const what = !run.task ? "the net's answer" : run.isLearned ? "the machine's answer" : "the right answer";
  const svg = svgNode("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Probability of ${what} after each prefix` });
  for (const share of [0, 0.5, 1]) {
    svg.append(svgNode("line", { class: "axis", x1: left, x2: width - 12, y1: y(share), y2: y(share) }));
    svg.append(svgNode("text", { x: 4, y: y(share) + 4 }, `${100 * share} %`));
  }
  const curve = curveThrough(points.map((p) => (p.share === null ? null : [x(p.at), y(p.share)])));
  svg.append(svgNode("path", { class: "line", d: curve }));
  for (const point of points.filter((p) => p.isWrong)) {
    svg.append(svgNode("circle", { class: "miss", cx: x(point.at), cy: y(point.share), r: 3 }));
  }
  if (step) svg.append(svgNode("line", { class: "now", x1: x(step), x2: x(step), y1: top, y2: height - 26 }));
  svg.append(svgNode("text", { x: left, y: height - 6 }, `Probability of ${what}, prefix by prefix`));
  return svg;
}
