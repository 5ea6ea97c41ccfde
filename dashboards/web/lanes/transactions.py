"""Producers, their epochs and transactions, as the exchanges until now have told them."""

from __future__ import annotations

from dataclasses import dataclass, field

from klamm.dashboards.web.lanes.marks import Board, Span, Track
from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.told import Told
from klamm.dashboards.web.lanes.words import condition, counted, identity, listed, seconds, setting, shown

PRODUCERS, IDS = 20_000, 2_000  # that are remembered: producers, transactional ids
PLACES = 1_000  # partitions of a transaction that are told apart
APIS = "InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn, Produce"
OPEN = "transaction, open"
NO_ID = "none"  # the group of producers without a transactional id
FENCED = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})


@dataclass(slots=True, eq=False)
class Transaction:
    """An open one, and what it has done until now."""

    span: Span
    places: set[tuple[str, int]] = field(default_factory=set)
    batches: int = 0
    groups: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Producer:
    """An instance: from an InitProducerId on, until another one takes its place. `client`: its client id.
    `where`: the filter of its exchanges. `fenced`: by whom; `overdue`: its transaction took too long.
    """

    ids: TransactionalId
    track: Track
    client: str
    host: str
    where: str
    number: int = -1
    epoch: int = -1
    first_epoch: int = -1
    timeout_ms: int = 0
    transaction: Transaction | None = None
    fenced: str = ""
    fenced_at: float = 0.0
    overdue: str = ""
    span: Span | None = None

    @property
    def name(self) -> str:
        """For texts."""
        return f"{shown(self.client or 'no client id')} at {self.host}"


@dataclass(slots=True, eq=False)
class TransactionalId:
    """`shared`: that of all producers that have none."""

    shared: bool
    track: Track
    current: Producer | None = None


