"""The timeline of producers: a lane for each instance of each transactional id, and for each producer id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from klamm.dashboards.web.lanes.assignments import committed
from klamm.dashboards.web.lanes.reading import Timeline
from klamm.dashboards.web.lanes.sequences import Sequences
from klamm.dashboards.web.lanes.told import Told, Values, named_error
from klamm.dashboards.web.lanes.topics import Topics
from klamm.dashboards.web.lanes.transactions import APIS, FENCED, PLACES, Producer, Producers
from klamm.dashboards.web.lanes.words import counted, identity, listed, partitions, setting, shown
from klamm.decoders.records import Batch, RecordsError, batches

WHERE = f"api in ({APIS})"
CLIENTS_LAST = 3  # version of AddPartitionsToTxn: later ones are of brokers
WAITS = "CONCURRENT_TRANSACTIONS"  # it is asked again, and no failure
RANK = ("produce", "retry", "sequence")  # kinds of a Produce, the worst last


class Part(NamedTuple):
    """A batch of a Produce, at its place."""

    topic: str
    partition: int
    batch: Batch


class Sending(Timeline):
    """Marks of producers and their transactions."""

    def __init__(self) -> None:
        self.known, self.sequences, self.topics = Producers(), Sequences(), Topics()
        readers = {
            "InitProducerId": self._init,
            "AddPartitionsToTxn": self._add_partitions,
            "AddOffsetsToTxn": self._add_offsets,
            "TxnOffsetCommit": self._commit,
            "EndTxn": self._end,
            "Produce": self._produce,
            "Metadata": self.topics.read,
        }
        super().__init__(self.known.board, readers)

    def forget(self, at: float) -> None:
        self.sequences = Sequences()
        self.known.forget()

    def _init(self, told: Told) -> None:
        request, answer = told.request, told.response
        ids = self.known.id(told, request["transactional_id"])
        number, epoch = request.get("producer_id", -1), request.get("producer_epoch", -1)
        before = self.known.known(told, number, epoch) if number >= 0 else None
        if answer is None or told.error:
            self._done(before or self.known.unnamed(told, ids), told, "init", "InitProducerId", told.error)
            return
        now = answer["producer_id"], answer["producer_epoch"]
        words = f"InitProducerId: producer id {now[0]}, epoch {now[1]}"
        if before is not None:
            self.known.take(told, before, *now)
            self.known.ended(before, told.end, "ended by the producer's own InitProducerId")
            self._mark(before, told, "init", f"{words}, asked for by the same producer")
            return
        producer = self.known.begins(told, ids, *now)
        old, ids.current = ids.current, producer
        if not ids.shared:
            producer.timeout_ms = request["transaction_timeout_ms"]
            self.known.describe(producer)
            words += f"; transaction timeout {setting(producer.timeout_ms)}"
            if old is not None:
                words += f"; fences {old.name}"
                self._fence(old, producer, told)
        self._mark(producer, told, "init", words)

    def _fence(self, old: Producer, new: Producer, told: Told) -> None:
        by = f"{new.name} with epoch {new.epoch}"
        old.fenced, old.fenced_at = by, told.end
        kind = "fenced" if old.transaction else "replaced"
        aborted = "; its open transaction was aborted" if old.transaction else ""
        self.known.ended(old, told.end, f"aborted, for {new.name} took its place")
        if old.span is not None:
            self.board.ended(old.span, told.end)
            old.span = None
        words = f"{kind} by {by}; this one has epoch {old.epoch}{aborted}"
        self.board.mark(old.track, kind, told.end, told.end, words, told.key, "", old.epoch)

    def _add_partitions(self, told: Told) -> None:
        if told.one.version > CLIENTS_LAST:
            return
        request = told.request
        named = "v3_and_below_"
        producer = self.known.of(
            told, request[f"{named}transactional_id"],
            request[f"{named}producer_id"], request[f"{named}producer_epoch"],
        )  # fmt: skip
        places = {identity(topic["name"]): topic["partitions"] for topic in request[f"{named}topics"]}
        results = (told.response or {}).get("results_by_topic_v3_and_below", ())
        codes = (one["partition_error_code"] for topic in results for one in topic["results_by_partition"])
        error = named_error(next((code for code in codes if code), 0))
        if not error:
            transaction = self.known.began(producer, told)
            for topic, parts in places.items():
                _add(transaction.places, ((topic, part) for part in parts))
        self._done(producer, told, "add", f"added {partitions(places)} to the transaction", error)

    def _add_offsets(self, told: Told) -> None:
        producer, group = self._of(told), shown(told.request["group_id"])
        if not told.error:
            _add(self.known.began(producer, told).groups, [group])
        self._done(producer, told, "add", f"added offsets of group {group} to the transaction", told.error)

    def _commit(self, told: Told) -> None:
        producer, request = self._of(told), told.request
        self.topics.learn(told)
        topics = (told.response or {}).get("topics", ())
        codes = (one["error_code"] for topic in topics for one in topic["partitions"])
        error = named_error(next((code for code in codes if code), 0))
        if not error:
            _add(self.known.began(producer, told).groups, [shown(request["group_id"])])
        offsets = committed(request["topics"], [self.topics.name(one) for one in request["topics"]])
        words = f"offsets of group {shown(request['group_id'])}: {offsets}"
        self._done(producer, told, "commit", words, error)

    def _end(self, told: Told) -> None:
        producer, answer = self._of(told), told.response
        how = "commit" if told.request["committed"] else "abort"
        self._done(producer, told, "end", f"EndTxn: {how}", told.error)
        if answer is None or told.error:
            return
        self.known.ended(producer, told.end, "committed" if how == "commit" else "aborted")
        number, epoch = answer.get("producer_id", -1), answer.get("producer_epoch", -1)
        if number >= 0 and (number, epoch) != (producer.number, producer.epoch):
            self.known.take(told, producer, number, epoch)

    def _produce(self, told: Told) -> None:
        self.topics.learn(told)
        found: dict[tuple[int, int], list[Part]] = {}
        for part in self._parts(told.request):
            if part.batch.producer_id >= 0:
                found.setdefault((part.batch.producer_id, part.batch.producer_epoch), []).append(part)
        errors = _errors(told.response, self.topics)
        for (number, epoch), parts in found.items():
            producer = self.known.of(told, told.request.get("transactional_id"), number, epoch)
            self._sent(producer, told, parts, errors)

    def _sent(
        self, producer: Producer, told: Told, parts: list[Part], errors: dict[tuple[str, int], int]
    ) -> None:
        kind, words = "produce", []
        for topic, partition, batch in parts:
            worse, why = self.sequences.seen(topic, partition, batch)
            kind = max(kind, worse or kind, key=RANK.index)
            count = batch.last_offset - batch.base_offset + 1
            text = f"{shown(topic)} [{partition}] {why or f'sequence {batch.base_sequence}'}"
            words.append(f"{text}, {counted(count, 'record')}")
        codes = [code for one in parts if (code := errors.get((one.topic, one.partition), 0))]
        error = named_error(codes[0]) if codes else ""
        if any(one.batch.is_transactional for one in parts) and not error:
            transaction = self.known.began(producer, told)
            transaction.batches += len(parts)
            _add(transaction.places, ((one.topic, one.partition) for one in parts))
        self._done(producer, told, kind, f"produced {listed(words, 6)}", error, parts[0].batch.producer_epoch)

    def _parts(self, request: Values) -> Iterable[Part]:
        """The batches of a Produce; those that cannot be read are left out."""
        for topic in request["topic_data"]:
            for one in topic["partition_data"]:
                try:
                    for batch in batches(one["records"] or b""):
                        yield Part(self.topics.name(topic), one["index"], batch)
                except RecordsError:
                    continue

    def _of(self, told: Told) -> Producer:
        request = told.request
        return self.known.of(
            told, request["transactional_id"], request["producer_id"], request["producer_epoch"]
        )

    def _done(
        self, producer: Producer, told: Told, kind: str, words: str, error: str, epoch: int | None = None
    ) -> None:
        """A mark of a request and its answer; who fenced it where it was."""
        if error == WAITS:
            kind, words, error = "waits", f"{words}: {WAITS}, the one before is not finished yet", ""
        elif error:
            words += f": {error}"
            if error in FENCED:
                words += f": {self.known.why(producer, told)}"
                self.known.ended(producer, told.end, "not ended by its producer", error)
        elif told.response is None and told.one.api != "Produce":
            words += ": no answer"
        self._mark(producer, told, kind, words, error, epoch)

    def _mark(
        self,
        producer: Producer,
        told: Told,
        kind: str,
        words: str,
        error: str = "",
        epoch: int | None = None,
    ) -> None:
        number = producer.epoch if epoch is None else epoch
        shown_epoch = number if number >= 0 else None
        self.board.mark(producer.track, kind, told.begin, told.end, words, told.key, error, shown_epoch)


def _errors(response: Values | None, topics: Topics) -> dict[tuple[str, int], int]:
    """The errors of an answer to Produce, by topic and partition."""
    return {
        (topics.name(topic), one["index"]): one["error_code"]
        for topic in (response or {}).get("responses", ())
        for one in topic["partition_responses"]
        if one["error_code"]
    }


def _add(known: set[Any], more: Iterable[Any]) -> None:
    """Keeps a bounded number."""
    for one in more:
        if len(known) < PLACES:
            known.add(one)
