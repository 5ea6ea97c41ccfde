// The client ids, topics and groups that exchanges of the list have named, for completion.

import { el, quoted } from "./page.js";

const MOST = 1000; // of each
const OF = { clients: ["client_id", "client"], topics: ["topic"], groups: ["group"] }; // names in expressions

export class Seen {
  constructor() {
    this.names = { clients: new Set(), topics: new Set(), groups: new Set() };
    this.lists = Object.keys(this.names).map((kind) => el("datalist", { id: `${kind}-seen` }));
  }

  add(rows) {
    let more = false;
    const take = (kind, name) => {
      const known = this.names[kind];
      if (name && known.size < MOST && !known.has(name)) {
        known.add(name);
        more = true;
      }
    };
    for (const row of rows) {
      take("clients", row.client_id);
      Object.keys(row.topics ?? {}).forEach((name) => take("topics", name));
      take("groups", row.group);
    }
    if (more) {
      Object.values(this.names).forEach((names, index) => {
        if (this.lists[index].childElementCount !== names.size) {
          this.lists[index].replaceChildren(...[...names].sort().map((name) => el("option", { value: name })));
        }
      });
    }
  }

  /** The names that may stand beside this name of an expression; of all kinds for any other. */
  of(field) {
    const kinds = Object.keys(OF).filter((kind) => OF[kind].includes(field));
    return (kinds.length ? kinds : Object.keys(OF)).flatMap((kind) => [...this.names[kind]]);
  }

  /** A condition for each name with these letters. */
  conditions(letters) {
    const wanted = letters.toLowerCase();
    return Object.entries(OF).flatMap(([kind, [field]]) =>
      [...this.names[kind]].filter((name) => name.toLowerCase().includes(wanted)).map((name) => `${field} == ${quoted(name)}`),
    );
  }

  knows(field) {
    return Object.values(OF).some((fields) => fields.includes(field));
  }
}
