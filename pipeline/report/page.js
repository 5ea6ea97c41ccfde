"use strict";
const PAPER_PX = 680;  // A4 within its margins
const INK = "var(--ink)", FAINT = "var(--faint)", GRID = "var(--grid)";
const STYLE = {
  background: "transparent",
  font: "system-ui, sans-serif",
  axis: { labelColor: INK, labelFontSize: 12, titleColor: FAINT, titleFontSize: 12, titleFontWeight: "normal", gridColor: GRID, domainColor: GRID, tickColor: GRID },
  legend: { orient: "bottom", title: null, labelColor: INK, labelFontSize: 12, labelLimit: 220, symbolType: "square", symbolOpacity: 1 },
  view: { stroke: null },
};
(async () => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const packed = Uint8Array.from(atob(document.getElementById("vega").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  // `ast`: expressions are interpreted, for the page's policy lets no text become a function
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: STYLE };
  const drawn = await Promise.all(Object.entries(plots).map(([name, plot]) => vegaEmbed(`#plot-${name}`, plot, options)));

  const resize = (width) => {
    for (const { view } of drawn) view.width(width ?? view.container().clientWidth).run();
  };
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("paper");
    for (const one of document.querySelectorAll("details")) one.open = true;
    resize(PAPER_PX);
  });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("paper"); resize(); });
  document.documentElement.dataset.plots = drawn.length;
})();
