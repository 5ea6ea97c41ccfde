// A table of figures that are refreshed while somebody reads: focus, scroll position and selection stay.

import { el } from "./page.js";

const NOTHING = new Set(["0", "0%", "0 B", "–"]);
const STILL_MS = 2000; // after the pointer moved over rows, in which these keep their places

/** `columns`: {key?, head, title?, align?, text(row), href?(row)}: with a `key` the table can be sorted by it, and
 * `href` makes a link. `of(row)` names a row, `sort(key)` is told of a head that was pressed. The first column
 * with a link is that of the row: a press anywhere in the row follows it. */
export class FigureTable {
  constructor({ label, columns, of, sort }) {
    this.columns = columns;
    this.of = of;
    this.rows = new Map();
    this.active = null; // the name of the row that Tab leads to
    this.still = 0;
    this.heads = columns.map((column) => this._head(column, sort));
    this.body = el("tbody", {});
    this.element = el("table", { class: "figures", "aria-label": label }, el("thead", {}, el("tr", {}, this.heads)), this.body);
    this.body.addEventListener("keydown", (event) => this._key(event));
    this.body.addEventListener("click", (event) => this._press(event));
    this.body.addEventListener("focusin", (event) => this._focused(event.target.closest("tr")));
    for (const name of ["pointermove", "pointerdown"]) {
      this.body.addEventListener(name, () => (this.still = Date.now() + STILL_MS));
    }
  }

  /** `sorted`: {key, down}; `chosen`: the name of a row. */
  update(rows, { sorted, chosen } = {}) {
    this.heads.forEach((head, index) => {
      const { key } = this.columns[index];
      const way = sorted && key === sorted.key ? (sorted.down ? "descending" : "ascending") : null;
      way ? head.setAttribute("aria-sort", way) : head.removeAttribute("aria-sort");
    });
    const wanted = rows.map((row) => this._fill(row, chosen));
    this._forget(new Set(wanted));
    this._arrange(Date.now() < this.still ? this._asBefore(wanted) : wanted);
    if (!this.rows.has(this.active)) {
      this._focused(this.body.firstElementChild);
    }
  }

  focus(name) {
    (this.rows.get(name) ?? this.body.firstElementChild)?.querySelector("a")?.focus();
  }

  _head({ key, head, title, align }, sort) {
    const inner = key && sort ? el("button", { onclick: () => sort(key), title }, head) : head;
    return el("th", { scope: "col", class: align, "data-column": key ?? head, title: key ? null : title }, inner);
  }

  _fill(row, chosen) {
    const name = this.of(row);
    let made = this.rows.get(name);
    if (!made) {
      made = el("tr", { "data-row": name }, this.columns.map((column) => this._cell(column)));
      this.rows.set(name, made);
    }
    this.columns.forEach(({ text, href }, index) => {
      const cell = made.children[index];
      const link = href?.(row) ?? "";
      const into = this._linked(cell, link);
      const words = text(row);
      if (into.textContent !== words) {
        into.textContent = words;
        cell.classList.toggle("nothing", NOTHING.has(words));
      }
    });
    if (name === chosen) {
      made.setAttribute("aria-current", "true");
    } else {
      made.removeAttribute("aria-current");
    }
    return made;
  }

  _cell({ key, head, align }) {
    return el("td", { class: align, "data-column": key ?? head });
  }

  /** The place for the text of a cell: the cell, or the link in it. */
  _linked(cell, href) {
    let link = cell.firstElementChild;
    if (!href) {
      link?.remove();
      return cell;
    }
    if (!link) {
      link = el("a", { tabindex: "-1" });
      cell.replaceChildren(link);
    }
    if (link.getAttribute("href") !== href) {
      link.setAttribute("href", href);
    }
    return link;
  }

  _forget(wanted) {
    for (const [name, row] of this.rows) {
      if (!wanted.has(row)) {
        const next = row.contains(document.activeElement) ? (row.nextElementSibling ?? row.previousElementSibling) : null;
        this.rows.delete(name);
        row.remove();
        next?.querySelector("a")?.focus({ preventScroll: true });
      }
    }
  }

  /** Rows that are there keep their places; new ones follow. */
  _asBefore(wanted) {
    const there = [...this.body.children];
    return [...there, ...wanted.filter((row) => !row.isConnected || row.parentElement !== this.body)];
  }

  /** Moves all rows but the one with the focus, which a move would take away. */
  _arrange(wanted) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    const middle = wanted.indexOf(focused);
    const put = (rows, from) => {
      let next = from;
      for (const row of rows) {
        if (row === next) {
          next = next.nextElementSibling;
        } else {
          this.body.insertBefore(row, next);
        }
      }
    };
    put(wanted.slice(0, Math.max(0, middle)), this.body.firstElementChild);
    put(wanted.slice(middle + 1), middle < 0 ? this.body.firstElementChild : focused.nextElementSibling);
  }

  _focused(row) {
    this.rows.get(this.active)?.querySelectorAll("a").forEach((link) => (link.tabIndex = -1));
    this.active = row?.dataset.row ?? null;
    row?.querySelectorAll("a").forEach((link) => (link.tabIndex = 0));
  }

  _key(event) {
    const rows = [...this.body.children];
    const at = rows.indexOf(event.target.closest("tr"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined && rows.length) {
      event.preventDefault();
      rows[Math.min(rows.length - 1, Math.max(0, to))].querySelector("a")?.focus();
    }
  }

  _press(event) {
    const link = event.target.closest("tr")?.querySelector("a");
    if (link && !event.target.closest("a") && getSelection().isCollapsed) {
      link.focus();
      link.click();
    }
  }
}
