// The state of a rule in words: whether it acts, what is left of it, and why it is over.

/** Such as "9 min 48 s". */
export function left(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  if (hours) {
    return `${hours.toLocaleString()} h ${minutes} min`;
  }
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

/** The hits that a rule may have in all; null: any number, or so many for each client, topic, ... */
function most({ times, per = "rule" }) {
  return times === undefined || per !== "rule" ? null : Number(times);
}

/** A rule as /v1/rules tells it, at `now` in seconds since 1970. */
export function lasting(rule, now) {
  const hits = most(rule.written);
  if (rule.over) {
    return hits !== null && rule.hits >= hits ? `over: it had its ${hits === 1 ? "hit" : `${hits.toLocaleString()} hits`}` : "over: its time has ended";
  }
  const of = hits === null ? null : `${Math.max(0, hits - rule.hits).toLocaleString()} of ${hits.toLocaleString()} hits left`;
  const ends = typeof rule.ends !== "number" ? null : `ends in ${left(rule.ends - now)}`;
  return [rule.enabled ? "on" : "off", of, ends].filter(Boolean).join(", ");
}
