// Hits of rules over time, as small curves: klamm tells counts only, so the page remembers them while it is open.

const NAMESPACE = "http://www.w3.org/2000/svg";
const KEPT = 120; // looks
const LEAST = 30; // looks that take the whole width
const [WIDTH, HEIGHT] = [120, 22];

export class Curves {
  constructor() {
    this.looks = new Map(); // by rule: [{at, hits}], oldest first
  }

  /** The hits by rule of one look, at `at` milliseconds. A rule that begins anew, or is gone, is forgotten. */
  look(counts, at) {
    [...this.looks.keys()].filter((name) => !(name in counts)).forEach((name) => this.looks.delete(name));
    for (const [name, hits] of Object.entries(counts)) {
      const known = this.looks.get(name) ?? [];
      if (known.length && hits < known.at(-1).hits) {
        known.length = 0;
      }
      known.push({ at, hits });
      known.splice(0, known.length - KEPT);
      this.looks.set(name, known);
    }
  }

  /** Hits in each second between two looks, oldest first. */
  rates(name) {
    const known = this.looks.get(name) ?? [];
    return known.slice(1).map(({ at, hits }, index) => ((hits - known[index].hits) * 1000) / Math.max(1, at - known[index].at));
  }

  element(name) {
    const rates = this.rates(name);
    const most = Math.max(...rates, 0);
    const now = rates.at(-1) ?? 0;
    const words = rates.length ? `${now.toFixed(now < 10 ? 1 : 0)} hits/s, at most ${most.toFixed(most < 10 ? 1 : 0)}` : "hits from now on";
    const svg = make("svg", { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": words });
    const title = make("title", {});
    title.textContent = words;
    const step = WIDTH / Math.max(LEAST, rates.length - 1);
    const from = WIDTH - (rates.length - 1) * step;
    const points = rates.map((rate, index) => `${(from + index * step).toFixed(1)},${(HEIGHT - 1 - (most ? (rate / most) * (HEIGHT - 3) : 0)).toFixed(1)}`);
    svg.append(title, make("polyline", { points: points.join(" ") }));
    return svg;
  }
}

function make(tag, attributes) {
  const made = document.createElementNS(NAMESPACE, tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  return made;
}
