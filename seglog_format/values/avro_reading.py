"""Reading of Avro values: what a writer's schema wrote, as a reader's schema has it (Avro's schema resolution).

A plan is a function that reads a value at a position; it is made once for each pair of schemas. Fields that the writer
does not have get their defaults, which are read once as values of the reader's schema.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from seglog_format.schema.fields import unsigned_varint, zigzag
from seglog_format.values.avro_schema import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    NO_DEFAULT,
    READS,
    RECORDS,
    AvroField,
    AvroType,
    Input,
    Read,
    block_count,
    converted,
    read_bytes,
    read_int,
    read_long,
    read_null,
    read_string,
    read_whole,
    taken,
)
from seglog_format.values.schemas import UndecodedError
from seglog_format.values.shape import BASE_CELLS, CELL_SIZE, WORK, Visits, text_of

if TYPE_CHECKING:
    from seglog_format.values.avro_schema import Column


# -- defaults of Avro fields: JSON, as the bytes that a writer would have written --------------------------------------


WHOLE: Final = {"int": INT32, "long": INT64}
FLOATS: Final = {"float": FLOAT, "double": DOUBLE}


def encoded_default(kind: AvroType, default: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Return a default as a value of its type.

    In JSON, bytes are text with a code point of 0 to 255 for each. A union takes its first branch that the default
    fits; a record that omits fields gets their own defaults.

    Raises:
        UndecodedError: the default is not of the type, or stands for too many values.
    """
    writer = _Writer()
    writer.write(kind, default)
    return bytes(writer.found)


