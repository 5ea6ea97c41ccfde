// Clusters, brokers and connections of clients.

import { ask, el, size, told, Watching } from "./page.js";

const LOOK_MS = 2000;
const table = (label, head) => {
  const body = el("tbody");
  const whole = el("table", { class: "whole" }, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), body);
  return { element: el("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": label }, whole), body };
};
const row = (...cells) => el("tr", {}, cells.map((cell) => (cell?.tagName === "TD" ? cell : el("td", {}, cell instanceof Node ? cell : String(cell ?? "")))));
const lengthy = (text) => el("td", { class: "lengthy" }, String(text ?? "")); // names and sentences of any length, which may be broken

export class Clusters extends Watching {
  constructor() {
    super(LOOK_MS);
    this.clusters = table("clusters", ["cluster", "state", "nodes", "bootstrap", "clients find it at", "reason"]);
    this.brokers = table("brokers", ["cluster", "node", "kind", "upstream", "klamm listens at"]);
    this.connections = table("connections", ["id", "client id", "from", "broker", "in flight", "sent", "received", "principal", "end"]);
    this.element = el(
      "div",
      { class: "page" },
      el("h2", {}, "Clusters"),
      this.clusters.element,
      el("h2", {}, "Brokers"),
      this.brokers.element,
      el("h2", {}, "Connections"),
      this.connections.element,
    );
  }

  async _look() {
    try {
      const [clusters, brokers, connections] = await Promise.all(
        ["clusters", "brokers", "connections"].map((name) => ask(`/api/klamm/v1/${name}`)),
      );
      this.clusters.body.replaceChildren(
        ...clusters.map((one) => row(one.name, one.state, one.nodes, el("td", { class: "words" }, one.bootstrap.join(", ")), one.listening, lengthy(one.reason))),
      );
      this.brokers.body.replaceChildren(...brokers.map((one) => row(one.cluster, one.node_id, one.kind, one.upstream, one.listening)));
      this.connections.body.replaceChildren(...connections.map((one) => this._connection(one)));
    } catch (error) {
      this.clusters.body.replaceChildren(row(lengthy(error.message)));
    }
  }

  _connection(one) {
    const close = told(async () => {
      await ask(`/api/klamm/v1/connections/${one.id}`, { method: "DELETE", body: {} });
      await this._look();
    });
    const sizes = [size(one.from_client_bytes), size(one.to_client_bytes)];
    return row(one.id, lengthy(one.client_id), one.client, `${one.cluster} / ${one.broker}`, one.in_flight, ...sizes, lengthy(one.principal), el("button", { onclick: close }, "close"));
  }
}
