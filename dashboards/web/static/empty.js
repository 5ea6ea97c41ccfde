// What a list without exchanges says.

/** `asked`: {where, hide, since, until} of the list. Of a running klamm exchanges are shown as they end; of a capture
 * `whole` tells that all of it was read. `refused`: the server found a mistake in what was asked; `frozen`: the list stands still;
 * `reading`: exchanges that the list has got before come again. */
export function words({ live, asked, whole, refused, frozen, reading }) {
  if (refused) {
    return "No exchanges are shown until the mistake is mended.";
  }
  if (live && reading) {
    return "The exchanges that this list has got before are being read.";
  }
  if (live) {
    return frozen ? "The list is frozen: “go on” shows what came meanwhile." : waiting(asked);
  }
  return whole ? none(asked) : "The capture is being read.";
}

function waiting({ where, hide }) {
  const wanted = [where && "match the filter", hide && "are not hidden"].filter(Boolean).join(" and ");
  return `Waiting for exchanges${wanted ? ` that ${wanted}` : ""}: only those are shown that end while this page is open.`;
}

function none({ where, hide, since, until }) {
  const wanted = [where && "matches the filter", (since || until) && "ended in the chosen time", hide && "is not hidden"].filter(Boolean);
  return wanted.length ? `No exchange of this capture ${wanted.join(" and ")}.` : "This capture has no exchanges.";
}
