"""Records of version 2 of recipes: columns of keys, values and headers, in one piece of bytes each, and timestamps."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul, not_
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_format.generation.draws import NUMBER_BITS, WORDS, Draws, threshold
from seglog_format.generation.recipe_model import SHUFFLED_SPAN, HeaderRecipe, ValueRecipe
from seglog_format.model import NO_TIMESTAMP
from seglog_format.record_model import Record, RecordHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from seglog_format.generation.recipe_model import StepRecipe, TimestampRecipe

Purpose: TypeAlias = "tuple[str | int, ...]"
"""The use of random numbers; each has its own sequence."""

JSON_DIGITS: Final = 24
"""Digits of 4 bits that are drawn for a JSON object."""


@dataclass(frozen=True, slots=True)
class Column:
    """Byte strings, each of which may be null.

    Attributes:
        ends: a 0, then the position in `data` after each byte string.
        data: of all of them.
        nulls: whether each is null; None if none is.
    """

    ends: array[int]
    data: bytes
    nulls: Sequence[bool] | None = None

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __iter__(self) -> Iterator[bytes | None]:
        nulls = self.nulls
        for number, (start, end) in enumerate(pairwise(self.ends)):
            yield None if nulls is not None and nulls[number] else self.data[start:end]

    def to_arrow(self) -> pa.LargeBinaryArray:
        """Return the column as Arrow reads it; the bytes are not copied."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        valid = None if self.nulls is None else pa.array([not null for null in self.nulls]).buffers()[1]
        buffers = [valid, pa.py_buffer(self.ends), pa.py_buffer(self.data)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self), buffers)


def _from_pieces(pieces: Sequence[bytes], nulls: Sequence[bool] | None = None) -> Column:
    return Column(_ends(map(len, pieces)), b"".join(pieces), nulls)


def _ends(sizes: Iterable[int]) -> array[int]:
    return array("q", accumulate(sizes, initial=0))


@lru_cache(maxsize=8)
def _even_ends(count: int, size: int) -> array[int]:
    """Return the ends of byte strings of one size; most pieces of a step have the same."""
    return array("q", range(0, count * size + 1, size)) if size else array("q", bytes(8 * (count + 1)))


