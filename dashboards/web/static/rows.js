// The exchanges of the list: the newest 50,000, each at a number that stays the same. Among them are notes (notes.js).

export const MOST = 50_000;
export const isExchange = ({ note }) => !note;

export class Rows {
  constructor() {
    this.clear();
  }

  clear() {
    this.kept = [];
    this.first = 0; // the number of kept[0]
    this.notes = this.gone = 0; // notes that are kept; exchanges that are not any more
  }

  /** The number of exchanges. */
  get count() {
    return this.kept.length - this.notes;
  }

  /** The keys of the exchanges. */
  keys() {
    return this.kept.filter(isExchange).map(({ key }) => key);
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

  /** {before, after}: the rows of the same connection around an exchange, as far as they are here. klamm numbers
   * connections anew when it is restarted. */
  neighbours(key, { connection_id, cluster }) {
    const at = this.kept.findIndex((row) => row.key === key);
    const ends = (row) => row.restart || (row.connection_id === connection_id && row.cluster === cluster);
    if (at < 0) {
      return {};
    }
    const next = (by) => {
      let found = at + by;
      while (this.kept[found] && !ends(this.kept[found])) {
        found += by;
      }
      return this.kept[found]?.restart ? undefined : this.kept[found];
    };
    return { before: next(-1), after: next(1) };
  }

  /** Forgets the oldest in steps, for each costs a copy. */
  add(rows) {
    for (const row of rows) {
      this.kept.push(row);
      this.notes += row.note ? 1 : 0;
    }
    if (this.kept.length > MOST + 1000) {
      const gone = this.kept.splice(0, this.kept.length - MOST);
      const exchanges = gone.filter(isExchange).length;
      this.first += gone.length;
      this.notes -= gone.length - exchanges;
      this.gone += exchanges;
    }
  }
}
