// What the list of this tab has got: the server keeps it under a name, and the list begins with it once more after the page
// was loaded again, or with another filter.

const NAME = "klamm-list";
const CLEARED = "klamm-list-cleared";
const made = () => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("-");

/** Of this tab, for as long as it is open; of this page where the browser keeps nothing. */
function storage() {
  try {
    return sessionStorage;
  } catch {
    const kept = {};
    return { getItem: (key) => kept[key] ?? null, setItem: (key, text) => (kept[key] = text) };
  }
}

export class Got {
  constructor() {
    this.kept = storage();
    if (!this.kept.getItem(NAME)) {
      this.kept.setItem(NAME, made());
    }
    this.clear();
  }

  /** The list begins anew. */
  clear() {
    this.newest = null; // key
    this.older = 0; // rows that came again: the first ones
  }

  /** The user has cleared it: what is there does not come again. */
  forget() {
    if (this.newest !== null) {
      this.kept.setItem(CLEARED, this.newest);
    }
    this.older = 0;
  }

  add(rows, again) {
    this.newest = rows.at(-1)?.key ?? this.newest;
    this.older += again ? rows.length : 0;
  }

  /** The parameters of a stream, which begins with what the list does not show yet. */
  asked() {
    return { list: this.kept.getItem(NAME), after: this.newest ?? this.kept.getItem(CLEARED) };
  }
}
