"""The values of a recipe; every one has a default, so a recipe that names one topic and one step is complete."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_format.model import CompressionCodec
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from seglog_format.generation.table import Range, Sizes

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
