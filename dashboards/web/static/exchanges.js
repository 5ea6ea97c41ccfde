// The list of exchanges, and the chosen one beside it.

import { Acted } from "./acted.js";
import { Columns, WIDE } from "./columns.js";
import { Comparing } from "./comparing.js";
import { words } from "./empty.js";
import { details } from "./exchange.js";
import { Exports } from "./exports.js";
import { fates } from "./fates.js";
import { Filter } from "./filter.js";
import { Got } from "./got.js";
import { Hiding } from "./hiding.js";
import { Histogram } from "./histogram.js";
import { HEIGHT, List } from "./list.js";
import { Notes, noteOf } from "./notes.js";
import { counted, el, stream } from "./page.js";
import { asLink, ofLink, query } from "./period.js";
import { MOST, Rows, isExchange } from "./rows.js";
import { Seen } from "./seen.js";
import { Trying } from "./trying.js";

const NONE = { dropped: 0, unjudged: 0, hidden: 0 };

function outcome(row) {
  if (row.origin === "klamm" || fates(row).length) {
    return "by-klamm";
  }
  if (row.unanswered) {
    return "unanswered";
  }
  return Object.keys({ ...row.errors, ...row.undecodable }).length ? "failed" : "";
}

/** `head` shows the state of the source; `parameters` are those of the link; `noise`: kinds that can be hidden. */
export class Exchanges {
  constructor(about, head, remember, noise) {
    this.about = about;
    this.head = head;
    this.remember = remember;
    this.rows = new Rows();
    this.notes = new Notes();
    this.waiting = [];
    this.shown = null; // the key of an exchange
    this.apis = new Set();
    this.frozen = about.kind === "capture";
    this.lost = { ...NONE };
    this.seen = new Seen();
    this.got = about.kind === "live" ? new Got() : null;
    this.filter = new Filter((text) => {
      this._remember(text !== this.asked.where && !this.refused); // the next filter takes the place of a wrong one
      this.restart();
    }, this.seen);
    this.hiding = new Hiding(() => {
      this._remember();
      this.restart();
    });
    this.hiding.offer(noise);
    this.times = about.kind === "capture" ? new Histogram({ small: true, changed: () => this._selected() }) : null;
    this.acted = new Acted();
    this.comparing = new Comparing();
    this.trying = new Trying({
      list: () => ({ ...this.wanted(), keys: () => this.rows.keys() }),
      marked: () => this.list?.renew(),
      live: about.kind === "live",
    });
    this.columns = new Columns({ changed: (more) => this._arranged(more), apis: () => [...this.apis] });
    this.list = new List(this.rows, this._columns(), {
      select: (number) => this._selectRow(this.rows.at(number)),
      look: (row) => [outcome(row), this.acted.look(row), this.trying.look(row)].filter(Boolean).join(" "),
      arrange: this.columns,
    });
    this.list.follow = about.kind === "live";
    WIDE.addEventListener("change", () => this.list.show(this._columns()));
    this.list.onfollow = () => this._say();
    this.freezing = el("button", { onclick: () => this._freeze(!this.frozen), "aria-pressed": "false" }, "freeze");
    this.end = el("button", { onclick: () => this.list.toEnd() }, "to the newest");
    this.clear = el("button", { onclick: () => this._forget() }, "clear");
    this.count = el("p", { class: "count", role: "status", "aria-live": "off" });
    this.empty = el("p", { class: "empty", role: "status" });
    this.detail = el("section", { class: "detail", "aria-label": "exchange", hidden: true });
    this.exports = about.kind === "capture" ? new Exports({ wanted: () => this.wanted() }) : null;
    const live = about.kind === "live" ? [this.freezing, this.end, this.clear] : [];
    this.frozen = false;
    this.element = el(
      "div",
      { class: "exchanges" },
      this.seen.lists,
      el("div", { class: "bar" }, this.filter.element, this.hiding.element, this.columns.element, this.trying.panel, this.exports?.panel(), live, this.count, this.acted.element),
      this.trying.told,
      this.times?.element,
      el("div", { class: "split", onkeydown: (event) => this._key(event) }, this.list.element, this.empty, this.detail),
    );
  }

