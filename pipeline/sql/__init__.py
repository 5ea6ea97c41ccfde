"""Expressions of the rule language as conditions over the table `exchanges`, with the outcome that they have
over frames (docs/expressions.md): true where `Expression.holds(request, response)` is, else false or null.

    exchanges.where(condition(parse("acks == -1 and any(len(t.name) > 9 for t in topic_data)")))

A column can say what the table can. ExpressionError is raised for what it can not:

- `record`, `json()`: the content of records is not in the table; nor are secrets, except their size and
  whether they are null.
- `/` of numbers that may be beyond 2**53, and numbers of more than 38 digits: Python reckons them exactly,
  Spark does not. `//` and `%` take whole numbers of 64 bits.
- `matches` with what java.util.regex does not know, or need not do in bounded time: `\\B`, `\\C`, `\\p`,
  letters beyond ASCII after `(?i)`, and a repeated group that is not of one length or has alternatives.
- `topic` where only ids are on the wire, unless `names` is given.
- bytes as text in `<`, `lower`, `glob` and `matches`.

Where the table says less than the frames do:

- A frame whose body cannot be read in full has no body in the table, and what asks for it does not hold; over
  frames, what stands before the damage can be asked for.
- Text that is not UTF-8 is in the table as Python's `backslashreplace` shows it, and is compared so.
- A frame of which only the size was kept is judged by its header here, and not at all there.
- `size` counts on headers without tagged fields, as all known clients and brokers send them.
- `latency_ms` is in whole microseconds.
- `lower` of letters that came after the Unicode of the Python at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.sql.covering import sql
from klamm.rules.expressions import Expression

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["condition", "sql"]


def condition(expression: Expression, names: Mapping[str, str] | None = None) -> Column:
    """A boolean, for `DataFrame.where`. `names`: topics by their ids as Kafka prints them, as
    `tables.names` has them; an id that is not among them has no known name. Raises
    ExpressionError for what no column can say, and ValueError for what can hold for no API.
    """
    from pyspark.sql import functions as F

    return F.expr(sql(expression, names))
