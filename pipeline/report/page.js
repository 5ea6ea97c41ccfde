"use strict";
const PAPER_PX = 680;  // A4 within its margins
(async () => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const coloured = (value) => {
    if (Array.isArray(value)) return value.map(coloured);
    if (value === null || typeof value !== "object") return value;
    if ("css" in value) return css(value.css);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, coloured(inner)]));
  };
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const config = { responsive: true, displayModeBar: false };
  const draw = (width) => Promise.all(Object.entries(plots).map(([name, { data, layout }]) => {
    const size = width === undefined ? { autosize: true } : { width, autosize: false };
    return Plotly.react(`plot-${name}`, coloured(data), { ...coloured(layout), ...size }, config);
  }));

  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  await draw();
  document.documentElement.dataset.plots = Object.keys(plots).length;

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("paper");
    for (const one of document.querySelectorAll("details")) one.open = true;
    draw(PAPER_PX);
  });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("paper"); draw(); });
})();
