"""Globs and patterns as Spark matches them, judged by those that rules match with."""

from collections.abc import Callable
from random import Random

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from klamm.pipeline.sql.patterns import globbed, matched
from klamm.rules.expressions.names import FUNCTIONS
from klamm.rules.glob import Glob

ATOMS = [
    *"abkS-_ 9éſ.^$#]{}\nK",
    *"[ab] [^ab] [a-k] []a] [^]a-] [a-] [$^.] [a&&b] [é-ſ] [^\\w] [\\W_] [\\x61-\\x{6b}] [[:alpha:]]".split(),
    *"[[:^upper:]9] \\d \\D \\w \\W \\s \\S \\b \\n \\v \\x61 \\x{e9} \\. \\- \\A \\z x{,2}".split(),
    *"(?i) (?m) (?ims) (?-i) (?U)".split(),
]
REPEATS = ["", "", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "{2}?"]
GROUPS = ["(", "(?:", "(?i:", "(?P<n>", "(?s-i:", "(?m:"]
GLOBS = [
    *"abk*?-é%_\\{.[]",
    *"[ab] [!a] [a-k] [!a-k] []a] [z-a] [a-] [!] [\\] [!\\a] [[a] [^a] [a&&b] [--9] [a-c-e] [!!] [)]".split(),
]
LETTERS = "abkKsS-_ 9é\nſ\u212a.x{,2}]&\x0b\r𝄞A"
COLUMNS, ROWS = 150, 120


def pattern(random: Random, depth: int = 0) -> str:
    text = ""
    for _ in range(random.randrange(1, 4)):
        form = random.random() if depth < 2 else 1
        if form < 0.2:
            text += random.choice(GROUPS) + pattern(random, depth + 1) + ")" + random.choice(REPEATS)
        elif form < 0.3:
            text += pattern(random, depth + 1) + "|" + pattern(random, depth + 1)
        else:
            text += random.choice(ATOMS) + random.choice(REPEATS)
    return text


def glob(random: Random) -> str:
    return "!" * (random.random() < 0.2) + "".join(random.choice(GLOBS) for _ in range(random.randrange(4)))


def held(spark: SparkSession, random: Random, columns: list[tuple[str, Callable[[str], bool]]]) -> float:
    """The share of them that held. Raises AssertionError where Spark and Python differ."""
    texts = ["", "\r\n", "\u0085", "\u2028", "a\n", "\na"]
    texts += ["".join(random.choice(LETTERS) for _ in range(random.randrange(1, 9))) for _ in range(ROWS)]
    rows = spark.createDataFrame(pa.table({"place": range(len(texts)), "name": texts}))
    found = rows.select("place", *(F.expr(text) for text, _ in columns)).toArrow().sort_by("place")
    outcomes = []
    for column, (text, judge) in zip(found.columns[1:], columns, strict=True):
        for name, outcome in zip(texts, column.to_pylist(), strict=True):
            assert outcome is judge(name), (text, name)
            outcomes.append(outcome)
    return sum(outcomes) / len(outcomes)


def test_a_pattern_that_is_not_refused_matches_what_re2_matches(spark: SparkSession) -> None:
    random, columns = Random(5), []
    while len(columns) < COLUMNS:
        text = pattern(random)
        try:
            columns.append((matched("name", text), FUNCTIONS["matches"].prepare(text)))
        except ValueError:
            continue
    assert 0.2 < held(spark, random, columns) < 0.8


def test_a_glob_matches_what_rules_match(spark: SparkSession) -> None:
    random = Random(6)
    globs = [tuple(glob(random) for _ in range(random.randrange(1, 3))) for _ in range(COLUMNS)]
    assert 0.05 < held(spark, random, [(globbed("name", *one), Glob(*one)) for one in globs]) < 0.5
