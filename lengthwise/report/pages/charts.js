const charts = $charts;
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const soft = color("--soft"), line = color("--line"), font = getComputedStyle(document.body).fontFamily;
  const config = {
    font, background: null, view: { stroke: null },
    axis: { labelColor: soft, titleColor: soft, titleFontWeight: "normal", gridColor: line, domainColor: line, tickColor: line },
    legend: { labelColor: soft, titleColor: soft, titleFontWeight: "normal" },
  };
  const theme = dark.matches ? "dark" : "light";
  for (const [id, spec] of Object.entries(charts))
    vegaEmbed(document.getElementById(id), spec, { actions: false, config, tooltip: { theme } });
}
dark.addEventListener("change", draw);
draw();
