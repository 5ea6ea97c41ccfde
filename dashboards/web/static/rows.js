// The exchanges of the list: the newest 50,000, each at a number that stays the same.

export const MOST = 50_000;

export class Rows {
  constructor() {
    this.clear();
  }

  clear() {
    this.kept = [];
    this.first = 0; // the number of kept[0]
  }

  get end() {
    return this.first + this.kept.length;
  }

  at(number) {
    return this.kept[number - this.first];
  }

  /** The number of the row with this key, or null. */
  numberOf(key) {
    const index = this.kept.findIndex((row) => row.key === key);
    return index < 0 ? null : this.first + index;
  }

  /** {before, after}: the rows of the same connection around an exchange, as far as they are here. */
  neighbours(key, { connection_id, cluster }) {
    const at = this.kept.findIndex((row) => row.key === key);
    const same = (row) => row.connection_id === connection_id && row.cluster === cluster;
    if (at < 0) {
      return {};
    }
    let before = at - 1;
    while (before >= 0 && !same(this.kept[before])) {
      before -= 1;
    }
    return { before: this.kept[before], after: this.kept.slice(at + 1).find(same) };
  }

  /** Forgets the oldest in steps, for each costs a copy. */
  add(rows) {
    for (const row of rows) {
      this.kept.push(row);
    }
    if (this.kept.length > MOST + 1000) {
      const gone = this.kept.length - MOST;
      this.kept.splice(0, gone);
      this.first += gone;
    }
  }
}
