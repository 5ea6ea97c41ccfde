// Words for what klamm did to the request and the answer of an exchange, and for an answer that did not come.

/** None for an answer that it made or changed, which `origin` tells, and none for a request that it answered. */
export function fates({ fates: of = {} }) {
  const told = ([side, fate]) => (side === "response" ? fate !== "withheld" : fate === "withheld" && of.response === "made");
  return Object.entries(of).filter((one) => !told(one)).map((one) => one.join(" "));
}

/** Why there is none, where one was due; else empty. */
export const unanswered = ({ unanswered: reason = "" }) => (reason ? `no answer: ${reason}` : "");

/** How long it took, in milliseconds, or how long its request waited in vain; undefined where neither is known. */
export const lasted = ({ latency_ms: latency, waited_ms: waited }) => latency ?? waited ?? undefined;
