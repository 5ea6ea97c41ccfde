// The timeline of fetch sessions and share sessions.

export const sessions = {
  name: "sessions",
  nothing: "No exchange of a fetch session or share session so far.",
  ofLane: "the exchanges of this lane",
  ofGroup: "this client or group",
  kinds: {
    session: { name: "session", shape: "band", tone: "epoch" },
    thrash: { name: "many new sessions", shape: "bar", tone: "alarm", alarm: true },
    full: { name: "full fetch", shape: "square", tone: "join" },
    plain: { name: "fetch without a session", shape: "tick", tone: "faint", routine: true },
    incremental: { name: "incremental fetch", shape: "tick", tone: "beat", routine: true },
    lost: { name: "session lost", shape: "cross", tone: "failed", alarm: true },
    fetched: { name: "share fetch", shape: "tick", tone: "beat", routine: true },
    acquired: { name: "records acquired", shape: "dot", tone: "commit", routine: true },
    acknowledged: { name: "acknowledgement", shape: "diamond", tone: "assignment", routine: true },
    unread: { name: "cannot be read", shape: "square", tone: "faint", routine: true },
    other: { name: "other", shape: "dot", tone: "faint" },
  },
};
