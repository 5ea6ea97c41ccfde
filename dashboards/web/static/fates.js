// What klamm did to an exchange, in words.

/** An answer that klamm made or changed is "by klamm"; the request that it answered needs no word of its own. */
export function fates({ origin, fates: of = {} }) {
  const told = ([side, fate]) => (side === "response" ? fate !== "withheld" : fate === "withheld" && of.response === "made");
  const words = Object.entries(of).filter((one) => !told(one)).map((one) => one.join(" "));
  return [...(origin === "klamm" ? ["by klamm"] : []), ...words];
}
