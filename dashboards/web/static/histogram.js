// Exchanges and bytes of a capture over time, with a brush that selects a part of it.

import { Brush } from "./brush.js";
import { onOverview } from "./overview.js";
import { counted, el, size } from "./page.js";
import { asField, day, exact, length, micros, moment, ofField, same } from "./period.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 100; // of the drawing, in its own units
const MS = 1000; // microseconds, the least that a field has
const LEAST = { tall: 3, small: 9 }; // of a bar that is there
const TICKS = 5; // times below the plot
const MEASURES = { exchanges: (count) => count.toLocaleString(), bytes: size };
const NOTHING = { first: 0, step: 1, exchanges: [], errors: [], bytes: [] };
const KEYS = "Drag, or use the arrow keys: left and right move the selection, with Shift they widen it, up and down widen and narrow it, Escape clears it.";

/** `changed(period)` is told of each selection; `small`: the plot and little else. */
export class Histogram {
  constructor({ changed, small = false }) {
    this.told = changed;
    this.small = small;
    this.found = NOTHING;
    this.measure = "exchanges";
    this.bars = document.createElementNS(SVG, "svg");
    this.bars.setAttribute("preserveAspectRatio", "none");
    this.bars.setAttribute("aria-hidden", "true");
    this.box = el("div", { class: "selected", hidden: true });
    this.plot = el(
      "div",
      { class: "plot", role: "slider", tabindex: "0", "aria-label": "selected time", "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0", title: KEYS },
      this.bars,
      this.box,
    );
    this.brush = new Brush(this.plot, { steps: () => this.steps, moved: () => this._mark(), changed: (period) => this._changed(period) });
    this.plot.addEventListener("pointermove", (event) => this._under(event));
    this.plot.addEventListener("pointerleave", () => this._say());
    this.axis = el("div", { class: "axis", "aria-hidden": "true" });
    this.words = el("p", { class: "reading", role: "status", "aria-live": "off" });
    this.clear = el("button", { type: "button", onclick: () => this._select(null), hidden: true }, "all times");
    this.element = el("div", { class: `histogram${small ? " small" : ""}` }, small ? null : this._choices(), this.plot, this.axis, el("div", { class: "below" }, this.words, this.clear));
    onOverview((overview) => this._show(overview));
  }

  get period() {
    return this.brush.period;
  }

  /** The steps of the plot, in microseconds. */
  get steps() {
    const { first, step, exchanges } = this.found;
    return { first: micros(first), step: micros(step), count: exchanges.length };
  }

  /** Select as the link says it; whether it is another selection than before. */
  open(period) {
    const other = !same(period, this.period);
    this.brush.set(period);
    return other;
  }

  _choices() {
    const radios = Object.keys(MEASURES).map((name) =>
      el("label", {}, el("input", { type: "radio", name: "measure", value: name, checked: name === this.measure, onchange: () => this._measure(name) }), ` ${name}`),
    );
    this.fields = ["since", "until"].map((name) =>
      el("input", { type: "datetime-local", step: "0.001", "data-name": name, onblur: () => this._typed(), onkeydown: (event) => event.key === "Enter" && this._typed() }),
    );
    const [since, until] = this.fields;
    this.legend = el("span", { class: "legend" }, el("i", {}), " with errors");
    return el("div", { class: "choices" }, radios, this.legend, el("label", {}, "from ", since), el("label", {}, "to ", until));
  }

  _measure(name) {
    this.measure = name;
    this.legend.hidden = name !== "exchanges";
    this._draw();
  }

  _show({ histogram, counted, whole, problem }) {
    this.state = problem || (whole ? "" : counted ? "looking for errors" : "counting");
    if (histogram) {
      this.found = histogram;
    }
    this._draw();
    this._mark();
  }

  _draw() {
    const { exchanges, errors } = this.found;
    const values = this.found[this.measure];
    const most = Math.max(1, ...values);
    const least = this.small ? LEAST.small : LEAST.tall;
    const high = (value, of) => (value ? Math.max(least, (HEIGHT * value) / of) : 0);
    this.bars.setAttribute("viewBox", `0 0 ${Math.max(1, values.length)} ${HEIGHT}`);
    while (this.bars.childElementCount < 2 * values.length) {
      this.bars.append(document.createElementNS(SVG, "rect"));
    }
    values.forEach((value, place) => {
      const all = high(value, most);
      const failed = errors[place] && this.measure === "exchanges" ? Math.min(all, Math.max(least, (all * errors[place]) / exchanges[place])) : 0;
      this._bar(2 * place, "all", place, all);
      this._bar(2 * place + 1, "failed", place, failed);
    });
  }

