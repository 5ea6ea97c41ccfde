// The kinds of marks of a timeline, as they are drawn; each can be hidden.

import { glyph, isWide, palette, sized, unread } from "./drawing.js";
import { el } from "./page.js";

const WIDTH = 18; // pixels of a sample
const HEIGHT = 28;
const INSET = 5; // pixels above and below the sample of a ground
const NARROW = "(max-width: 760px)";

export class Legend {
  /** `ofUnread`: what a grey ground means. */
  constructor(timeline, ofUnread) {
    Object.assign(this, { timeline, ofUnread });
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
    const failed = sampleOf({ shape: "dot", tone: "failed" }, colours);
    const ground = sample((pen) => unread(pen, colours, { x: 1, y: INSET, width: WIDTH - 2, height: HEIGHT - 2 * INSET }));
    this.kinds.replaceChildren(...items, el("span", {}, failed, "with an error"), el("span", {}, ground, this.ofUnread));
  }

  _kind(kind, look, colours) {
    const { timeline } = this;
    const shown = () => String(!timeline.hidden.has(kind));
    const button = el("button", { "aria-pressed": shown() }, sampleOf(look, colours), look.name);
    button.addEventListener("click", () => {
      timeline.toggle(kind);
      button.setAttribute("aria-pressed", shown());
    });
    return button;
  }
}

function sampleOf(look, colours) {
  return sample((pen) => glyph(pen, colours, look, { x: isWide(look.shape) ? 1 : WIDTH / 2, width: WIDTH - 2, y: 0 }));
}

function sample(draw) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  draw(sized(canvas, WIDTH, HEIGHT));
  return canvas;
}
