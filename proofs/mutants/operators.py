"""Small changes to a source text, one at a time, each made from the syntax tree.

Code that cannot affect an answer of the suite is not changed. These rules decide, never a list:

- texts: docstrings, f-strings, string constants that are no `struct` format;
- texts of errors: the arguments of a ``raise``, of `Doc`, of `Location` and of ``at``, and arguments by the names
  of `WORDS`;
- code for type checkers and the class machinery: annotations, decorators, asserts, ``if TYPE_CHECKING``;
- functions that only display something: ``__repr__``, ``__str__``, and those that give the `Location` of an error, with
  the arguments of their calls;
- effects that only the machine sees: calls that flush, close or release something, and code that depends on the
  platform;
- the byte order of numbers that are single bytes.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS: Final = frozenset({"at", "path", "expected", "found", "msg", "message", "maxsize"})
SAYING: Final = frozenset({"Doc", "Location", "at", "TypeVar"})
SHOWING: Final = frozenset({"__repr__", "__str__"})
STRUCT_FORMAT: Final = re.compile(r"[<>](?:\d*[bBsx])*(?:\d*[hHiIqQ])(?:\d*[bBhHiIqQsx])*")
MACHINERY: Final = frozenset({"fsync", "fsync_directory", "release", "close"})
ORDERED_FIELD: Final = re.compile(r"(?:Int|Float)(?:8|16|24|32|64)[su][bl]")

COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
CALCULATED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change.

    Attributes:
        file: below the repository.
        line: line of the changed expression or statement, from 1.
        scope: dotted name of the function or declaration around it.
        operator: kind of change.
        before: the removed source text.
        after: the text that replaces it.
        start: position of the text in bytes of the file.
        end: position after it.
        function: first line of the innermost function around it; None at the level of a module or a class.
    """

    file: str
    line: int
    scope: str
    operator: str
    before: str
    after: str
    start: int
    end: int
    function: int | None

    def apply(self, text: str) -> str:
        """Return the source text with the change in it."""
        data = text.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()

    @property
    def scope_path(self) -> str:
        """File and scope: stable while lines move."""
        return f"{self.file}:{self.scope}" if self.scope else self.file


Change = tuple[str, ast.AST, ast.AST | str]
"""Operator, the node that goes, and what comes in its place."""


def mutations(text: str, file: str) -> list[Mutation]:
    """Return every change that the operators can make to a module, in the order of its text."""
    found = _Finder(text, file).found
    distinct = {(one.start, one.end, one.after): one for one in found if one.before != one.after}
    return sorted(distinct.values(), key=lambda one: (one.start, one.end, one.operator, one.after))


class _Finder:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.data = text.encode()
        lines = self.data.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutation] = []
        tree = ast.parse(text)
        self.placing = SAYING | {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and _name_of(node.returns) == "Location"
        }
        self._walk(tree, "", None)

    def _walk(self, parent: ast.AST, scope: str, function: int | None) -> None:
        for node in _mutable_children(parent, self.placing):
            inner = ".".join(filter(None, (scope, _scope_name(node))))
            body = node.lineno if isinstance(node, ast.FunctionDef) else function
            for change in _changes(node):
                self._add(change, inner, body)
            self._walk(node, inner, body)

    def _add(self, change: Change, scope: str, function: int | None) -> None:
        operator, node, new = change
        assert isinstance(node, (ast.expr, ast.stmt))
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = self.data[start:end].decode()
        after = new if isinstance(new, str) else _written(node, new)
        self.found.append(Mutation(self.file, node.lineno, scope, operator, before, after, start, end, function))


def _written(old: ast.AST, new: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(new))
    is_operation = isinstance(old, (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp))
    return f"({text})" if is_operation else text


def _scope_name(node: ast.AST) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign)) else ""


def _name_of(node: ast.expr | None) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _name_of(node.test) == "TYPE_CHECKING"


def _asks_the_platform(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and _name_of(node.left) == "platform"


def _mutable_children(node: ast.AST, saying: frozenset[str]) -> Iterator[ast.AST]:
    """Yield the children of a node that may be changed by the rules in the module's docstring."""
    skipped: list[ast.AST] = [getattr(node, name, None) for name in ("annotation", "returns")]  # type: ignore[misc]
    skipped += getattr(node, "decorator_list", [])
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, ast.Call):
        said = node.args if _name_of(node.func) in saying else []
        skipped += [*said, *(word for word in node.keywords if word.arg in WORDS)]
    for child in ast.iter_child_nodes(node):
        is_saying = isinstance(child, (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom, ast.arg))
        is_showing = isinstance(child, ast.FunctionDef) and (
            child.name in SHOWING or _name_of(child.returns) == "Location"
        )
        is_out_of_reach = _is_type_checking(child) or _asks_the_platform(child)
        if not (child in skipped or is_saying or is_showing or is_out_of_reach):
            yield child


