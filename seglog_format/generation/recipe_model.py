"""The values of a recipe, the tables that they are read from, and random numbers from a seed.

Every value has a default, so a recipe that names one topic and one step is complete.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard, TypeVar

from seglog_format.errors import UsageError
from seglog_format.model import INT64_MAX, CompressionCodec
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Sequence


# -- read a table of a recipe; every error names the table and the key -------------------------------------------------


Range = tuple[int, int]
"""Smallest and largest value."""

Sizes = tuple[int, ...]
"""Bounds in order, between which a number is drawn."""

MAX_COUNT: Final = 1_000_000
"""Maximum of every count in a recipe: more would not fit in memory."""

PAIR: Final = 2


class Table:
    """A table of a recipe; each method removes a value and returns it.

    Args:
        location: name of the table in errors.
        values: parsed TOML.

    All methods raise `UsageError` for invalid values.
    """

    def __init__(self, location: str, values: object) -> None:
        self.location = location
        if not isinstance(values, dict):
            self._refuse("", "a table", values)
        self._values: dict[str, Any] = dict(values)
        self._known: list[str] = []

    def _refuse(self, name: str, expected: str, found: object) -> NoReturn:
        msg = f"{' '.join(part for part in (self.location, name) if part)} is {expected}, not {found!r}"
        raise UsageError(msg)

    def _take(self, name: str, default: Any) -> Any:  # noqa: ANN401 - values of any kind
        self._known.append(name)
        return self._values.pop(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str, default: int, least: int = 0, most: int = INT64_MAX) -> int:
        """Take a whole number."""
        value = self._take(name, default)
        if not _is_number(value) or not least <= value <= most:
            self._refuse(name, f"a number from {least} to {most}", value)
        return int(value)

    def range(self, name: str, default: Range, least: int = 0, most: int = MAX_COUNT) -> Range:
        """Take a number, or a pair of smallest and largest."""
        value = self._take(name, default)
        pair = (value, value) if _is_number(value) else value
        if not _is_pair(pair) or not least <= pair[0] <= pair[1] <= most:
            self._refuse(name, f"a number from {least} to {most}, or two in order", value)
        return int(pair[0]), int(pair[1])

    def sizes(self, name: str, default: Sizes, most: int) -> Sizes:
        """Take a number, or two or more in order."""
        value = self._take(name, default)
        bounds = (value, value) if _is_number(value) else value
        if (
            not _is_list_of_numbers(bounds)
            or not 0 <= bounds[0] <= bounds[-1] <= most
            or list(bounds) != sorted(bounds)
        ):
            self._refuse(name, f"a number from 0 to {most}, or two or more in order", value)
        return tuple(map(int, bounds))

    def probability(self, name: str) -> float:
        """Take a number from 0 to 1; 0 if the key is missing."""
        value = self._take(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self._refuse(name, "from 0 to 1", value)
        return float(value)

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """Take one of some words."""
        value = self._take(name, default)
        if value not in choices:
            self._refuse(name, f"one of {', '.join(choices)}", value)
        return str(value)

    def text(self, name: str, default: str) -> str:
        """Take any text."""
        value = self._take(name, default)
        if not isinstance(value, str):
            self._refuse(name, "text", value)
        return value

    def flag(self, name: str) -> bool:
        """Take a boolean; False if the key is missing."""
        value = self._take(name, default=False)
        if not isinstance(value, bool):
            self._refuse(name, "true or false", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts."""
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._refuse(name, "a list of texts", value)
        return tuple(value)

    def settings(self, name: str) -> dict[str, str]:
        """Take a table of names and values of any kind; return the values as text."""
        value = self._take(name, {})
        if not isinstance(value, dict) or any(isinstance(item, dict | list) for item in value.values()):
            self._refuse(name, "a table of names in quotes and values", value)
        return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}

    def table(self, name: str) -> Table:
        """Take a table inside this one; an empty one if the key is missing."""
        return Table(f"{self.location} {name}".strip(), self._take(name, {}))

    def tables(self, name: str) -> list[Table]:
        """Take the tables of a list, counted from 0 in errors."""
        value = self._take(name, [])
        if not isinstance(value, list):
            self._refuse(name, f"a list: write [[{name}]]", value)
        return [Table(f"{self.location} {name}.{number}".strip(), item) for number, item in enumerate(value)]

    def done(self) -> None:
        """Refuse any key that was not taken."""
        for name in self._values:
            msg = f"{self.location or 'a recipe'} has no {name!r}, but {', '.join(self._known)}"
            raise UsageError(msg)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: object) -> TypeGuard[Sequence[int]]:
    return _is_list_of_numbers(value) and len(value) == PAIR


