"""Parses text into a tree with Python's own parser, and accepts only the syntax that is listed here."""

from __future__ import annotations

import ast
import math
import warnings

from klamm.rules.expressions import names, unknown
from klamm.rules.expressions.failure import ExpressionError
from klamm.rules.expressions.kinds import Kind
from klamm.rules.expressions.tree import (
    Arithmetic,
    Call,
    Compare,
    Constant,
    IsNone,
    Item,
    Listed,
    Logic,
    Loop,
    Member,
    Name,
    Negative,
    Node,
    Not,
    Quantified,
)

LONGEST = 4000  # characters
DEEPEST = 60
MOST_LOOPS = 4  # one in the other
LARGEST = 2**64

COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
HOLDERS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)  # values that have fields
METHODS = ("lower", "startswith", "endswith")
KINDS: dict[type, Kind] = {
    bool: "boolean", int: "number", float: "number", str: "text", bytes: "bytes",
}  # fmt: skip
MEANT = {
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "=~": 'matches(name, "pattern")',
    "~": 'matches(name, "pattern")',
    "=": "==",
    "!": "not",
    "<>": "!=",
}  # by the written operator
REFUSED: dict[type, str] = {
    ast.Lambda: "a lambda", ast.NamedExpr: ":=", ast.JoinedStr: "an f-string", ast.IfExp: "if else",
    ast.Dict: "a dict", ast.Starred: "*", ast.Await: "await", ast.Yield: "yield", ast.Slice: "a slice",
    ast.ListComp: "a list of for", ast.GeneratorExp: "for outside of any() and all()",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Invert: "~", ast.UAdd: "+",
}  # fmt: skip


def parsed(text: str) -> Node:
    """The tree of an expression. Raises ExpressionError, and nothing else, whatever the text."""
    if len(text) > LONGEST:
        raise ExpressionError(f"more than {LONGEST} characters", LONGEST + 1)
    before = len(text) - len(text.lstrip())
    line = " ".join(text.strip().splitlines())
    if not line:
        raise ExpressionError("there is nothing in it", 1)
    try:
        with warnings.catch_warnings(action="ignore"):  # of "\d" and the like
            found = ast.parse(line, mode="eval").body
    except SyntaxError as problem:
        at = max(1, min(problem.offset or len(line), len(line)))  # Python has 0 for the end
        raise ExpressionError(_reason(problem, line, at), before + at) from None
    except (RecursionError, MemoryError):
        raise ExpressionError("nested too deeply", 1) from None
    except ValueError:
        raise ExpressionError("holds a character that no text should", 1) from None
    syntax = _Syntax(line, before)
    if "#" in syntax.line[found.end_col_offset or 0 :].decode():
        raise ExpressionError("no comments here: they belong into the file", before + line.rindex("#") + 1)
    return syntax.node(found)


def _reason(problem: SyntaxError, line: str, at: int) -> str:
    if not problem.offset:
        return "not an expression: it ends too early"
    for written, meant in MEANT.items():
        for start in (at - 1, at - 2):
            if start >= 0 and line.startswith(written, start):
                return f"{written} is not known here: write {meant}"
    if problem.msg == "invalid decimal literal":
        return "not an expression: numbers have no units; times are in ms, sizes in bytes"
    return f"not an expression: {problem.msg.partition('. ')[0]}"