def _changes(node: ast.AST) -> Iterator[Change]:
    for kind, make in MAKERS:
        if isinstance(node, kind):
            yield from make(node)


def _comparison(node: ast.Compare) -> Iterator[Change]:
    if len(node.ops) != 1:
        for number, operator in enumerate(node.ops):
            for other in COMPARED[type(operator)][:1]:
                ops = [other() if at == number else one for at, one in enumerate(node.ops)]
                yield "comparison", node, ast.Compare(node.left, ops, node.comparators)
        return
    for other in COMPARED[type(node.ops[0])]:
        yield "comparison", node, ast.Compare(node.left, [other()], node.comparators)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _calculation(node: ast.BinOp) -> Iterator[Change]:
    other = CALCULATED.get(type(node.op))
    if other is not None and not (_is_text(node.left) or _is_text(node.right)):
        yield "arithmetic", node, ast.BinOp(node.left, other(), node.right)


def _condition(node: ast.BoolOp) -> Iterator[Change]:
    yield "boolean", node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for number in range(len(node.values)):
        rest = [value for at, value in enumerate(node.values) if at != number]
        yield "condition left out", node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _negation(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Not):
        yield "boolean", node, node.operand
    elif isinstance(node.op, ast.USub):
        yield "sign", node, node.operand


def _constant(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool() as value:
            yield "constant", node, ast.Constant(not value)
        case int() as value:
            yield "boundary", node, ast.Constant(value + 1)
            yield "boundary", node, f"({value - 1})"
        case str() as value if STRUCT_FORMAT.fullmatch(value):
            swapped = ("<" if value[0] == ">" else ">") + value[1:]
            yield "byte order", node, ast.Constant(swapped)


def _field(node: ast.Name) -> Iterator[Change]:
    if isinstance(node.ctx, ast.Load) and ORDERED_FIELD.fullmatch(node.id):
        swapped = node.id[:-1] + ("l" if node.id.endswith("b") else "b")
        signed = node.id[:-2] + ("u" if node.id[-2] == "s" else "s") + node.id[-1]
        if "8" not in node.id:
            yield "byte order", node, f'__import__("construct").{swapped}'
        yield "sign", node, f'__import__("construct").{signed}'


def _range(node: ast.Subscript) -> Iterator[Change]:
    part = node.slice
    if not isinstance(part, ast.Slice) or not isinstance(node.ctx, ast.Load):
        return
    one = ast.Constant(1)
    if part.lower is not None:
        lower = ast.BinOp(part.lower, ast.Add(), one)
        yield "range", node, ast.Subscript(node.value, ast.Slice(lower, part.upper, part.step), node.ctx)
    if part.upper is not None:
        upper = ast.BinOp(part.upper, ast.Sub(), one)
        yield "range", node, ast.Subscript(node.value, ast.Slice(part.lower, upper, part.step), node.ctx)


def _branch(node: ast.If | ast.While | ast.IfExp) -> Iterator[Change]:
    if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
        yield "condition turned", node.test, f"(not ({ast.unparse(node.test)}))"


def _result(node: ast.Return) -> Iterator[Change]:
    is_nothing = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    if not is_nothing:
        yield "result left out", node, "return None"


def _statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Raise():
            yield "raise left out", node, "pass"
        case ast.Expr(value=ast.Call(func=function)) if _name_of(function) not in MACHINERY:
            yield "call left out", node, "pass"
        case ast.Continue():
            yield "loop", node, "break"
        case ast.Break():
            yield "loop", node, "continue"


def _increment(node: ast.AugAssign) -> Iterator[Change]:
    other = CALCULATED.get(type(node.op))
    if other is not None and not _is_text(node.value):
        yield "arithmetic", node, ast.AugAssign(node.target, other(), node.value)


MAKERS: Final = (
    (ast.Compare, _comparison),
    (ast.BinOp, _calculation),
    (ast.BoolOp, _condition),
    (ast.UnaryOp, _negation),
    (ast.Constant, _constant),
    (ast.Name, _field),
    (ast.Subscript, _range),
    (ast.If, _branch),
    (ast.While, _branch),
    (ast.IfExp, _branch),
    (ast.Return, _result),
    (ast.stmt, _statement),
    (ast.AugAssign, _increment),
)
