// The kinds of marks of a timeline, as they are drawn; each can be hidden.

import { glyph, isWide, palette, sized } from "./drawing.js";
import { el } from "./page.js";

const WIDTH = 18; // pixels of a sample
const HEIGHT = 28;
const NARROW = "(max-width: 760px)";

export class Legend {
  constructor(timeline) {
    this.timeline = timeline;
    this.kinds = el("div", { class: "kinds", role: "group", "aria-label": "kinds of marks" });
    this.element = el("details", { class: "legend", open: !matchMedia(NARROW).matches }, el("summary", {}, "legend"), this.kinds);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  draw() {
    const { kinds } = this.timeline;
    if (!this.element.isConnected) {
      return;
    }
    const colours = palette(this.element, Object.values(kinds).map(({ tone }) => tone));
    const named = Object.entries(kinds).filter(([kind]) => kind !== "other");
    const items = named.map(([kind, look]) => this._kind(kind, look, colours));
    const failed = sample({ shape: "dot", tone: "failed" }, colours);
    this.kinds.replaceChildren(...items, el("span", {}, failed, "with an error"));
  }

  _kind(kind, look, colours) {
    const { timeline } = this;
    const shown = () => String(!timeline.hidden.has(kind));
    const button = el("button", { "aria-pressed": shown() }, sample(look, colours), look.name);
    button.addEventListener("click", () => {
      timeline.toggle(kind);
      button.setAttribute("aria-pressed", shown());
    });
    return button;
  }
}

function sample(look, colours) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  glyph(sized(canvas, WIDTH, HEIGHT), colours, look, { x: isWide(look.shape) ? 1 : WIDTH / 2, width: WIDTH - 2, y: 0 });
  return canvas;
}