  _bar(number, kind, place, height) {
    const places = { class: kind, x: place + 0.05, y: HEIGHT - height, width: 0.9, height };
    for (const [name, value] of Object.entries(places)) {
      this.bars.children[number].setAttribute(name, value);
    }
  }

  /** The selection on the plot, in the fields and in words. */
  _mark() {
    const { first, step, count } = this.steps;
    const { bounds } = this.brush;
    const share = (us) => Math.min(1, Math.max(0, (us - first) / (step * (count || 1))));
    const [from, to] = bounds ? [share(bounds.since), share(bounds.until)] : [0, 1];
    this.box.hidden = !bounds || !count;
    this.box.style.left = `${100 * from}%`;
    this.box.style.width = `${100 * (to - from)}%`;
    this.clear.hidden = !bounds;
    this.plot.setAttribute("aria-valuemax", String(count));
    this.plot.setAttribute("aria-valuenow", String(Math.round(from * count)));
    this.plot.setAttribute("aria-valuetext", bounds ? this._told(bounds) : "all times");
    this._ticks();
    this._fill();
    this._say();
  }

  _ticks() {
    const { first, step, count } = this.steps;
    const drawn = `${first} ${step} ${count}`;
    if (drawn === this.drawn || !count) {
      return;
    }
    this.drawn = drawn;
    const times = Array.from({ length: TICKS }, (_, number) => first + Math.round((step * count * number) / (TICKS - 1)));
    this.axis.replaceChildren(...times.map((us) => el("span", {}, moment(us, step))));
  }

  _fill() {
    const { first, step, count } = this.steps;
    if (!this.fields || !count) {
      return;
    }
    const { since, until } = this.brush.bounds ?? { since: first, until: first + step * count };
    const texts = [asField(since), asField(until)];
    this.fields.forEach((field, number) => {
      if (document.activeElement !== field) {
        field.value = texts[number];
      }
      field.setAttribute("aria-invalid", "false");
    });
  }

  /** A time was typed: that of the field that differs from the selection counts. */
  _typed() {
    const { first, step, count } = this.steps;
    const bounds = this.brush.bounds ?? { since: first, until: first + step * count };
    const typed = { ...bounds };
    for (const { value, dataset } of this.fields) {
      const us = ofField(value);
      if (us !== bounds[dataset.name] - (bounds[dataset.name] % MS)) {
        typed[dataset.name] = us;
      }
    }
    if (same(typed, bounds)) {
      return;
    }
    const wrong = typed.since === null || typed.until === null || typed.since >= typed.until;
    this.fields.forEach((field) => field.setAttribute("aria-invalid", String(wrong)));
    if (wrong) {
      this._write("the first time has to be before the second");
    } else {
      this._select(typed);
    }
  }

  _select(period) {
    this.brush.set(period);
    this._changed(period);
  }

  _changed(period) {
    this._fill();
    this.told(period);
  }

  _under(event) {
    const { first, step, count } = this.steps;
    if (count && !this.brush.dragging && event.pointerType === "mouse") {
      const since = first + this.brush.place(event) * step;
      this._write(this._told({ since, until: since + step }));
    }
  }

  /** The selection in words; without one, all of the capture. */
  _say() {
    const { first, step, count } = this.steps;
    const bounds = this.brush.bounds ?? { since: first, until: first + step * count };
    this._write([count ? this._told(bounds) : "", this.state].filter(Boolean).join(" · "));
  }

  _told({ since, until }) {
    const { first, step, count } = this.steps;
    const [from, to] = [Math.floor((since - first) / step), Math.ceil((until - first) / step)].map((place) => Math.min(count, Math.max(0, place)));
    const sum = (name) => this.found[name].slice(from, to).reduce((total, value) => total + value, 0);
    const [exchanges, errors] = [sum("exchanges"), sum("errors")];
    const days = day(since) === day(until) ? "" : `${day(until)} `;
    const number = counted(exchanges, "exchange");
    if ((since - first) % step || (until - first) % step) {
      return `${day(since)} ${exact(since)} to ${days}${exact(until)} (${length(until - since)}): up to ${number}`;
    }
    const failed = errors ? `, ${errors.toLocaleString()} with errors` : "";
    return `${day(since)} ${moment(since, step)} to ${days}${moment(until, step)} (${length(until - since)}): ${number}${failed}, ${size(sum("bytes"))}`;
  }

  _write(text) {
    if (this.words.textContent !== text) {
      this.words.textContent = text;
    }
  }
}
