"""A mistake in an expression is reported with its column; no text raises anything else."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.decoders import API
from klamm.rules.expressions import ExpressionError, parse

# Pairs of lines: an expression over a Metadata 12 response, and what is said of it.
LINES = Path(__file__).with_suffix(".txt").read_text().splitlines()
MISTAKES = list(zip(LINES[::2], LINES[1::2], strict=True))
PAGE = (Path(__file__).parents[3] / "docs" / "expressions.md").read_text()
GUIDE = re.findall(
    r"^\| `(.*)` \| `(.*)` \|$", PAGE.partition("| written | told |")[2].partition("\n\n")[0], re.M
)

NESTED = {
    "parentheses": "(" * 1500 + "1" + ")" * 1500,
    "not": "not " * 900 + "a",
    "minus": "-" * 3900 + "1",
    "members": "a" + ".b" * 1900,
    "sums": "a" + "+a" * 1900,
    "calls": "lower(" * 600 + "a" + ")" * 600,
    "comparisons": "(a == " * 600 + "b" + ")" * 600,
    "loops": "any(" * 190 + "x" + " for x in y)" * 190,
    "items": "a" + "[0]" * 1200,
}
OUTSIDE = {
    "__import__('os').system('true')", "().__class__", "topic.__class__", "a.__dict__ == 1", "lambda: 1",
    "(a := 1)", 'f"{a}"', "10**10**10", "1 << 99999999", "'a' * 99999999 == 'b'", "9" * 3000 + " == a",
    "0x" + "f" * 500 + " == a", "1e999 == a", "1j == a", "... == a", "[x for x in a]", "{x: 1}", "{**a}",
    "a if b else c", "await a", "(yield)", "print(1)", "eval('1')", "open('x')", "getattr(a, 'b')",
    "any(*a)", "any(x for x in a, 1)", "any(x async for x in a)", "any([1])", "any(x for (x, y) in a)",
    "any(x for x in [1])", "len(a, b)", "len(*a)", "len(x=1)", "a()", "a.b()", "a()()", "(a)(b)", "a[b]",
    "a[1:2]", "a[True]", "a[1.5]", "matches(a, b)", "matches(a, '(')", "matches(a, '(a{1000}){1000}')",
    r"matches(a, '(.)\\1')", "matches(a, '\\ud800')", "matches(a, '" + "a" * 1001 + "')", "glob(a, b)",
    "glob(a)", "a == 1; b", "a == 1 # b", "a == 1\n# b", "a\0b", "\ud800", "'\ud800' == a", "import os",
    "x = 1", "*a", "a,", "a == None", "a is b", "a is 1", "a < b in c", "a in []", "a in [b]", "[1] == a",
    "a and", "", "   ", "\n", "#", "'", '"""', "a ^ b", "a | b", "~a", "+a", "a @ b", "True.real",
    "1 .real == 1", "'a'.upper()", "not", "any", "_", "__", "b'ä' == a",
}  # fmt: skip
TOKENS = [
    *"()[]{}.,:;#'\"\\\n=<>!+-*/%@&|^~` 019eé", "==", "!=", "<=", "**", "//", ":=", " in ", " not ", " is ",
    " and ", " or ", " if ", " else ", " for ", "lambda ", "await ", "None", "True", "any(", "all(", "len(",
    "glob(", "matches(", "json(", "topics", "t", "brokers", "b.node_id", "for b in brokers)",
    "for t in topics", "record", ".key", "error", "topic", "NONE", "Metadata", "size", "body", "request",
    "'x'", "f'{", "}'", "0x", "1e9", "_", "__class__", "\0", "\ud800",
]  # fmt: skip


def mistake_in(text: str) -> str | None:
    try:
        return parse(text).fits(API["Metadata"], 12, "response")
    except ExpressionError as wrong:
        return str(wrong)


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_named_with_what_to_do(text: str, message: str) -> None:
    assert mistake_in(text) == message.strip()