  close() {
    this.list.leave();
    this.left = this.detail.scrollTop;
  }

  open(parameters) {
    this.list.back();
    const where = (parameters.get("where") ?? "").trim();
    const more = this.columns.open(parameters.get("columns") ?? "");
    const others = this.hiding.open(parameters.get("hide") ?? "");
    const otherTime = this.times?.open(ofLink(parameters));
    if (!this.running || more || others || otherTime || where !== this.asked.where) {
      this.filter.show(where);
      this.restart();
    }
    this.list.show(this._columns());
    const key = parameters.get("exchange");
    if (!key) {
      this._hide();
    } else if (key !== this.shown) {
      this.show(key);
    } else if (this.left) {
      this.detail.scrollTop = this.left;
    }
    this.left = 0;
    this._remember();
    this.list.draw();
  }

  /** What is shown, as the address has it. */
  address() {
    return { ...this.wanted(), columns: this.columns.text, exchange: this.shown };
  }

  /** The link to the list as it is. */
  link() {
    return `#exchanges${query(this.address())}`;
  }

  _remember(entry = false) {
    this.remember(this.address(), entry);
  }

  /** The exchanges that the list has: its filter, what is hidden and, of a capture, the time. */
  wanted() {
    return { where: this.filter.text, hide: this.hiding.text, ...asLink(this.times?.period) };
  }

  _selected() {
    this._remember();
    this.restart();
  }

  restart() {
    this.running?.abort();
    this.running = new AbortController();
    this.exports?.tell();
    this.asked = this.wanted();
    this.refused = false;
    this.filter.say("");
    this.got?.clear();
    this._clear();
    this._read(this.running.signal);
  }

  /** Read until another filter is set. */
  _read(signal) {
    const wanted = { ...this.wanted(), fields: this.columns.ask() };
    return stream(() => `/api/rows${query({ ...wanted, ...this.got?.asked() })}`, signal, {
      take: (batch) => this._take(batch),
      refused: (reason) => this._refuse(reason),
      away: (problem) => this.head({ problem }),
      once: this.about.kind === "capture",
    });
  }

  /** The filter, or another part of the link, has a mistake: nothing is known about the exchanges. */
  _refuse(reason) {
    this.refused = true;
    this.filter.say(reason);
    this._say();
  }

  _take(batch) {
    if (batch.state || batch.problem) {
      this.head(batch);
      this.reading = batch.state === "reading";
    }
    this.lost.dropped += batch.dropped ?? 0;
    this.lost.unjudged += batch.unjudged ?? 0;
    this.lost.hidden += batch.hidden ?? 0;
    this.whole = this.whole || batch.whole;
    this.more = this.more || batch.more;
    const rows = batch.rows ?? [];
    this.got?.add(rows, batch.again);
    this.acted.add(rows);
    this.seen.add(rows);
    rows.forEach(({ api }) => this.apis.add(api));
    const items = [...this.notes.of(batch), ...rows];
    if (this.frozen && !batch.again) {
      this.waiting.push(...items);
      this.waiting.splice(0, this.waiting.length - MOST);
    } else {
      this.rows.add(items);
      this.list.draw();
      this.look = rows.length && this.look?.() ? null : this.look;
    }
    this._say();
  }

