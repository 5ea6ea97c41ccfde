// A list of which only the rows in sight are in the document: the same elements are filled again and again.

import { el } from "./page.js";

export const HEIGHT = 24; // pixels of a row, as in style.css
const SPARE = 8; // rows above and below
const REM = 16; // pixels
const GAP = 0.6; // rem between columns
const EDGE = 1.8; // rem left and right of a row

/** A column: {name, label, least, grow?, px?, align?, text(row)}. `select(number)` is told of the chosen row; `look(row)`
 * gives the classes of a row, `arrange` gets what was done in the head: move(name, place), resize(name, px). */
export class List {
  constructor(rows, columns, { select, look, arrange }) {
    this.rows = rows;
    this.select = select;
    this.look = look;
    this.arrange = arrange;
    this.follow = true;
    this.chosen = null;
    this.left = null; // the place at the top, in rows, while the list is out of the page
    this.own = null; // the place to which the list has scrolled itself, until it hears of it
    this.kept = false; // in sight, whatever becomes of the list's size, until somebody scrolls
    this.pool = [];
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.head = el("div", { class: "row head", role: "row" });
    this.space = el("div", { class: "space", role: "presentation" }, this.body);
    this.element = el(
      "div",
      { class: "list", role: "grid", tabindex: "0", "aria-label": "exchanges" },
      el("div", { role: "rowgroup", class: "heads" }, this.head),
      this.space,
    );
    this.head.addEventListener("pointerdown", (event) => this._grab(event));
    this.element.addEventListener("scroll", () => this._scrolled());
    this.element.addEventListener("keydown", (event) => this._key(event));
    // A row moves on between the press and the release of a button. A finger that is put down may want to scroll:
    // the list stays where it is, and the row is chosen when the finger goes.
    this.body.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse") {
        this.follow = false;
      } else if (!event.button) {
        this._press(event);
      }
    });
    this.body.addEventListener("click", (event) => event.pointerType !== "mouse" && this._press(event));
    this.sight = new ResizeObserver(() => {
      if (this.chosen !== null && this.kept) {
        this._reveal(this.chosen);
      }
      this.draw();
    });
    this.sight.observe(this.element);
    this.offset = 0;
    this.show(columns);
  }

  /** These columns from now on. */
  show(columns) {
    this.columns = columns;
    this.head.replaceChildren(
      ...columns.map(({ name, label, align }) =>
        el("span", { role: "columnheader", class: align, "data-column": name, title: name }, label, el("i", { class: "grip", "aria-hidden": "true" })),
      ),
    );
    const width = ({ px, least, grow }) => (px ? `${px}px` : grow ? `minmax(${least}rem, ${grow}fr)` : `${least}rem`);
    const rems = columns.reduce((sum, { px, least }) => sum + GAP + (px ? px / REM : least), EDGE - GAP);
    this.element.style.setProperty("--columns", columns.map(width).join(" "));
    this.element.style.setProperty("--row-width", `${rems}rem`);
    this._pool(0);
    this.draw();
  }

  /** Rows look different now, though they are the same. */
  renew() {
    this.pool.forEach((row) => (row.row = null));
    this.draw();
  }

  _press(event) {
    const row = event.target.closest(".row");
    if (row) {
      this.choose(Number(row.dataset.number));
    }
  }

  /** Draw at the next frame, however often it is asked. */
  draw() {
    if (!this.waiting) {
      this.waiting = requestAnimationFrame(() => {
        this.waiting = null;
        this._draw();
      });
    }
  }

  choose(number) {
    if (number < this.rows.first || number >= this.rows.end) {
      return;
    }
    this.chosen = number;
    this.follow = false;
    this.kept = true;
    this._space();
    this._reveal(number);
    this.draw();
    this.select(number);
  }

  /** The rows are gone, and others come. */
  anew(follow) {
    this.chosen = null;
    this.first = undefined;
    this._to(0);
    this.follow = follow;
    this.draw();
  }

  /** The list goes out of the page, where it has no place. */
  leave() {
    this.left = this.rows.first + this.element.scrollTop / HEIGHT;
  }

  /** It is in the page again, with the row at the top that was there. */
  back() {
    const { left, rows, element } = this;
    if (left !== null && !this.follow) {
      this._space();
      this._to(Math.max(0, left - rows.first) * HEIGHT);
      this.first = rows.first;
    }
    this.left = null;
  }

  toEnd() {
    this.follow = true;
    this.draw();
  }

  _draw() {
    const { rows, element } = this;
    if (!element.isConnected) {
      return;
    }
    if (this.first !== undefined && rows.first !== this.first && !this.follow) {
      element.scrollTop -= (rows.first - this.first) * HEIGHT; // the rows in sight stay where they are
    }
    this.first = rows.first;
    const count = this._space();
    element.setAttribute("aria-rowcount", String(count));
    const sight = Math.max(0, element.clientHeight - HEIGHT);
    if (this.follow) {
      this._to(Math.max(0, count * HEIGHT - sight));
    }
    const above = Math.max(0, Math.floor(element.scrollTop / HEIGHT) - SPARE);
    const shown = Math.min(count - above, Math.ceil(sight / HEIGHT) + 2 * SPARE);
    this._pool(Math.max(0, shown));
    this.body.style.transform = `translateY(${above * HEIGHT}px)`;
    this.pool.forEach((row, index) => this._fill(row, rows.first + above + index));
    const chosen = this.pool[this.chosen - rows.first - above];
    if (this.chosen !== null && chosen) {
      element.setAttribute("aria-activedescendant", chosen.id); // what screen readers read, for the focus stays on the list
    } else {
      element.removeAttribute("aria-activedescendant");
    }
  }

  /** Room for all rows; their number. */
  _space() {
    const count = this.rows.end - this.rows.first;
    this.space.style.height = `${count * HEIGHT}px`;
    return count;
  }

  _pool(count) {
    while (this.pool.length < count) {
      const cells = this.columns.map(({ name, align }) => el("span", { role: "gridcell", class: align, "data-column": name }));
      const row = el("div", { class: "row", role: "row" }, cells);
      row.cells = cells;
      row.words = el("span", { role: "gridcell", "aria-colspan": cells.length });
      this.pool.push(row);
      this.body.append(row);
    }
    while (this.pool.length > count) {
      this.pool.pop().remove();
    }
  }

  _fill(element, number) {
    const row = this.rows.at(number);
    const chosen = number === this.chosen;
    if (element.row !== row) {
      element.row = row;
      element.dataset.number = number;
      element.id = `row-${number}`;
      element.setAttribute("aria-rowindex", String(number + 1));
      if (row.note) {
        this._note(element, row);
      } else {
        this._exchange(element, row);
      }
    }
    element.setAttribute("aria-selected", String(chosen));
    element.classList.toggle("chosen", chosen);
  }

  _exchange(element, row) {
    if (element.words.parentElement) {
      element.replaceChildren(...element.cells);
      element.title = "";
    }
    element.dataset.api = row.api;
    element.dataset.client = row.client_id ?? "";
    element.dataset.error = Object.keys(row.errors ?? {}).join(" ");
    element.className = `row ${this.look(row)}`;
    this.columns.forEach(({ text }, index) => {
      element.cells[index].textContent = text(row);
    });
  }

  /** A row that is no exchange: its words take the place of all cells. */
  _note(element, { text }) {
    ["api", "client", "error"].forEach((name) => delete element.dataset[name]);
    element.className = "row note";
    element.title = element.words.textContent = text;
    element.replaceChildren(element.words);
  }

  /** An event follows where the place differs. One event may stand for this and for somebody's scroll behind it. */
  _to(top) {
    const before = this.element.scrollTop;
    this.element.scrollTop = top;
    const now = this.element.scrollTop;
    if (now !== before || now !== this.own) { // else the event of the last time is still to come
      this.own = now !== before ? now : null;
    }
  }

  _scrolled() {
    const { element, own } = this;
    this.own = null;
    if (element.scrollTop !== own) {
      this.kept = false;
      this.follow = element.scrollTop + element.clientHeight >= element.scrollHeight - HEIGHT;
      this.onfollow?.(this.follow);
    }
    this.draw();
  }

  _reveal(number) {
    const top = (number - this.rows.first) * HEIGHT;
    const sight = this.element.clientHeight - HEIGHT;
    const before = this.element.scrollTop;
    if (top < before) {
      this._to(top);
    } else if (top + HEIGHT > before + sight) {
      this._to(top + HEIGHT - sight);
    }
  }

  _key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / HEIGHT) - 2);
    const last = this.rows.end - 1;
    const from = this.chosen ?? last + 1;
    const to = {
      ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: this.rows.first, End: last,
    }[event.key];
    if (to !== undefined && last >= this.rows.first) {
      event.preventDefault();
      this.choose(Math.min(last, Math.max(this.rows.first, to)));
    }
  }

  /** The edge of a head changes the width of its column; the head itself moves it. */
  _grab(event) {
    const head = event.target.closest("[role=columnheader]");
    if (!head || event.button || event.pointerType !== "mouse") {
      return;
    }
    event.preventDefault();
    const { column } = head.dataset;
    const wide = event.target.className === "grip";
    const [from, width] = [event.clientX, head.offsetWidth];
    head.setPointerCapture(event.pointerId);
    const drag = (move) => {
      if (wide) {
        head.style.width = `${width + move.clientX - from}px`;
      } else {
        head.classList.toggle("moving", Math.abs(move.clientX - from) > SPARE);
      }
    };
    const drop = (up) => {
      head.removeEventListener("pointermove", drag);
      head.style.width = "";
      if (wide) {
        this.arrange.resize(column, width + up.clientX - from);
      } else if (head.classList.contains("moving")) {
        const heads = [...this.head.children].filter((other) => other !== head);
        this.arrange.move(column, heads.filter((other) => middle(other) < up.clientX).length);
      }
      head.classList.remove("moving");
    };
    head.addEventListener("pointermove", drag);
    head.addEventListener("pointerup", drop, { once: true });
  }
}

function middle(element) {
  const { left, width } = element.getBoundingClientRect();
  return left + width / 2;
}
