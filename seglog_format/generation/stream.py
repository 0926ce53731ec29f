"""The content of a partition by version 2 of recipes: drawn, made as columns, written piece by piece, at any size."""

from __future__ import annotations

import hashlib
import sys
from array import array
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import accumulate, islice, pairwise
from operator import mul, not_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.engine import is_installed
from seglog_format.errors import UsageError
from seglog_format.generation.plan import NO_PRODUCER, PlannedProducer, PlannedTransaction, still_open, team_of
from seglog_format.generation.recipe_model import SHUFFLED_SPAN, HeaderRecipe, ValueRecipe
from seglog_format.model import (
    NO_SEQUENCE,
    NO_TIMESTAMP,
    ControlRecordType,
    Record,
    RecordHeader,
    TimestampType,
    add_sequence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from seglog_format.generation.recipe_model import Recipe, StepRecipe, TimestampRecipe, TopicRecipe
    from seglog_format.storage.byte_source import Buffer


# -- random numbers and bytes of version 2 of recipes: the same on every platform, and many at a time ------------------


NUMBER_BITS: Final = 32
NUMBER_SIZE: Final = 4
FRACTION: Final = (1 << NUMBER_BITS) - 1
TABLE_SIZE: Final = 1 << 20
"""Number of positions in a table from which a piece can begin."""
DRAWN_SIZE: Final = 1 << 16
TEXT_SIZE: Final = 1 << 16
TEXT_PIECE_SIZE: Final = 256
WORDS: Final = (b"order", b"payment", b"sensor", b"kaeufer", b"log", b"a", b"of", b"segment", b"offset", b"0815")
"""Words of generated texts: ASCII, so a text can be cut at every byte."""


def threshold(probability: float) -> int:
    """Return the number that a drawn number is below with a probability."""
    return int(probability * (1 << NUMBER_BITS))


class Draws:
    """The random numbers and bytes for one purpose; each call draws new ones.

    Args:
        seed: any number.
        purpose: use of the numbers; each purpose has its own sequence.
    """

    def __init__(self, seed: int, *purpose: str | int) -> None:
        self._key = "/".join(map(str, (seed, *purpose))).encode()
        self._count = 0

    def numbers(self, count: int) -> array[int]:
        """Draw numbers of 32 bits."""
        self._count += 1
        digest = hashlib.shake_128(b"%d/%b" % (self._count, self._key)).digest(NUMBER_SIZE * count)
        found = array("I", digest)
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def within(self, count: int, bounds: Sequence[int]) -> list[int]:
        """Draw numbers from the first to the last of some bounds, both included.

        Each part between two neighbouring bounds has the same probability, and so has each number in a part.
        """
        least, most = bounds[0], bounds[-1]
        if least == most:
            return [least] * count
        if len(bounds) == 2:  # noqa: PLR2004 - one part
            span = most - least + 1
            return [least + (number * span >> NUMBER_BITS) for number in self.numbers(count)]
        parts = [(low, high - low + 1) for low, high in pairwise(bounds)]
        scaled = [number * len(parts) for number in self.numbers(count)]
        chosen = [(parts[number >> NUMBER_BITS], number & FRACTION) for number in scaled]
        return [low + (fraction * span >> NUMBER_BITS) for (low, span), fraction in chosen]

    def data(self, size: int) -> bytes:
        """Draw random bytes."""
        starts = iter(self.within(2 * -(-size // DRAWN_SIZE), (0, TABLE_SIZE - 1)))
        tables, mix = (_table(0), _table(1)), _mixer()
        pieces = (
            mix(tables[0][a : a + DRAWN_SIZE], tables[1][b : b + DRAWN_SIZE])
            for a, b in zip(starts, starts, strict=True)
        )
        return b"".join(pieces)[:size]

    def text(self, size: int) -> bytes:
        """Draw words."""
        words = _text()
        starts = self.within(-(-size // TEXT_PIECE_SIZE), (0, TEXT_SIZE - 1))
        return b"".join([words[start : start + TEXT_PIECE_SIZE] for start in starts])[:size]


def _plain_mix(first: memoryview, second: memoryview) -> bytes:
    mixed = int.from_bytes(first, "little") ^ int.from_bytes(second, "little")
    return mixed.to_bytes(len(first), "little")


@cache
def _mixer() -> Callable[[memoryview, memoryview], Buffer]:
    """Return the function that computes the exclusive or of two pieces."""
    if not is_installed():
        return _plain_mix
    import numpy as np  # noqa: PLC0415 - an extra

    def mix(first: memoryview, second: memoryview) -> memoryview:
        return np.bitwise_xor(np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)).data

    return mix


@cache
def _table(number: int) -> memoryview:
    return memoryview(hashlib.shake_128(b"table %d" % number).digest(TABLE_SIZE + DRAWN_SIZE))


@cache
def _text() -> bytes:
    words = [WORDS[number % len(WORDS)] for number in hashlib.shake_128(b"text").digest(TEXT_SIZE // 2)]
    return b" ".join(words)[: TEXT_SIZE + TEXT_PIECE_SIZE]


# -- records of version 2 of recipes: columns of keys, values and headers, in one piece of bytes each, and timestamps --


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


# -- the content of a partition by version 2 of recipes: it is made and written piece by piece, at any size ------------


PIECE_SIZE: Final = 1 << 21
"""Bytes that are made at once, about. The random numbers depend on it."""
RECORD_OVERHEAD: Final = 24


class Lane(NamedTuple):
    """What one producer writes in a piece: its records, and how many are in each of its batches."""

    step: StepRecipe
    producer: PlannedProducer
    rows: Rows
    counts: Sequence[int]
    leader_epoch: int

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records of each batch, without offsets."""
        records = self.rows.records()
        return (list(islice(records, count)) for count in self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One batch, or the end marker of a transaction, with its place in the log.

    Attributes:
        step: that it belongs to.
        producer: that writes it.
        content: of the batch, in the form that `PartitionStream.placing` was asked for; None for a marker.
        base_offset: of the batch.
        count: number of records.
        sequence: of the first record, or -1.
        clock_ms: time of the broker's clock.
        leader_epoch: of the leader.
        rolls: whether a new segment is begun first.
        marker: kind of the end marker; None for records.
    """

    step: StepRecipe
    producer: PlannedProducer
    content: Any
    base_offset: int
    count: int
    sequence: int
    clock_ms: int
    leader_epoch: int
    rolls: bool = False
    marker: ControlRecordType | None = None


@dataclass(slots=True)
class PartitionStream:
    """The content of one partition.

    Attributes:
        recipe: the whole recipe.
        topic: one of its topics.
        partition: from 0.
        seed: of the whole recipe.
    """

    recipe: Recipe
    topic: TopicRecipe
    partition: int
    seed: int

    @property
    def record_count(self) -> int:
        """Number of records, without end markers."""
        return sum(step.records for step in self.topic.steps)

    def placing(self, content_of: Callable[[Lane], Iterator[Any]]) -> Placing:
        """Return an iterator over all batches and markers in order.

        Args:
            content_of: yields the content of each batch of a producer.
        """
        return Placing(self, content_of)

    def records(self) -> Iterator[Record]:
        """Yield the records that a reader must find, without end markers; compaction is not considered."""
        config = self.topic.config
        for placed in self.placing(Lane.batches):
            if placed.marker is None:
                yield from _as_read(placed, config.message_timestamp_type)


def _as_read(placed: Placed, timestamp_type: TimestampType) -> Iterator[Record]:
    magic, first = placed.step.magic, placed.sequence
    is_stamped = timestamp_type is TimestampType.LOG_APPEND_TIME
    for number, record in enumerate(placed.content):
        timestamp_ms = placed.clock_ms if is_stamped else record.timestamp_ms
        yield replace(
            record,
            offset=placed.base_offset + number,
            timestamp_ms=timestamp_ms if magic else NO_TIMESTAMP,
            sequence=first if first == NO_SEQUENCE else add_sequence(first, number),
            timestamp_type=timestamp_type if magic else TimestampType.NO_TIMESTAMP_TYPE,
        )


@dataclass(slots=True)
class Placing:
    """Places the batches of a partition one after the other; iterate over it once.

    Attributes:
        transactions: that ended so far, and at the end those that remain open.
        next_offset: the first offset after all batches so far.
        count: number of batches and markers so far.
    """

    stream: PartitionStream
    content_of: Callable[[Lane], Iterator[Any]]
    transactions: list[PlannedTransaction] = field(default_factory=list)
    next_offset: int = 0
    count: int = 0
    _clock_ms: int = 0
    _leader_epoch: int = 0
    _producers: dict[int, PlannedProducer] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Placed]:
        self._clock_ms = self.stream.recipe.start_ms
        for number, step in enumerate(self.stream.topic.steps):
            for placed in self._step(step, number):
                self.count += 1
                yield placed
        self.transactions += still_open(self._producers.values())

    def _step(self, step: StepRecipe, number: int) -> Iterator[Placed]:
        if step.leader_epoch is not None:
            self._leader_epoch = step.leader_epoch
        purpose = (self.stream.topic.name, self.stream.partition, number)
        draws = Draws(self.stream.seed, *purpose, "producers")
        team = self._team(step, draws)
        is_first, turn = True, 0
        for counts, lanes in self._pieces(step, team, purpose):
            contents = [None if lane is None else self.content_of(lane) for lane in lanes]
            timed = [iter(()) if lane is None else _newest(lane) for lane in lanes]
            for count in counts:
                position = turn % len(team)
                producer, content = team[position], contents[position]
                assert content is not None
                self._clock_ms = max(self._clock_ms, next(timed[position]))
                yield self._batch(step, producer, next(content), count, rolls=is_first and step.roll)
                is_first, turn = False, turn + 1
                yield from self._count_down(step, producer, draws)
        for producer in team[: len(team) - step.producers.open]:
            yield from self._end(step, producer, draws)

    def _team(self, step: StepRecipe, draws: Draws) -> list[PlannedProducer]:
        recipe = step.producers
        ids = range(recipe.first_id, recipe.first_id + recipe.count) if recipe.kind != "plain" else ()
        for known in (each for each in self._producers.values() if each.producer_id in ids):
            if recipe.epoch < known.epoch:
                epoch = f"epoch {recipe.epoch} of producer {known.producer_id}"
                msg = f"{epoch} is older than its latest, {known.epoch} (SEG-APP-009)"
                raise UsageError(msg)
        return team_of(recipe, self._producers, lambda count: draws.within(count, recipe.batches))

    def _pieces(
        self, step: StepRecipe, team: Sequence[PlannedProducer], purpose: Purpose
    ) -> Iterator[tuple[list[int], list[Lane | None]]]:
        """Yield the numbers of records in some batches, and what each producer writes in them."""
        seed, size = self.stream.seed, len(team)
        sizes = Draws(seed, *purpose, "batches")
        times = Timestamps(step.timestamps, self._clock_ms, Draws(seed, *purpose, "times"))
        makers = [RowMaker(step, seed, (*purpose, number)) for number in range(size)]
        left, done, at_once = step.records, 0, _batches_at_once(step)
        while left:
            counts = _until(left, sizes.within(at_once, step.batch))
            stamps = times.make(sum(counts))
            starts = list(accumulate(counts, initial=0))
            lanes: list[Lane | None] = [None] * size
            for first in range(min(size, len(counts))):
                position = (done + first) % size
                own = range(first, len(counts), size)
                mine = stamps if size == 1 else array("q")
                for number in own if size > 1 else ():
                    mine.extend(stamps[starts[number] : starts[number + 1]])
                rows = makers[position].make(mine)
                lanes[position] = Lane(step, team[position], rows, [counts[n] for n in own], self._leader_epoch)
            yield counts, lanes
            left, done = left - sum(counts), done + len(counts)

    def _batch(
        self, step: StepRecipe, producer: PlannedProducer, content: object, count: int, *, rolls: bool
    ) -> Placed:
        base_offset, sequence = self.next_offset, producer.sequence
        if producer is not NO_PRODUCER:
            producer.sequence = add_sequence(sequence, count)
        if step.producers.kind == "transactional" and producer.first_offset is None:
            producer.first_offset = base_offset
        self.next_offset += count
        return Placed(
            step=step,
            producer=producer,
            content=content,
            base_offset=base_offset,
            count=count,
            sequence=sequence,
            clock_ms=self._clock_ms,
            leader_epoch=self._leader_epoch,
            rolls=rolls,
        )

    def _count_down(self, step: StepRecipe, producer: PlannedProducer, draws: Draws) -> Iterator[Placed]:
        if step.producers.kind != "transactional" or producer.batches_left is None:
            return
        producer.batches_left -= 1
        if not producer.batches_left:
            yield from self._end(step, producer, draws)
            (producer.batches_left,) = draws.within(1, step.producers.batches)

    def _end(self, step: StepRecipe, producer: PlannedProducer, draws: Draws) -> Iterator[Placed]:
        """End the producer's open transaction, if there is one: commit or abort."""
        first = producer.first_offset
        if step.producers.kind != "transactional" or first is None:
            return
        is_aborted = draws.numbers(1)[0] < threshold(step.producers.abort)
        offset, producer.first_offset = self.next_offset, None
        self.next_offset += 1
        self.transactions.append(PlannedTransaction(producer.producer_id, first, offset, is_aborted))
        yield Placed(
            step=step,
            producer=producer,
            content=None,
            base_offset=offset,
            count=1,
            sequence=NO_SEQUENCE,
            clock_ms=self._clock_ms,
            leader_epoch=self._leader_epoch,
            marker=ControlRecordType.ABORT if is_aborted else ControlRecordType.COMMIT,
        )


def _newest(lane: Lane) -> Iterator[int]:
    """Yield the largest timestamp of each batch."""
    times, starts = lane.rows.timestamps, accumulate(lane.counts, initial=0)
    if lane.step.timestamps.order != "shuffled":
        return (times[end - 1] for _, end in pairwise(starts))
    return (max(times[start:end]) for start, end in pairwise(starts))


def _batches_at_once(step: StepRecipe) -> int:
    """Return the number of batches in a piece; the random numbers depend on it."""
    headers = step.headers.count[1] * (step.headers.size[-1] + 8)
    record = step.key.size[-1] + step.value.size[-1] + headers + RECORD_OVERHEAD
    batch = record * (step.batch[0] + step.batch[-1]) // 2
    return max(1, PIECE_SIZE // batch)


def _until(left: int, counts: list[int]) -> list[int]:
    """Return the first counts up to a sum; the last one is cut to reach it exactly."""
    if sum(counts) <= left:
        return counts
    kept = []
    for count in counts:
        kept.append(min(count, left))
        left -= kept[-1]
        if not left:
            break
    return kept