def _is_list_of_numbers(value: object) -> TypeGuard[Sequence[int]]:
    return isinstance(value, list | tuple) and len(value) >= PAIR and all(map(_is_number, value))


# -- random numbers from a seed: the same numbers on every platform and with every Python version ----------------------


T = TypeVar("T")

FRACTION_BITS: Final = 53
"""Bits of precision of a float."""


class SeededRandom:
    """A generator of random numbers with a seed.

    Args:
        seed: any number.
        purpose: use of the numbers; each purpose has its own sequence, so more numbers for one do not change those
            for another.
    """

    def __init__(self, seed: int, *purpose: str | int) -> None:
        text = "/".join([str(seed), *(str(part) for part in purpose)])
        digest = hashlib.sha256(text.encode()).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - the numbers must be repeatable, not secret

    def number(self, least: int, most: int) -> int:
        """Draw a number from `least` to `most`, both included, each with the same probability."""
        span = most - least + 1
        bits = (span - 1).bit_length()
        while True:
            value = self._random.getrandbits(bits) if bits else 0
            if value < span:
                return least + value

    def fraction(self) -> float:
        """Draw a number from 0 up to, not including, 1."""
        return self._random.getrandbits(FRACTION_BITS) / (1 << FRACTION_BITS)

    def happens(self, probability: float) -> bool:
        """Draw True with a probability from 0 to 1."""
        return self.fraction() < probability

    def one_of(self, values: Sequence[T]) -> T:
        """Draw one of some values."""
        return values[self.number(0, len(values) - 1)]

    def data(self, size: int) -> bytes:
        """Draw random bytes."""
        return self._random.getrandbits(8 * size).to_bytes(size, "big") if size else b""

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in random order."""
        left = list(values)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(len(left))]


# -- the values of a recipe; every one has a default, so a recipe that names one topic and one step is complete --------


MAGIC_2: Final = 2
MAX_SIZE: Final = 1 << 20
MAX_PRODUCERS: Final = 1000
MAX_RECORDS: Final = 10**10
"""Maximum number of records of a step in version 2, which keeps none of them in memory."""
NEWEST_VERSION: Final = 2
MAX_EPOCH: Final = 2**15 - 1
START_MS: Final = 1_700_000_000_000

SHUFFLED_SPAN: Final = 20
"""Number of consecutive timestamps that are shuffled together."""

VALUE_KINDS: Final = ("fixed", "random", "text", "json", "null", "empty")
ORDERS: Final = ("ascending", "equal", "shuffled", "zero", "none")
PRODUCER_KINDS: Final = ("plain", "idempotent", "transactional")
USUAL_NAME: Final = "generated"
ROLES: Final = ("leader", "follower")
ENDS: Final = ("clean", "killed")
CODECS: Final = tuple(codec.label for codec in CompressionCodec)

FAULT: Final = re.compile(
    r"(?P<kind>crc@batch|truncate@byte|truncate@last|flip@byte|zero-tail|junk-tail|zero-index-tail):(?P<number>\d{1,9})"
    r"|(?P<bare>stale-index|missing-index|zero-index-tail)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRecipe:
    """Recipe of keys or values.

    Attributes:
        kind: ``fixed`` (always `text`), ``random`` bytes, ``text`` of words, ``json``, ``null`` or ``empty``.
        text: for ``fixed``.
        size: bytes, for ``random`` and ``text``; in version 2, more than two numbers divide the sizes into parts of the
            same probability.
        null: probability of null instead, 0 to 1.
        empty: probability of an empty value instead, 0 to 1.
        distinct: number of different ones; 0 for no limit.
    """

    kind: str = "text"
    text: str = ""
    size: Sizes = (8, 64)
    null: float = 0.0
    empty: float = 0.0
    distinct: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRecipe:
    """Record headers: their number in a record, size of their values, and probability of a null value."""

    count: Range = (0, 0)
    size: Sizes = (0, 12)
    null: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampRecipe:
    """Timestamps of producers.

    Attributes:
        order: ``ascending``, ``equal``, ``shuffled`` (in random order within 20 records), ``zero`` or ``none`` (-1).
        step_ms: milliseconds from one record to the next.
        burst: number of records after which there is a pause; 0 for no pauses.
        pause_ms: milliseconds of a pause.
    """

    order: str = "ascending"
    step_ms: int = 10
    burst: int = 0
    pause_ms: Range = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecipe:
    """The producers of a step; they take turns.

    Attributes:
        kind: ``plain``, ``idempotent`` or ``transactional``.
        count: number of producers.
        first_id: producer id of the first of them.
        epoch: of all of them.
        batches: in each transaction.
        abort: probability that a transaction is aborted, 0 to 1.
        open: how many producers, counted from the last, do not end their transaction.
    """

    kind: str = "plain"
    count: int = 1
    first_id: int = 1000
    epoch: int = 0
    batches: Range = (1, 3)
    abort: float = 0.0
    open: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecipe:
    """A number of similar records.

    Attributes:
        records: number of records.
        batch: records in each batch; for uncompressed magic 0 and 1, in each append.
        magic: 0, 1 or 2.
        codec: Kafka's name of it.
        role: ``leader`` assigns offsets; ``follower`` copies batches unchanged.
        gap: number of offsets that are missing before each batch; followers only.
        removed: probability that compaction removed a record from its batch; followers only.
        emptied: probability that compaction removed all records of a batch; followers only.
        leader_epoch: epoch from this step on; None for no change.
        roll: begin a new segment first.
        key, value, headers, timestamps, producers: see the classes.
    """

    records: int = 100
    batch: Range = (1, 10)
    magic: int = MAGIC_2
    codec: str = "none"
    role: str = "leader"
    gap: Range = (0, 0)
    removed: float = 0.0
    emptied: float = 0.0
    leader_epoch: int | None = None
    roll: bool = False
    key: ValueRecipe = field(default_factory=lambda: ValueRecipe(size=(4, 12)))
    value: ValueRecipe = field(default_factory=ValueRecipe)
    headers: HeaderRecipe = field(default_factory=HeaderRecipe)
    timestamps: TimestampRecipe = field(default_factory=TimestampRecipe)
    producers: ProducerRecipe = field(default_factory=ProducerRecipe)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Damage of the last segment, done after all files are written; ``crc@batch`` counts from the first segment.

    Attributes:
        text: as the recipe has it.
        kind: the part before the colon.
        number: the part after the colon; 1 without one.
    """

    text: str
    kind: str
    number: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecipe:
    """A topic: name, number of partitions, settings, steps of each partition, faults, and whether it is compacted."""

    name: str = USUAL_NAME
    partitions: int = 1
    config: LogConfig = field(default_factory=LogConfig)
    steps: tuple[StepRecipe, ...] = ()
    faults: tuple[Fault, ...] = ()
    compact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The content of a log directory.

    Attributes:
        topics: in the directory.
        seed: used unless the caller gives another one.
        end: ``clean``, or ``killed`` for a process that did not close its files.
        start_ms: initial time of the clock.
        version: 1, or 2 for other random numbers, any number of records, and compaction.
    """

    topics: tuple[TopicRecipe, ...]
    seed: int = 0
    end: str = "clean"
    start_ms: int = START_MS
    version: int = 1