class ValueMaker:
    """Makes keys or values.

    Args:
        recipe: of the keys or values.
        seed: of the recipe.
        purpose: of the random numbers.
        shared: of the random numbers that make the distinct values.
    """

    def __init__(self, recipe: ValueRecipe, seed: int, purpose: Purpose, shared: Purpose = ()) -> None:
        self._recipe = recipe
        self._draws = Draws(seed, *purpose)
        self._pool: list[bytes] = []
        if recipe.distinct:
            kind = "random" if recipe.kind == "text" else recipe.kind
            alone = replace(recipe, kind=kind, distinct=0, null=0.0, empty=0.0)
            values = [value or b"" for value in ValueMaker(alone, seed, (*shared, "distinct")).make(recipe.distinct)]
            is_text = recipe.kind == "text"  # words would repeat
            self._pool = [value.hex()[: len(value)].encode() for value in values] if is_text else values

    def make(self, count: int) -> Column:
        """Make so many keys or values."""
        recipe = self._recipe
        if recipe.kind in {"null", "empty"}:
            return Column(_even_ends(count, 0), b"", [True] * count if recipe.kind == "null" else None)
        nulls, absent = self._absent(count)
        if self._pool or recipe.kind in {"fixed", "json"}:
            pieces = self._pieces(count)
            if absent is not None:
                pieces = [b"" if is_absent else piece for piece, is_absent in zip(pieces, absent, strict=True)]
            return _from_pieces(pieces, nulls)
        if absent is None and recipe.size[0] == recipe.size[-1]:
            ends = _even_ends(count, recipe.size[0])
        else:
            sizes = self._draws.within(count, recipe.size)
            ends = _ends(sizes if absent is None else map(mul, sizes, map(not_, absent)))
        draw = self._draws.text if recipe.kind == "text" else self._draws.data
        return Column(ends, draw(ends[-1]), nulls)

    def _absent(self, count: int) -> tuple[list[bool] | None, list[bool] | None]:
        """Draw which are null, and which are null or empty; None if none can be."""
        recipe = self._recipe
        if not recipe.null and not recipe.empty:
            return None, None
        null = threshold(recipe.null)
        absent = null + int(recipe.empty * ((1 << NUMBER_BITS) - null))
        numbers = self._draws.numbers(count)
        nulls = [number < null for number in numbers] if recipe.null else None
        return nulls, [number < absent for number in numbers]

    def _pieces(self, count: int) -> list[bytes]:
        if self._pool:
            return [self._pool[number] for number in self._draws.within(count, (0, len(self._pool) - 1))]
        if self._recipe.kind == "fixed":
            return [self._recipe.text.encode()] * count
        digits = self._draws.data(count * JSON_DIGITS // 2).hex()
        starts = range(0, len(digits), JSON_DIGITS)
        return [_json(digits[start : start + JSON_DIGITS]) for start in starts]


def _json(digits: str) -> bytes:
    """Return a JSON object made from random hexadecimal digits."""
    word = WORDS[int(digits[:2], 16) % len(WORDS)].decode()
    cents = int(digits[2:6], 16)
    return f'{{"id":"{digits[6:14]}","event":"{word}","cents":{cents},"trace":"{digits[8:]}"}}'.encode()


@dataclass(frozen=True, slots=True)
class Headers:
    """Record headers: a 0, then the number of headers up to the end of each record; the keys and values of them all."""

    ends: array[int]
    keys: Column
    values: Column

    def __iter__(self) -> Iterator[tuple[RecordHeader, ...]]:
        pairs = zip(self.keys, self.values, strict=True)
        for start, end in pairwise(self.ends):
            yield tuple(RecordHeader(key or b"", value) for key, value in (next(pairs) for _ in range(start, end)))

    def to_arrow(self) -> pa.LargeListArray:
        """Return the headers as Arrow reads them."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        pairs = pa.StructArray.from_arrays([self.keys.to_arrow(), self.values.to_arrow()], ["key", "value"])
        ends = pa.Array.from_buffers(pa.int64(), len(self.ends), [None, pa.py_buffer(self.ends)])
        return pa.LargeListArray.from_arrays(ends, pairs)


class HeaderMaker:
    """Makes the headers of records.

    Args:
        recipe: of the headers.
        seed: of the recipe.
        purpose: of the random numbers.
    """

    def __init__(self, recipe: HeaderRecipe, seed: int, purpose: Purpose) -> None:
        self._recipe = recipe
        self._draws = Draws(seed, *purpose)
        values = ValueRecipe(kind="random", size=recipe.size, null=recipe.null)
        self._values = ValueMaker(values, seed, (*purpose, "values"))

    def make(self, count: int) -> Headers | None:
        """Make the headers of so many records; None if no record has any."""
        if not self._recipe.count[1]:
            return None
        ends = _ends(self._draws.within(count, self._recipe.count))
        words = [WORDS[number] for number in self._draws.within(ends[-1], (0, len(WORDS) - 1))]
        return Headers(ends, _from_pieces(words), self._values.make(ends[-1]))


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of the records that one producer writes in a piece."""

    timestamps: array[int]
    keys: Column
    values: Column
    headers: Headers | None

    def records(self) -> Iterator[Record]:
        """Yield the records, without offsets."""
        headers: Any = iter(self.headers) if self.headers is not None else None
        for timestamp_ms, key, value in zip(self.timestamps, self.keys, self.values, strict=True):
            yield Record(-1, timestamp_ms, key, value, () if headers is None else next(headers))

    def to_arrow(self) -> pa.Table:
        """Return the columns as `encode_columns` takes them."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        times = pa.Array.from_buffers(pa.int64(), len(self.timestamps), [None, pa.py_buffer(self.timestamps)])
        columns = {"timestamp": times, "key": self.keys.to_arrow(), "value": self.values.to_arrow()}
        if self.headers is not None:
            columns["headers"] = self.headers.to_arrow()
        return pa.table(columns)


class RowMaker:
    """Makes the records of one producer in one step."""

    def __init__(self, step: StepRecipe, seed: int, purpose: Purpose) -> None:
        shared = purpose[:-1]  # all producers of a step write the same distinct keys and values
        self._keys = ValueMaker(step.key, seed, (*purpose, "key"), (*shared, "key"))
        self._values = ValueMaker(step.value, seed, (*purpose, "value"), (*shared, "value"))
        self._headers = HeaderMaker(step.headers, seed, (*purpose, "headers"))

    def make(self, timestamps: array[int]) -> Rows:
        """Make a record for each timestamp."""
        count = len(timestamps)
        return Rows(timestamps, self._keys.make(count), self._values.make(count), self._headers.make(count))


class Timestamps:
    """The timestamps of a step, in the order of its records."""

    def __init__(self, recipe: TimestampRecipe, start_ms: int, draws: Draws) -> None:
        self._recipe, self._draws = recipe, draws
        self._next_ms = start_ms
        self._left_in_burst = recipe.burst

    def make(self, count: int) -> array[int]:
        """Make the next timestamps."""
        recipe = self._recipe
        fixed = {"zero": 0, "none": NO_TIMESTAMP, "equal": self._next_ms}.get(recipe.order)
        if fixed is not None:
            return array("q", [fixed]) * count
        times = array("q")
        while len(times) < count:
            times.extend(self._run(count - len(times)))
        return times if recipe.order == "ascending" else self._shuffled(times)

    def _run(self, most: int) -> Sequence[int]:
        """Return times up to the next pause."""
        recipe = self._recipe
        count = min(most, self._left_in_burst) if recipe.burst else most
        first, self._next_ms = self._next_ms, self._next_ms + count * recipe.step_ms
        self._left_in_burst -= count
        if recipe.burst and not self._left_in_burst:
            self._left_in_burst = recipe.burst
            self._next_ms += self._draws.within(1, recipe.pause_ms)[0]
        if not recipe.step_ms:
            return [first] * count
        return range(first, first + count * recipe.step_ms, recipe.step_ms)

    def _shuffled(self, times: array[int]) -> array[int]:
        order = self._draws.numbers(len(times))
        mixed = array("q")
        for first in range(0, len(times), SHUFFLED_SPAN):
            span = range(first, min(first + SHUFFLED_SPAN, len(times)))
            mixed.extend(times[number] for number in sorted(span, key=order.__getitem__))
        return mixed