@pytest.mark.parametrize(("text", "message"), GUIDE)
def test_the_guide_tells_what_is_said_of_mistakes(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as wrong:
        parse(text).apis()
    assert str(wrong.value) == message


def test_the_guide_has_mistakes() -> None:
    assert len(GUIDE) == 8


@pytest.mark.parametrize("text", sorted(OUTSIDE, key=ascii), ids=ascii)
def test_what_is_no_part_of_the_language_is_refused(text: str) -> None:
    assert mistake_in(text) is not None


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_is_refused_at_once(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(ExpressionError):
        parse(text)
    assert time.process_time() - begun < 1


def test_a_text_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(ExpressionError, match="more than 4000 characters"):
        parse("a == 1 or " * 10_000 + "b")


@pytest.mark.parametrize(
    ("fits", "beyond", "reason"),
    [
        ("size == 1" + " " * 3991, "size == 1" + " " * 3992, "more than 4000 characters"),
        ("not " * 58 + "size == 1", "not " * 59 + "size == 1", "nested too deeply"),
        (
            f"matches(client_id, {'a' * 1000!r})",
            f"matches(client_id, {'a' * 1001!r})",
            "the pattern has more than 1000 characters",
        ),
        (
            "any(size == 1 for a in topics for b in a.partitions for c in b.isr_nodes for d in brokers)",
            "any(size == 1 for a in topics for b in a.partitions for c in b.isr_nodes for d in brokers "
            "for e in brokers)",
            "more than 4 `for` in one another",
        ),
    ],
    ids=["characters", "deep", "pattern", "for"],
)
def test_an_expression_is_as_large_as_the_guide_says_and_no_larger(
    fits: str, beyond: str, reason: str
) -> None:
    assert mistake_in(fits) is None
    assert reason in str(mistake_in(beyond))


def test_a_pattern_does_not_backtrack() -> None:
    holds = parse("matches(client_id, '(a+)+$')").on(API["Metadata"], 12, "response")

    class Frame:
        client_id = "a" * 100_000 + "b"
        work = 0

    begun = time.process_time()
    assert holds(Frame()) is False  # type: ignore[arg-type]
    assert time.process_time() - begun < 1


@given(st.lists(st.sampled_from(TOKENS), max_size=25).map("".join) | st.text(max_size=60))
def test_whatever_the_text_it_is_an_expression_or_an_error_with_its_column(text: str) -> None:
    message = mistake_in(text)
    if message is not None:
        columns = re.findall(r"\(column (\d+)\)", message)
        assert 1 <= int(columns[-1]) <= len(text) + 1
    else:
        tree = parse(text)
        assert parse(str(tree)) == tree


@pytest.mark.parametrize("text", [
    "  controler_id == 1", "\n controler_id == 1", "any(\n controler_id == 1 for b in brokers)",
    "cluster_id == 'ä€' and controler_id == 1",
])  # fmt: skip
def test_columns_count_characters(text: str) -> None:
    message = mistake_in(text)
    assert message is not None
    assert f'unknown field "controler_id" (column {text.index("controler") + 1}); did you mean' in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acsk == 1", 'unknown field "acsk" (column 1); did you mean acks?'),
        (
            "acks == 1 and not (orders-1 or acks == 2)",
            'orders-1 is no condition: write client_id == "orders-1", topic == "orders-1" or '
            'group == "orders-1" (column 20)',
        ),
        ("topic == users", 'text needs quotes: topic == "users" (column 10)'),  # a field of another API
        ('latency_ms > "5"', "latency_ms is a number: drop the quotes (column 1)"),  # not known of requests
        (
            "acks == 1 and controller_id == 1",
            "can hold for no API: Produce requests have no controller_id (column 15)",
        ),
        (
            "any(p.index > 3 for t in topic_data for p in t.partition_dat)",
            "can hold for no API: Produce requests have no topic_data.partition_dat (column 46); did you "
            "mean partition_data?",
        ),
        (
            "record.size == 3",
            "a record has no size; known are key, value, offset, timestamp, headers (column 1)",
        ),
    ],
)
def test_what_can_hold_for_no_api_is_said_of_the_one_that_was_meant(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as wrong:
        parse(text).apis()
    assert str(wrong.value) == message
