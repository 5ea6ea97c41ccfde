// The timeline of consumer groups.

export const groups = {
  name: "groups",
  nothing: "No exchange of a consumer group so far.",
  ofLane: "this member's exchanges",
  ofGroup: "this group",
  kinds: {
    epoch: { name: "generation or epoch", shape: "band", tone: "epoch", other: "epoch-odd" },
    rebalance: { name: "rebalance", shape: "bar", tone: "alarm", alarm: true },
    empty: { name: "group is empty", shape: "triangle", tone: "faint" },
    join: { name: "join", shape: "bar", tone: "join" },
    assignment: { name: "assignment", shape: "diamond", tone: "assignment" },
    heartbeat: { name: "heartbeat", shape: "tick", tone: "beat", routine: true },
    asked: { name: "told to join again", shape: "tick", tone: "alarm", routine: true },
    commit: { name: "commit", shape: "dot", tone: "commit", routine: true },
    leave: { name: "leave", shape: "triangle", tone: "leave" },
    out: { name: "pushed out", shape: "cross", tone: "failed", alarm: true },
    unread: { name: "cannot be read", shape: "square", tone: "faint", routine: true },
    other: { name: "other", shape: "dot", tone: "faint" },
  },
};
