// The marks of a timeline by lane: the newest 20,000, those of routine at most half of them.

export const MOST = 20_000;
const RANKS = { error: 2, alarm: 1 };

/** `kinds`: by kind, whether a mark is `routine` or an `alarm`. */
export class Marks {
  constructor(kinds) {
    this.kinds = kinds;
    this.clear();
  }

  clear() {
    this.lanes = new Map(); // by group and member, in the order in which they came
    this.byId = new Map();
    this.kept = { routine: [], other: [] }; // in the order in which they came
    this.forgotten = 0;
    this.first = Infinity;
    this.last = -Infinity;
    this.revision = 0; // of what decides on the order of lanes
  }

  get count() {
    return this.kept.routine.length + this.kept.other.length;
  }

  /** Lanes and marks as the server tells them. */
  add(items) {
    for (const item of items) {
      if (item.kind === "lane") {
        this._lane(item);
      } else {
        this._mark(item);
      }
    }
    if (this.count > MOST) {
      this._forget();
    }
  }

  rank(mark) {
    return mark.error ? RANKS.error : this.kinds[mark.kind]?.alarm ? RANKS.alarm : 0;
  }

  _lane({ group, member, label, about = {}, where = "" }) {
    const name = laneName(group, member);
    const known = this.lanes.get(name);
    const text = [label, ...Object.values(about)].join(" ").toLowerCase();
    const lane = known ?? { name, group, member, marks: [], longest: 0, last: -Infinity, errors: 0, alarms: 0 };
    this.lanes.set(name, Object.assign(lane, { label, about, where, text }));
    this.revision += 1;
    return lane;
  }

  _mark(item) {
    const lane = this.lanes.get(laneName(item.group, item.member)) ?? this._lane({ ...item, label: item.member || item.group });
    const old = item.id ? this.byId.get(item.id) : null;
    if (old) {
      lane.marks.splice(lane.marks.indexOf(old), 1);
      this._count(old, -1);
      delete old.open;
      delete old.error;
    }
    const mark = Object.assign(old ?? {}, item, { lane });
    if (mark.id) {
      this.byId.set(mark.id, mark);
    }
    this._insert(lane, mark);
    this._count(mark, 1);
    if (!old) {
      this.kept[this.kinds[mark.kind]?.routine && !mark.error ? "routine" : "other"].push(mark);
    }
    this.first = Math.min(this.first, mark.begin);
    this.last = Math.max(this.last, mark.end);
  }

  /** By their beginnings. Most come last. */
  _insert(lane, mark) {
    const { marks } = lane;
    let at = marks.length;
    while (at > 0 && marks[at - 1].begin > mark.begin) {
      at -= 1;
    }
    marks.splice(at, 0, mark);
    lane.longest = Math.max(lane.longest, mark.end - mark.begin);
    lane.last = Math.max(lane.last, mark.end);
  }

  _count(mark, by) {
    const rank = this.rank(mark);
    if (rank) {
      mark.lane[rank === RANKS.error ? "errors" : "alarms"] += by;
      this.revision += 1;
    }
  }

  _forget() {
    let left = this.count - MOST;
    const gone = new Set();
    while (left > 0) {
      const { routine, other } = this.kept;
      const from = routine.length > MOST / 2 || !other.length ? routine : other;
      const enough = from === routine && other.length ? routine.length - MOST / 2 : left;
      const part = from.splice(0, Math.max(1, Math.min(left, enough)));
      part.forEach((mark) => gone.add(mark));
      left -= part.length;
    }
    this.forgotten += gone.size;
    for (const lane of new Set([...gone].map((mark) => mark.lane))) {
      lane.marks = lane.marks.filter((mark) => !gone.has(mark));
      lane.longest = lane.marks.reduce((most, { begin, end }) => Math.max(most, end - begin), 0);
    }
    for (const mark of gone) {
      this._count(mark, -1);
      if (mark.id) {
        this.byId.delete(mark.id);
      }
    }
    if (this.lanes.size > MOST) {
      const groups = new Set([...this.lanes.values()].filter(({ marks }) => marks.length).map(({ group }) => group));
      const empty = [...this.lanes.values()].filter(({ group, member, marks }) => (member ? !marks.length : !groups.has(group)));
      empty.forEach(({ name }) => this.lanes.delete(name));
    }
    this.first = Math.min(...[...this.lanes.values()].map(({ marks }) => marks[0]?.begin ?? Infinity));
    this.revision += 1;
  }
}

export const laneName = (group, member) => (member ? `${group}\n${member}` : group);

/** The place of the first mark that begins at `time` or later. */
export function placeOf(marks, time) {
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].begin < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Rows of a timeline: each group with its lanes. What has errors comes first, then what has alarms; where they are
 * `still`, groups stand as they came first, and lanes by their names. */
export function rowsOf(lanes, { text = "", closed = new Set(), still = false } = {}) {
  const wanted = text.toLowerCase();
  const groups = new Map();
  for (const lane of lanes.values()) {
    if (!groups.has(lane.group)) {
      groups.set(lane.group, { head: null, lanes: [] });
    }
    const group = groups.get(lane.group);
    if (lane.member && lane.marks.length) {
      group.lanes.push(lane);
    } else if (!lane.member) {
      group.head = lane;
    }
  }
  const rows = [];
  const found = [];
  for (const group of groups.values()) {
    const { head, lanes: all } = group;
    const whole = !wanted || head?.text.includes(wanted);
    const some = whole ? all : all.filter((lane) => lane.text.includes(wanted));
    if (head && (some.length || (whole && head.marks.length))) {
      const sum = (name) => all.reduce((total, lane) => total + lane[name], head[name]);
      head.sums = { errors: sum("errors"), alarms: sum("alarms"), lanes: all.length };
      found.push({ head, lanes: some, rank: rankOf(head.sums) });
    }
  }
  if (!still) {
    found.sort((one, other) => other.rank - one.rank || one.head.label.localeCompare(other.head.label));
  }
  for (const { head, lanes: some } of found) {
    rows.push(head);
    if (!closed.has(head.name)) {
      some.forEach((lane) => (lane.of = head.label));
      some.sort(still ? byName : (one, other) => rankOf(other) - rankOf(one) || (one.marks[0]?.begin ?? 0) - (other.marks[0]?.begin ?? 0));
      rows.push(...some);
    }
  }
  return rows;
}

const { compare } = new Intl.Collator(undefined, { numeric: true }); // broker 2 before broker 10
const byName = (one, other) => compare(one.label, other.label);
const rankOf = ({ errors, alarms }) => (errors ? RANKS.error : alarms ? RANKS.alarm : 0);
