"""`klamm errors`: what an error of Kafka means."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from klamm.cli.tables import print_json, print_table
from klamm.decoders import ERRORS
from klamm.decoders.error_codes import KafkaError
from klamm.settings.nearest import suggestion

CODE = re.compile(r"-?[0-9]{1,9}")

DESCRIPTION = """\
Explain an error of Kafka by its code, its name, an older name, the name of its exception, a part of one of
these, or a word of its meaning. Without one, list them all.
"""

EXAMPLES = """\
examples:
  klamm errors 6
  klamm errors NOT_LEADER_FOR_PARTITION
  klamm errors leader
  klamm errors NotLeaderOrFollowerException
  klamm errors -1
  klamm errors --json | jq 'select(.retriable)'
"""

# Where Java's name does not follow from the error's (org.apache.kafka.common.protocol.Errors, 4.3).
EXCEPTIONS = {
    -1: "UnknownServerException", 0: "", 2: "CorruptRecordException", 7: "TimeoutException",
    10: "RecordTooLargeException", 11: "ControllerMovedException", 12: "OffsetMetadataTooLarge",
    13: "NetworkException", 17: "InvalidTopicException", 18: "RecordBatchTooLargeException",
    29: "TopicAuthorizationException", 30: "GroupAuthorizationException",
    31: "ClusterAuthorizationException", 36: "TopicExistsException", 40: "InvalidConfigurationException",
    45: "OutOfOrderSequenceException", 46: "DuplicateSequenceException", 49: "InvalidPidMappingException",
    50: "InvalidTxnTimeoutException", 53: "TransactionalIdAuthorizationException",
    56: "KafkaStorageException", 58: "SaslAuthenticationException", 61: "DelegationTokenDisabledException",
    64: "UnsupportedByAuthenticationException", 65: "DelegationTokenAuthorizationException",
    68: "GroupNotEmptyException", 97: "PrincipalDeserializationException",
    106: "FetchSessionTopicIdException", 128: "InvalidRegularExpression",
}  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm errors [ERROR] [--json]"
    parser = subparsers.add_parser("errors", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("error", nargs="?", metavar="ERROR", help="a code, a name, or a part of a name")
    parser.add_argument("--json", action="store_true", help="one object a line for each error")


def run(arguments: argparse.Namespace) -> int:
    """Print what is found. 2 if nothing is."""
    found = list(ERRORS) if arguments.error is None else find(arguments.error)
    if not found:
        guess = suggestion(arguments.error, ERRORS.names(), "klamm errors")
        print(f"klamm errors: unknown error {arguments.error!r}{guess}", file=sys.stderr)
        return 2
    if arguments.json:
        for error in found:
            print_json({**error._asdict(), "exception": exception(error) or None})
    elif len(found) == 1:
        explain(found[0])
    else:
        print_table(("code", "error", "", "meaning"), map(_row, found))
    return 0


def find(text: str) -> list[KafkaError]:
    """The error of this code, name or exception, else those whose names, or else whose meanings, contain the
    text. An older name counts in full where it is a part of no other.
    """
    if CODE.fullmatch(text):
        return [error for error in ERRORS if error.code == int(text)]
    word = _plain(text)
    names = {
        error: [_plain(name) for name in (error.name, *error.aliases, exception(error)) if name]
        for error in ERRORS
    }
    is_exception = text.casefold().endswith("exception")
    exact = [error for error, known in names.items() if word == known[0] or (is_exception and word in known)]
    if exact:
        return exact
    parts = [error for error, known in names.items() if word and any(word in name for name in known)]
    return parts or [error for error in ERRORS if text.strip().casefold() in error.meaning.casefold()]


def _plain(name: str) -> str:
    """NOT_LEADER_OR_FOLLOWER, not-leader-or-follower, org...NotLeaderOrFollowerException: all are one."""
    letters = "".join(letter for letter in name.rpartition(".")[2].casefold() if letter.isalnum())
    return letters.removesuffix("exception")


def exception(error: KafkaError) -> str:
    """The exception that Java clients throw for it, as NotLeaderOrFollowerException; nothing for NONE."""
    words = "".join(word.capitalize() for word in error.name.split("_"))
    return EXCEPTIONS.get(error.code, f"{words}Exception")


def explain(error: KafkaError) -> None:
    """One error in words."""
    print(f"{error.code} {error.name}: {error.meaning}")
    print("retriable: clients may send the request again" if error.retriable else "not retriable")
    if error.aliases:
        print(f"once called {', '.join(error.aliases)}")
    if exception(error):
        print(f"in Java: {exception(error)}")


def _row(error: KafkaError) -> tuple[str, ...]:
    return str(error.code), error.name, "retriable" if error.retriable else "", error.meaning