class Producers:
    """Finds producers by their ids and epochs, and tells their lanes."""

    def __init__(self) -> None:
        self.board = Board()
        self.ids: Recent[str, TransactionalId] = Recent(IDS)
        self.by_epoch: Recent[tuple[str, int, int], Producer] = Recent(PRODUCERS)
        self.nameless: Recent[str, Producer] = Recent(PRODUCERS)

    def id(self, told: Told, name: str | None) -> TransactionalId:
        key = f"{told.one.cluster}/{NO_ID}" if name is None else f"{told.one.cluster}/id/{identity(name)}"
        found = self.ids.made(key, lambda: TransactionalId(name is None, Track(key)))
        label = "no transactional id" if name is None else shown(name)
        where = "" if name is None else condition(transactional_id=name)
        self.board.lane(found.track, label, {"cluster": told.one.cluster}, where)
        return found

    def known(self, told: Told, number: int, epoch: int) -> Producer | None:
        """The instance to which a producer id and epoch belong, where that is known."""
        return self.by_epoch.get((told.one.cluster, number, epoch))

    def of(self, told: Told, name: str | None, number: int, epoch: int) -> Producer:
        """The instance that sends this. One whose beginning was not seen is the current one of its client."""
        found = self.known(told, number, epoch)
        if found is not None:
            self._seen_again(told, found)
            return found
        ids = self.id(told, name)
        current, sender = ids.current, (identity(told.one.client_id or ""), told.host, number)
        if current is None or (current.client, current.host, current.number) != sender:
            current = self._made(told, ids, f"{number}/{epoch}")
            if ids.current is None or ids.current.number != number or ids.current.epoch < epoch:
                ids.current = current
        self.take(told, current, number, epoch)
        return current

    def _seen_again(self, told: Told, producer: Producer) -> None:
        """After a time in which nobody looked."""
        if producer.span is None and not producer.fenced:
            self.take(told, producer, producer.number, producer.epoch)
            producer.ids.current = producer.ids.current or producer

    def forget(self) -> None:
        """Nobody looked for a while: transactions may have ended, and others may have come."""
        for one in self.by_epoch.kept.values():
            one.span = one.transaction = None
            one.ids.current = None

    def unnamed(self, told: Told, ids: TransactionalId) -> Producer:
        """Of a client that asks for its producer id, and has not got it yet."""
        key = f"{ids.track.group}/{told.one.connection}/{told.one.connection_id}"
        name = f"{told.one.connection}/{told.one.connection_id}"
        return self.nameless.made(key, lambda: self._made(told, ids, name))

    def begins(self, told: Told, ids: TransactionalId, number: int, epoch: int) -> Producer:
        """A new instance has got its producer id and epoch."""
        found = self.unnamed(told, ids)
        self.nameless.pop(f"{ids.track.group}/{told.one.connection}/{told.one.connection_id}")
        self.take(told, found, number, epoch)
        return found

    def take(self, told: Told, producer: Producer, number: int, epoch: int) -> None:
        """From now on this id and epoch are of this producer."""
        producer.number, producer.epoch = number, epoch
        producer.first_epoch = epoch if producer.first_epoch < 0 else producer.first_epoch
        self.by_epoch.put((told.one.cluster, number, epoch), producer)
        words = f"producer id {number}, epoch {epoch}"
        if producer.first_epoch != epoch:
            words = f"producer id {number}, epochs {producer.first_epoch} to {epoch}"
        if producer.span is None:
            producer.span = self.board.began(
                producer.track, "epoch", told.begin, told.end, words, told.key, epoch
            )
        else:
            producer.span = self.board.changed(producer.span, text=words, epoch=epoch)
        self.describe(producer)

    def describe(self, producer: Producer) -> None:
        about = {
            "client id": shown(producer.client),
            "host": producer.host,
            "producer id": str(producer.number) if producer.number >= 0 else "",
            "transaction timeout": setting(producer.timeout_ms) if producer.timeout_ms else "",
        }
        label = shown(producer.client or "no client id")
        if producer.number >= 0:
            label += f" · {producer.number}/{producer.first_epoch}"
        self.board.lane(producer.track, label, about, producer.where)

    def _made(self, told: Told, ids: TransactionalId, member: str) -> Producer:
        where = condition(client_id=told.one.client_id, client=told.host)
        where += f" and api in ({APIS})" if where else ""
        client = identity(told.one.client_id or "")
        producer = Producer(ids, Track(ids.track.group, member), client, told.host, where)
        self.describe(producer)
        return producer

    def began(self, producer: Producer, told: Told) -> Transaction:
        """The transaction that the producer has open, from now on if there was none."""
        if producer.transaction is None:
            span = self.board.began(
                producer.track, "transaction", told.begin, told.end, OPEN, told.key, producer.epoch
            )
            producer.transaction = Transaction(span)
        return producer.transaction

    def ended(self, producer: Producer, at: float, how: str, error: str = "") -> None:
        """The open transaction, if there is one, is over."""
        one, producer.transaction = producer.transaction, None
        if one is None:
            return
        parts = [counted(one.batches, "batch", "batches")] if one.batches else []
        if one.places:
            many = f"{PLACES:,} partitions or more" if len(one.places) >= PLACES else ""
            parts.append(many or counted(len(one.places), "partition"))
        parts += [f"offsets of {listed(sorted(one.groups), 4)}"] if one.groups else []
        took = seconds(max(0.0, at - one.span.mark.begin))
        words = f"transaction, {how} after {took}: {', '.join(parts) or 'empty'}"
        self.board.ended(one.span, at, text=words, error=error)

    def why(self, producer: Producer, told: Told) -> str:
        """The reason for the producer's old epoch: another producer that fenced it, or a timeout."""
        if producer.fenced:
            return f"fenced by {producer.fenced} {seconds(max(0.0, told.end - producer.fenced_at))} before"
        one, limit = producer.transaction, producer.timeout_ms / 1000
        if one is not None and 0 < limit <= told.end - one.span.mark.begin:
            took, most = seconds(told.end - one.span.mark.begin), setting(producer.timeout_ms)
            producer.overdue = f"its transaction was open for {took}, transaction.timeout.ms is {most}: "
            producer.overdue += "the coordinator has aborted it"
        return producer.overdue or "nothing that was seen tells who fenced it"