  _say() {
    this.end.hidden = this.list.follow;
    this._sayEmpty();
    const told = this.refused ? [] : [counted(this.rows.count, "exchange")];
    const older = (this.got?.older ?? 0) - this.rows.gone;
    if (older > 0) {
      told.push(`${older.toLocaleString()} of them from before, not all`);
    }
    this.count.title = older > 0 ? "Of the exchanges from before this filter was set or the page was loaded, these are the ones that the list had got." : "";
    if (this.more) {
      told.push(`the first ${MOST.toLocaleString()} are shown: filter for the others`);
    }
    const more = this.frozen ? this.waiting.filter(isExchange).length : 0;
    if (more) {
      told.push(`${more.toLocaleString()} new`);
    }
    if (this.lost.hidden) {
      told.push(`${this.lost.hidden.toLocaleString()} hidden`);
    }
    if (this.lost.dropped) {
      told.push(`${this.lost.dropped.toLocaleString()} left out: they came too fast`);
    }
    if (this.lost.unjudged) {
      told.push(`${counted(this.lost.unjudged, "frame")} left out: the filter takes too much work on them`);
    }
    this.count.textContent = told.join(" · ");
  }

  _sayEmpty() {
    const { asked, whole, refused, frozen, reading } = this;
    const text = this.rows.count || !asked ? "" : words({ live: this.about.kind === "live", asked, whole, refused, frozen, reading });
    this.empty.style.top = `${HEIGHT * (1 + this.rows.notes)}px`; // below the head and the notes
    if (this.empty.textContent !== text) {
      this.empty.textContent = text;
    }
  }

  _freeze(frozen) {
    this.frozen = frozen;
    this.freezing.setAttribute("aria-pressed", String(frozen));
    this.freezing.textContent = frozen ? "go on" : "freeze";
    if (!frozen) {
      this.rows.add(this.waiting);
      this.waiting = [];
      this.list.draw();
    }
    this._say();
  }

  /** What was shown does not come again with another filter either. */
  _forget() {
    this.got.forget();
    this._clear();
  }

  _clear() {
    this.rows.clear();
    this.notes.clear();
    this.waiting = [];
    this.lost = { ...NONE };
    this.whole = this.more = false;
    this.acted.clear();
    this.apis.clear();
    this.trying.clear();
    this.list.anew(this.about.kind === "live");
    this._say();
  }

  /** Of all columns, the few that are shown beside an open exchange. */
  _columns() {
    return this.detail && !this.detail.hidden ? this.columns.brief() : this.columns.all();
  }

  _arranged(more) {
    this._remember();
    if (more) {
      this.restart();
    }
    this.list.show(this._columns());
  }

  _key(event) {
    if (event.key === "Escape" && !this.detail.hidden && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      this._close();
    }
  }

  _hide() {
    this.shown = null;
    this._detail(false);
  }

  _detail(open) {
    if (this.detail.hidden === open) {
      this.detail.hidden = !open;
      this.list.show(this._columns());
    }
  }

  /** A row was chosen: an exchange, or a note, which takes the place of what was shown. */
  _selectRow(row) {
    if (isExchange(row)) {
      this.show(row.key);
      return;
    }
    this.shown = this.look = null;
    this._remember();
    this._detail(true);
    this.detail.replaceChildren(noteOf(row, () => this._close()));
  }

  /** A row of the list by its key, or an exchange that is not in it. */
  _choose(key) {
    const number = this.rows.numberOf(key);
    if (number === null || number === this.list.chosen) {
      this.show(key);
    } else {
      this.list.choose(number);
    }
  }

  _close() {
    this._hide();
    this._remember();
    this.list.element.focus();
  }

  async show(key) {
    const before = this.shown;
    this.shown = key;
    this.look = null;
    this._remember();
    this._detail(true);
    const content = await details(key, {
      narrow: (text) => this.filter.add(text),
      follow: (text) => this.filter.set(text),
      close: () => this._close(),
      neighbours: (of, exchange) => this.rows.neighbours(of, exchange),
      watch: (look) => (this.look = look),
      open: (other) => this._choose(other),
      trying: this.trying,
      comparing: this.comparing,
    });
    if (this.shown === key) {
      const inside = this.detail.contains(document.activeElement);
      this.detail.replaceChildren(content);
      if (before !== key) {
        this.detail.scrollTop = 0;
      }
      if (inside) {
        this.detail.querySelector("h2, button").focus(); // what had the focus is gone
      }
    }
  }
}
