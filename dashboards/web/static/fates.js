// Words for what klamm did to the request and the answer of an exchange.

/** None for an answer that it made or changed, which `origin` tells, and none for a request that it answered. */
export function fates({ fates: of = {} }) {
  const told = ([side, fate]) => (side === "response" ? fate !== "withheld" : fate === "withheld" && of.response === "made");
  return Object.entries(of).filter((one) => !told(one)).map((one) => one.join(" "));
}