class _Syntax:
    """One walk over Python's tree."""

    def __init__(self, line: str, before: int) -> None:
        self.line, self.before = line.encode("utf-8", "surrogatepass"), before
        self.depth = self.loops = 0

    def column(self, node: ast.AST) -> int:
        """Python counts bytes."""
        start: int = getattr(node, "col_offset", 0)
        return self.before + len(self.line[:start].decode("utf-8", "replace")) + 1

    def wrong(self, node: ast.AST, reason: str) -> ExpressionError:
        return ExpressionError(reason, self.column(node))

    def node(self, node: ast.expr) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.wrong(node, "nested too deeply")
        made = self._node(node)
        self.depth -= 1
        return made

    def _node(self, node: ast.expr) -> Node:
        column = self.column(node)
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name(id):
                found = names.constant(self.name(node, id))
                return Name(id, column=column) if found is None else Constant(*found, id, column=column)
            case ast.Attribute(of) | ast.Subscript(of) if not isinstance(of, HOLDERS):
                raise self.wrong(node, "nothing is in it")
            case ast.Attribute(of, name):
                return Member(self.node(of), self.name(node, name), column=column)
            case ast.Subscript(of, ast.Constant(str() | int() as key)) if not isinstance(key, bool):
                return Item(self.node(of), key, column=column)
            case ast.BoolOp(operator, terms):
                word = "and" if isinstance(operator, ast.And) else "or"
                return Logic(word, tuple(map(self.node, terms)), column=column)  # type: ignore[arg-type]
            case ast.UnaryOp(ast.Not(), of):
                return Not(self.node(of), column=column)
            case ast.UnaryOp(ast.USub(), of):
                made = self.node(of)
                if isinstance(made, Constant) and made.kind == "number" and not made.name:
                    return Constant(-made.value, "number", column=column)
                return Negative(made, column=column)
            case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC:
                sign = ARITHMETIC[type(operator)]
                return Arithmetic(sign, self.node(left), self.node(right), column=column)
            case ast.Compare():
                return self.compare(node)
            case ast.Call():
                return self.call(node)
            case ast.List() | ast.Tuple() | ast.Set():
                raise self.wrong(node, "a list stands to the right of `in` only")
        what = REFUSED.get(type(getattr(node, "op", node)), "this")
        raise self.wrong(
            node, f"{what} is not known here" + (f": write {MEANT[what]}" if what in MEANT else "")
        )

    def name(self, node: ast.AST, name: str) -> str:
        if name.startswith("_"):
            raise self.wrong(node, f"{name}: no name begins with _")
        return name

    def constant(self, node: ast.Constant) -> Constant:
        value = node.value
        if value is None:
            raise self.wrong(node, "None: nothing equals it; write `is None` or `is not None`")
        if type(value) not in KINDS or (isinstance(value, float) and not math.isfinite(value)):
            raise self.wrong(node, "not a number, text, True or False")
        if isinstance(value, int) and value >= LARGEST:
            raise self.wrong(node, "a number that no field can hold")
        return Constant(value, KINDS[type(value)], column=self.column(node))

    def compare(self, node: ast.Compare) -> Node:
        signs = [COMPARE[type(operator)] for operator in node.ops]
        column, first, second = self.column(node), self.node(node.left), node.comparators[0]
        if len(signs) > 1 and not {"in", "not in", "is", "is not"}.isdisjoint(signs):
            raise self.wrong(node, "`in` and `is` are not chained: join two comparisons with `and`")
        if signs[0] in ("is", "is not"):
            if not (isinstance(second, ast.Constant) and second.value is None):
                raise self.wrong(second, "`is` is for None only: write ==")
            return IsNone(first, signs[0] == "is not", column=column)
        if isinstance(second, ast.List | ast.Tuple | ast.Set) and signs[0] in ("in", "not in"):
            return Compare(first, ((signs[0], self.listed(second, first, signs[0])),), column=column)
        return Compare(first, tuple(zip(signs, map(self.node, node.comparators), strict=True)), column=column)

    def listed(self, node: ast.List | ast.Tuple | ast.Set, first: Node, sign: str) -> Listed:
        if not node.elts:
            raise self.wrong(node, "an empty list: nothing is in it")
        items = tuple(map(self.node, node.elts))
        for made in items:
            if not isinstance(made, Constant):
                raise unknown.in_list(first, sign, made)
        return Listed(items, column=self.column(node))  # type: ignore[arg-type]

    def call(self, node: ast.Call) -> Node:
        column, arguments = self.column(node), list(node.args)
        match node.func:
            case ast.Name("any" | "all" as word):
                return self.quantified(node, word)
            case ast.Name(name):
                pass
            case ast.Attribute(of, name) if name in METHODS:
                arguments.insert(0, of)
            case ast.Attribute(_, name):
                raise self.wrong(node, f"there is no method {name}; known are {', '.join(METHODS)}")
            case _:
                raise self.wrong(node, "only functions are called")
        self.name(node, name)
        try:
            function = names.function(name)
        except ValueError as problem:
            raise self.wrong(node, str(problem)) from None
        made = tuple(map(self.node, arguments))
        fixed = [a.value for a in made[1:] if isinstance(a, Constant) and a.kind == "text"]
        wanted = len(function.takes) + (function.prepare is not None)
        enough = len(made) == wanted or (name == "glob" and len(made) > wanted)
        if node.keywords or not enough or (function.prepare and len(fixed) != len(made) - 1):
            raise self.wrong(node, f"must be {function.usage}")
        if function.prepare is not None:
            try:
                function.prepare(*fixed)
            except ValueError as problem:
                raise self.wrong(arguments[1], str(problem)) from None
        return Call(name, made, column=column)

    def quantified(self, node: ast.Call, word: str) -> Node:
        form = f"must be {word}(condition for x in array)"
        if len(node.args) != 1 or node.keywords or not isinstance(node.args[0], ast.GeneratorExp):
            raise self.wrong(node, form)
        of = node.args[0]
        self.loops += len(of.generators)
        if self.loops > MOST_LOOPS:
            raise self.wrong(node, f"more than {MOST_LOOPS} `for` in one another")
        loops = []
        for loop in of.generators:
            if not isinstance(loop.target, ast.Name) or loop.is_async:
                raise self.wrong(loop.target, form)
            variable = self.name(loop.target, loop.target.id)
            if not variable.islower():
                raise self.wrong(loop.target, f"{variable}: a variable has small letters")
            over = self.node(loop.iter)
            if not isinstance(over, Name | Member):
                raise self.wrong(loop.iter, "not an array of the frame")
            conditions = tuple(map(self.node, loop.ifs))
            loops.append(Loop(variable, over, conditions, column=self.column(loop.target)))
        made = Quantified(word, self.node(of.elt), tuple(loops), column=self.column(node))  # type: ignore[arg-type]
        self.loops -= len(of.generators)
        return made
