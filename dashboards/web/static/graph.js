// The chosen node and the nodes that it talks to: a line for each edge, with its figures.

import { el } from "./page.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const MOST = 10; // neighbours on each side; the others are in the table
const STEP = 50; // pixels from one neighbour to the next
const BOX = 32; // height of a node
const WIDE = 560; // pixels; in less, neighbours stand below the chosen node
const LETTER = 6.9; // pixels, on average
const THIN = 1.2, THICK = 9;

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(NAMESPACE, tag);
  set(made, attributes);
  made.append(...children);
  return made;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== String(value)) {
      element.setAttribute(name, value);
    }
  }
}

function write(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** The class that colours an edge by its share of errors. */
export function severity(share) {
  if (!share) {
    return "fine";
  }
  return share < 0.01 ? "few" : share < 0.1 ? "some" : "many";
}

/** `href(row)` leads to a neighbour; `figures(row)`: the two lines of text on its edge; `named(row)`: its name. */
export class Graph {
  constructor({ href, figures, named }) {
    Object.assign(this, { href, figures, named });
    this.middle = this._node("middle");
    this.edges = [];
    this.trunk = svg("path", { class: "trunk" });
    this.lines = svg("g", {}, this.trunk);
    this.nodes = svg("g", {}, this.middle.element);
    this.rest = svg("text", { class: "rest" });
    this.picture = svg("svg", { role: "img" }, this.lines, this.nodes, this.rest);
    this.element = el(
      "figure",
      { class: "graph" },
      this.picture,
      el(
        "figcaption",
        {},
        "Width: requests. Colour: share of errors: ",
        [["fine", "none"], ["few", "below 1%"], ["some", "below 10%"], ["many", "more"]].map(([name, text]) => el("span", { class: name }, text)),
      ),
    );
    new ResizeObserver(() => this.drawn && this.draw(...this.drawn)).observe(this.element);
  }

  /** `right` and `left`: the rows of neighbours, the busiest first; there are `further` ones. */
  draw(row, left, right, further = 0) {
    this.drawn = [row, left, right, further];
    const width = Math.max(280, this.element.clientWidth);
    const sides = [left, right].map((rows) => [...rows.slice(0, MOST)].sort((one, other) => this.named(one).localeCompare(this.named(other), "en", { numeric: true })));
    const most = Math.max(1, ...sides.flat().map(({ requests }) => requests ?? 0));
    const places = width < WIDE ? this._below(width, sides) : this._beside(width, sides);
    this._place(this.middle, row, places.middle);
    set(this.trunk, { d: places.trunk ?? "" });
    this._pool(places.edges.length);
    places.edges.forEach((place, index) => this._edge(this.edges[index], place, most));
    const more = left.length + right.length - sides.flat().length + further;
    write(this.rest, more ? `and ${more.toLocaleString("en")} more` : "");
    set(this.rest, { x: width / 2, y: places.height - 4 });
    const height = places.height + (more ? 8 : 0);
    const words = sides.flat().map((one) => this.named(one)).join(", ");
    set(this.picture, { width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": `${this.named(row)} talks to ${words || "nobody"}. The table below has the same figures.` });
  }

  /** Neighbours left and right of the chosen node; it stands at the left where it has none there. */
  _beside(width, [left, right]) {
    const height = Math.max(1, left.length, right.length) * STEP + 24;
    const both = left.length && right.length;
    const box = Math.min(190, Math.max(100, width * (both ? 0.17 : 0.22)));
    const x = both ? (width - box) / 2 : left.length ? width - box : 0;
    const middle = { x, y: height / 2, width: box };
    const column = (rows, at) =>
      rows.map((row, index) => {
        const y = (height - rows.length * STEP) / 2 + (index + 0.5) * STEP;
        const begin = at < x ? x : x + box;
        const end = at < x ? at + box : at;
        const turn = begin + (end - begin) * 0.4;
        const path = `M${begin},${height / 2} C${begin + (turn - begin) * 0.6},${height / 2} ${begin + (turn - begin) * 0.4},${y} ${turn},${y} L${end},${y}`;
        return { row, path, text: { x: end + (begin - end) * (both ? 0.5 : 0.42), y }, node: { x: at, y, width: box } };
      });
    return { height, middle, edges: [...column(left, 0), ...column(right, width - box)] };
  }

  /** Neighbours below each other, on a trunk that begins at the chosen node. */
  _below(width, sides) {
    const box = width * 0.5;
    const middle = { x: 0, y: BOX / 2 + 4, width: box };
    const edges = sides.flat().map((row, index) => {
      const y = BOX + STEP * (index + 1) - 8;
      return { row, path: `M14,${y} L${width - box},${y}`, text: { x: 20 + (width - box - 20) / 2, y }, node: { x: width - box, y, width: box } };
    });
    const trunk = edges.length ? `M14,${BOX + 4} L14,${edges.at(-1).text.y}` : "";
    return { height: BOX + STEP * (edges.length + 0.6), middle, edges, trunk };
  }

  _node(name) {
    const title = svg("title");
    const box = svg("rect", { height: BOX, rx: 6 });
    const text = svg("text", { class: "name" });
    return { title, box, text, element: svg("g", { class: `end ${name}` }, title, box, text) };
  }

  _place(node, row, { x, y, width }) {
    const name = this.named(row);
    const most = Math.max(6, Math.floor((width - 14) / LETTER));
    write(node.title, `${row.kind} ${name}`);
    write(node.text, name.length > most ? `${name.slice(0, most - 1)}…` : name);
    set(node.box, { x, y: y - BOX / 2, width });
    set(node.text, { x: x + width / 2, y: y + 4 });
  }

  _pool(many) {
    while (this.edges.length < many) {
      const node = this._node("neighbour");
      const [line, above, below] = [svg("path"), svg("text", { class: "amount" }), svg("text", { class: "amount" })];
      const edge = { node, line, above, below };
      node.element.addEventListener("click", () => (location.hash = edge.href));
      this.lines.append(line, above, below);
      this.nodes.append(node.element);
      this.edges.push(edge);
    }
    for (const { node, line, above, below } of this.edges.splice(many)) {
      [node.element, line, above, below].forEach((part) => part.remove());
    }
  }

  _edge(edge, { row, path, text, node }, most) {
    const requests = row.requests ?? 0;
    const thick = THIN + (THICK - THIN) * Math.sqrt(requests / most);
    set(edge.line, { d: path, "stroke-width": thick.toFixed(1), class: `edge ${severity(row.share)}${requests ? "" : " idle"}` });
    const [above, below] = this.figures(row);
    write(edge.above, above);
    write(edge.below, below);
    set(edge.above, { x: text.x, y: text.y - thick / 2 - 4 });
    set(edge.below, { x: text.x, y: text.y + thick / 2 + 12 });
    edge.href = this.href(row);
    this._place(edge.node, row, node);
  }
}