class _Writer:
    def __init__(self) -> None:
        self.found = bytearray()
        self._left = BASE_CELLS

    def write(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - any JSON
        self._left -= 1
        if self._left < 0:
            msg = f"a default stands for more than {BASE_CELLS} values"
            raise UndecodedError(msg)
        try:
            self._write(kind, value)
        except (AttributeError, TypeError, ValueError, struct.error, OverflowError, KeyError) as error:
            msg = f"the default {value!r:.40} is no {kind.name or kind.kind}"
            raise UndecodedError(msg) from error

    def _write(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        if kind.kind == "union":
            self._write_union(kind, value)
        elif kind.kind in RECORDS:
            for each in kind.fields:
                self.write(each.type, _item(value, each.name, each.default))
        elif kind.kind in {"array", "map"}:
            self._write_items(kind, value)
        elif kind.kind in FLOATS:
            self.found += FLOATS[kind.kind].pack(_number(value))
        elif kind.kind in WHOLE:
            self._write_long(_whole(value, WHOLE[kind.kind]))
        else:
            self._write_leaf(kind, value)

    def _write_leaf(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        if kind.kind == "null":
            _require(value is None)
        elif kind.kind == "boolean":
            _require(isinstance(value, bool))
            self.found.append(value)
        elif kind.kind == "enum":
            self._write_long(kind.symbols.index(value))
        elif kind.kind == "fixed":
            _require(len(value) == kind.size)
            self.found += value.encode("latin-1")
        else:
            data = value.encode("utf-8" if kind.kind == "string" else "latin-1")
            self._write_long(len(data))
            self.found += data

    def _write_items(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        assert kind.items is not None
        is_map = kind.kind == "map"
        _require(isinstance(value, dict if is_map else list))
        if value:
            self._write_long(len(value))
        for each in value.items() if is_map else value:
            if is_map:
                self._write_leaf(AvroType("string"), each[0])
            self.write(kind.items, each[1] if is_map else each)
        self.found.append(0)

    def _write_union(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        before = len(self.found)
        for number, branch in enumerate(kind.branches):
            try:
                self._write_long(number)
                self.write(branch, value)
            except UndecodedError:
                del self.found[before:]
                if self._left < 0:
                    raise
            else:
                return
        raise ValueError

    def _write_long(self, value: int) -> None:
        self.found += unsigned_varint(zigzag(value))


def _item(value: Any, name: str, default: Any) -> Any:  # noqa: ANN401 - any JSON
    _require(isinstance(value, dict))
    found = value.get(name, default)
    _require(found is not NO_DEFAULT)
    return found


def _whole(value: Any, allowed: range) -> int:  # noqa: ANN401 - as above
    _require(type(value) is int and value in allowed)
    return int(value)


def _number(value: Any) -> float:  # noqa: ANN401 - as above
    _require(type(value) in {int, float})
    return float(value)


def _require(is_of_the_type: bool) -> None:  # noqa: FBT001 - a condition
    if not is_of_the_type:
        raise ValueError


# -- reading of Avro values --------------------------------------------------------------------------------------------


PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The types that a reader may have for another type of the writer."""


class _Record:
    """The plan of a record; it can be called before it is complete, by types that contain themselves."""

    __slots__ = ("failure", "steps", "template", "weight")

    def __init__(self) -> None:
        self.failure: str | None = None
        self.steps: list[tuple[str | None, Read]] = []
        self.template: dict[str, Any] = {}
        self.weight = 0

    def __call__(self, source: Input) -> dict[str, Any]:
        if self.failure is not None:
            raise UndecodedError(self.failure)
        WORK.spend(self.weight)
        row = self.template.copy()
        for name, read in self.steps:
            if name is None:
                read(source)
            else:
                row[name] = read(source)
        return row


class Plans:
    """The plans for one reader's schema, and its defaults."""

    def __init__(self) -> None:
        self._records: dict[tuple[int, int, int], _Record] = {}
        self._skips: dict[int, Read | None] = {}
        self._defaults: dict[tuple[int, int], tuple[Any, int]] = {}
        self._used: list[AvroType] = []  # keeps types, so each id is that of one type
        self._visits = Visits()

    def whole(self, writer: AvroType, reader: AvroType, column: Column) -> Read:
        """Return the plan for a writer's schema; the other parameters and errors are those of `plan`."""
        self._visits = Visits()
        return self.plan(writer, reader, column)

    def plan(self, writer: AvroType, reader: AvroType, column: Column | None) -> Read:
        """Return the function that reads a value.

        Args:
            writer: type of the value.
            reader: type to convert it to.
            column: the reader's type as a column; None to read to objects that JSON as text is made of.

        Raises:
            UndecodedError: the types do not match.
        """
        self._visits.add()
        if column is not None and column.is_text:
            plain = self.plan(writer, reader, None)
            return lambda source: None if (value := plain(source)) is None else text_of(value)
        if writer.kind == "union":
            branches = [self._attempt(branch, reader, column) for branch in writer.branches]
            return lambda source: _at(branches, read_long(source), "branch")(source)
        if reader.kind == "union":
            return self._into_union(writer, reader, column)
        if writer.kind in RECORDS and reader.kind in RECORDS:
            return self._record(writer, reader, column)
        if writer.kind in {"array", "map"} and writer.kind == reader.kind:
            return self._items(writer, reader, column)
        return _leaf(writer, reader, is_text=column is None)

    def _attempt(self, writer: AvroType, reader: AvroType, column: Column | None) -> Read:
        """Return a plan; if the types do not match, one that says so when a value needs it."""
        try:
            return self.plan(writer, reader, column)
        except UndecodedError as error:
            return _refusing(str(error))

    def _into_union(self, writer: AvroType, reader: AvroType, column: Column | None) -> Read:
        branch = _branch_for(writer, reader.branches)
        rest = [each for each in reader.branches if each.kind != "null"]
        if column is None or branch.kind == "null" or len(rest) == 1:
            return self.plan(writer, branch, column)
        number = rest.index(branch)
        read, name = self.plan(writer, branch, column.inside[number]), f"member{number}"
        return lambda source: {name: read(source)}

    def _items(self, writer: AvroType, reader: AvroType, column: Column | None) -> Read:
        assert writer.items is not None
        assert reader.items is not None
        inside = None if column is None else column.inside[0]
        read = self.plan(writer.items, reader.items, inside)
        width = 1 if inside is None else inside.width
        if reader.kind == "array":

            def read_array(source: Input) -> list[Any]:
                found: list[Any] = []
                while count := block_count(source):
                    WORK.spend(count * width)
                    found.extend(read(source) for _ in range(count))
                return found

            return read_array

        def read_map(source: Input) -> Any:  # noqa: ANN401 - decoded objects
            found: dict[str, Any] = {}
            while count := block_count(source):
                WORK.spend(count * (width + 1))
                for _ in range(count):
                    key = read_string(source)
                    found[key] = read(source)
            return found if inside is None else list(found.items())

        return read_map

    def _record(self, writer: AvroType, reader: AvroType, column: Column | None) -> _Record:
        key = (id(writer), id(reader), id(column))
        if key in self._records:
            return self._records[key]
        found = self._records[key] = _Record()
        self._used += (writer, reader)
        try:
            self._complete(found, writer, reader, column)
        except UndecodedError as error:
            found.failure = str(error)
            raise
        return found

    def _complete(self, found: _Record, writer: AvroType, reader: AvroType, column: Column | None) -> None:
        columns = [None] * len(reader.fields) if column is None else column.inside
        missing = {each.name: (each, inside) for each, inside in zip(reader.fields, columns, strict=True)}
        by_alias = {alias: each.name for each in reader.fields for alias in each.aliases}
        for each in writer.fields:
            name = each.name if each.name in missing else by_alias.get(each.name, "")
            if name in missing:
                wanted, inside = missing.pop(name)
                found.steps.append((name, self.plan(each.type, wanted.type, inside)))
            elif (skip := self._skip(each.type)) is not None:
                found.steps.append((None, skip))
        found.template = dict.fromkeys(each.name for each in reader.fields)
        found.weight = 1 + len(reader.fields)
        for name, (wanted, inside) in missing.items():
            found.template[name], weight = self._default(wanted, inside)
            found.weight += weight

    def _default(self, wanted: AvroField, column: Column | None) -> tuple[Any, int]:
        """Return the default of a field as a value, and the cells that it fills."""
        key = (id(wanted), id(column))
        if key not in self._defaults:
            if wanted.default is NO_DEFAULT:
                msg = f"the writer's schema lacks the field {wanted.name}, which has no default"
                raise UndecodedError(msg)
            data = encoded_default(wanted.type, wanted.default)
            WORK.begin(len(data))
            before = WORK.left
            value = read_whole(self.plan(wanted.type, wanted.type, column), data)
            self._defaults[key] = value, before - WORK.left + len(data) // CELL_SIZE
        return self._defaults[key]

    def _skip(self, writer: AvroType) -> Read | None:
        """Return the function that passes over a value; None if values of the type take no bytes."""
        key = id(writer)
        if key not in self._skips:
            self._used.append(writer)
            self._skips[key] = _again(self._skips, key)
            self._skips[key] = self._new_skip(writer)
        return self._skips[key]

    def _new_skip(self, writer: AvroType) -> Read | None:
        if writer.kind in RECORDS:
            steps = [skip for each in writer.fields if (skip := self._skip(each.type)) is not None]
            return _skipped_record(steps) if steps else None
        if writer.kind == "union":
            branches = [self._skip(each) or read_null for each in writer.branches]
            return lambda source: _at(branches, read_long(source), "branch")(source)
        if writer.kind in {"array", "map"}:
            assert writer.items is not None
            return _skipped_items(self._skip(writer.items), has_keys=writer.kind == "map")
        if writer.kind == "fixed":
            return (lambda source: taken(source, writer.size)) if writer.size else None
        return {"null": None, "string": read_bytes, "enum": read_int}.get(writer.kind, READS.get(writer.kind))


def _skipped_record(steps: list[Read]) -> Read:
    """Return the function that passes over the fields of a record."""

    def skip(source: Input) -> None:
        for each in steps:
            each(source)

    return skip


def _skipped_items(skip: Read | None, *, has_keys: bool) -> Read:
    def skip_items(source: Input) -> None:
        while count := block_count(source):
            if skip is None and not has_keys:
                continue
            for _ in range(count):
                if has_keys:
                    read_bytes(source)
                if skip is not None:
                    skip(source)

    return skip_items


def _again(known: dict[int, Read | None], key: int) -> Read:
    """Return a function that calls another, which may be known later."""

    def call(source: Input) -> Any:  # noqa: ANN401 - decoded objects
        found = known[key]
        return None if found is None else found(source)

    return call


def _refusing(reason: str) -> Read:
    def refuse(_source: Input) -> None:
        raise UndecodedError(reason)

    return refuse


def _at(known: list[Any] | tuple[Any, ...], number: int, what: str) -> Any:  # noqa: ANN401 - items of any type
    if not 0 <= number < len(known):
        msg = f"{what} {number} of {len(known)}"
        raise UndecodedError(msg)
    return known[number]


def _leaf(writer: AvroType, reader: AvroType, *, is_text: bool) -> Read:
    if writer.kind == "enum" and reader.kind == "enum":
        return _enum(writer, reader)
    if writer.kind == "fixed" and reader.kind == "fixed":
        size = writer.size
        if size != reader.size or not _has_name_of(writer, reader):
            _refuse_types(writer, reader)
        read: Read = lambda source: taken(source, size)  # noqa: E731 - as the others
    elif writer.kind in READS and (writer.kind == reader.kind or reader.kind in PROMOTED.get(writer.kind, ())):
        read = _promoted(writer.kind, reader.kind)
    else:
        _refuse_types(writer, reader)
    return converted(read, writer, reader, is_text=is_text)


def _promoted(writer: str, reader: str) -> Read:
    if writer in {"int", "long"} and reader in {"float", "double"}:
        read_number = READS[writer]
        return lambda source: float(read_number(source))
    return READS[reader] if reader in {"string", "bytes"} else READS[writer]


def _enum(writer: AvroType, reader: AvroType) -> Read:
    if not _has_name_of(writer, reader):
        _refuse_types(writer, reader)
    known = frozenset(reader.symbols)
    symbols = [each if each in known else reader.default for each in writer.symbols]

    def read(source: Input) -> str:
        number = read_int(source)
        symbol: str | None = _at(symbols, number, "symbol")
        if symbol is None:
            msg = f"the reader's schema has no symbol {writer.symbols[number][:80]!r}"
            raise UndecodedError(msg)
        return symbol

    return read


def _refuse_types(writer: AvroType, reader: AvroType) -> None:
    names = [f"{each.kind} {each.name}".rstrip() for each in (writer, reader)]
    msg = f"written as {names[0]}, and the reader's schema has {names[1]}"
    raise UndecodedError(msg)


def _has_name_of(writer: AvroType, reader: AvroType) -> bool:
    aliases = {alias.rpartition(".")[2] for alias in reader.aliases}
    return writer.short_name == reader.short_name or writer.short_name in aliases


def _branch_for(writer: AvroType, branches: tuple[AvroType, ...]) -> AvroType:
    """Return the branch that a value goes to: of the same type and name, else of an alias, else promoted."""
    same = [each for each in branches if each.kind == writer.kind]
    if not writer.name and same:
        return same[0]
    by_name = [each for each in same if each.name == writer.name] or [
        each for each in same if _has_name_of(writer, each)
    ]
    if by_name:
        return by_name[0]
    promoted = [each for each in branches if each.kind in PROMOTED.get(writer.kind, ())]
    if not promoted:
        _refuse_types(writer, AvroType("union"))
    return promoted[0]
