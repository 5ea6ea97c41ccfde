// The timeline of producers and transactions.

export const producers = {
  name: "producers",
  nothing: "No exchange of an idempotent or transactional producer so far.",
  ofLane: "this producer's exchanges",
  ofGroup: "this transactional id",
  kinds: {
    epoch: { name: "producer epoch", shape: "band", tone: "epoch", other: "epoch-odd" },
    transaction: { name: "transaction", shape: "bar", tone: "transaction" },
    init: { name: "InitProducerId", shape: "triangle", tone: "join" },
    add: { name: "added to the transaction", shape: "square", tone: "assignment" },
    produce: { name: "produce", shape: "tick", tone: "beat", routine: true },
    waits: { name: "waits for the one before", shape: "tick", tone: "leave", routine: true },
    retry: { name: "retry", shape: "tick", tone: "alarm", alarm: true },
    sequence: { name: "sequence not as due", shape: "diamond", tone: "failed", alarm: true },
    commit: { name: "offsets", shape: "dot", tone: "commit", routine: true },
    end: { name: "commit or abort", shape: "diamond", tone: "commit" },
    replaced: { name: "replaced by another producer", shape: "triangle", tone: "leave" },
    fenced: { name: "fenced", shape: "cross", tone: "alarm", alarm: true },
    unread: { name: "cannot be read", shape: "square", tone: "faint", routine: true },
    other: { name: "other", shape: "dot", tone: "faint" },
  },
};
