"""Recipes: descriptions in TOML of the content of a log directory, parsed into values.

Every value has a default; a recipe that names one topic and one step is complete.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError
from seglog_format.generation.override import apply_override
from seglog_format.generation.table import MAX_COUNT, Range, Table
from seglog_format.model import INT32_MAX, CompressionCodec
from seglog_format.names import MAX_PARTITION, require_topic
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAGIC_2: Final = 2
MAX_SIZE: Final = 1 << 20
MAX_EPOCH: Final = 2**15 - 1
START_MS: Final = 1_700_000_000_000

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
        size: bytes, for ``random`` and ``text``.
        null: probability of null instead, 0 to 1.
        empty: probability of an empty value instead, 0 to 1.
    """

    kind: str = "text"
    text: str = ""
    size: Range = (8, 64)
    null: float = 0.0
    empty: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRecipe:
    """Record headers: their number in a record, size of their values, and probability of a null value."""

    count: Range = (0, 0)
    size: Range = (0, 12)
    null: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampRecipe:
    """Timestamps of producers.

    Attributes:
        order: ``ascending``, ``equal``, ``shuffled`` (in random order within 20 records), ``zero`` or ``none`` (-1).
        step_ms: milliseconds from one record to the next.
    """

    order: str = "ascending"
    step_ms: int = 10


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
    """A topic: name, number of partitions, settings, steps of each partition, and faults."""

    name: str = USUAL_NAME
    partitions: int = 1
    config: LogConfig = field(default_factory=LogConfig)
    steps: tuple[StepRecipe, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The content of a log directory.

    Attributes:
        topics: in the directory.
        seed: used unless the caller gives another one.
        end: ``clean``, or ``killed`` for a process that did not close its files.
        start_ms: initial time of the clock.
    """

    topics: tuple[TopicRecipe, ...]
    seed: int = 0
    end: str = "clean"
    start_ms: int = START_MS


def parse_recipe(text: str, overrides: Iterable[str] = ()) -> Recipe:
    """Parse a recipe.

    Args:
        text: TOML.
        overrides: such as ``topic.0.step.0.records=10``: values that replace those of the recipe. Tables of a list
            are counted from 0; a value that is not valid TOML is taken as text.

    Raises:
        UsageError: the text is not valid TOML, has an unknown name, or has an invalid value.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"the recipe is not valid TOML: {error}"
        raise UsageError(msg) from error
    for override in overrides:
        apply_override(values, override)
    return recipe_from(values)


def recipe_from(values: Mapping[str, Any]) -> Recipe:
    """Create a recipe from parsed TOML tables.

    Args:
        values: parsed TOML.

    Raises:
        UsageError: a name is unknown, or a value is invalid.
    """
    table = Table("", dict(values))
    recipe = Recipe(
        topics=tuple(_topic(topic) for topic in table.tables("topic")),
        seed=table.number("seed", 0),
        end=table.choice("end", "clean", ENDS),
        start_ms=table.number("start_ms", START_MS, most=2**53),
    )
    table.done()
    names = [topic.name for topic in recipe.topics]
    if not names or len(set(names)) != len(names):
        msg = "a recipe has one [[topic]] or more, each with a different name"
        raise UsageError(msg)
    return recipe


def _topic(table: Table) -> TopicRecipe:
    name = table.text("name", USUAL_NAME)
    try:
        require_topic(name)
    except UsageError as error:
        msg = f"{table.location}: {error}"
        raise UsageError(msg) from error
    try:
        config = LogConfig.from_properties(table.settings("settings"))
    except UsageError as error:
        msg = f"{table.location} settings: {error}"
        raise UsageError(msg) from error
    topic = TopicRecipe(
        name=name,
        partitions=table.number("partitions", 1, 1, min(MAX_PARTITION, MAX_COUNT)),
        config=config,
        steps=tuple(_step(step, config) for step in table.tables("step")),
        faults=tuple(_fault(text, table.location) for text in table.texts("faults")),
    )
    table.done()
    return topic


def _fault(text: str, location: str) -> Fault:
    found = FAULT.fullmatch(text)
    if found is None:
        msg = f"{location} faults: {text!r} is not a known fault"
        raise UsageError(msg)
    return Fault(text=text, kind=found["kind"] or found["bare"], number=int(found["number"] or 1))


def _step(table: Table, config: LogConfig) -> StepRecipe:
    step = StepRecipe(
        records=table.number("records", 100, 0, MAX_COUNT),
        batch=table.range("batch", (1, 10), least=1),
        magic=table.number("magic", MAGIC_2, most=MAGIC_2),
        codec=table.choice("codec", "none", CODECS),
        role=table.choice("role", "leader", ROLES),
        gap=table.range("gap", (0, 0)),
        removed=table.probability("removed"),
        emptied=table.probability("emptied"),
        leader_epoch=table.number("leader_epoch", 0, most=INT32_MAX) if "leader_epoch" in table else None,
        roll=table.flag("roll"),
        key=_value(table.table("key"), (4, 12)),
        value=_value(table.table("value"), (8, 64)),
        headers=_headers(table.table("headers")),
        timestamps=_timestamps(table.table("timestamps")),
        producers=_producers(table.table("producers")),
    )
    table.done()
    _check_step(step, config, table.location)
    return step


def _value(table: Table, size: Range) -> ValueRecipe:
    text = table.text("text", "")
    value = ValueRecipe(
        kind=table.choice("kind", "fixed" if text else "text", VALUE_KINDS),
        text=text,
        size=table.range("size", size, most=MAX_SIZE),
        null=table.probability("null"),
        empty=table.probability("empty"),
    )
    table.done()
    return value


def _headers(table: Table) -> HeaderRecipe:
    headers = HeaderRecipe(
        count=table.range("count", (0, 0), most=1000),
        size=table.range("size", (0, 12), most=MAX_SIZE),
        null=table.probability("null"),
    )
    table.done()
    return headers


def _timestamps(table: Table) -> TimestampRecipe:
    timestamps = TimestampRecipe(
        order=table.choice("order", "ascending", ORDERS), step_ms=table.number("step_ms", 10, most=2**40)
    )
    table.done()
    return timestamps


def _producers(table: Table) -> ProducerRecipe:
    producers = ProducerRecipe(
        kind=table.choice("kind", "plain", PRODUCER_KINDS),
        count=table.number("count", 1, 1, 1000),
        first_id=table.number("first_id", 1000),
        epoch=table.number("epoch", 0, most=MAX_EPOCH),
        batches=table.range("batches", (1, 3), least=1),
        abort=table.probability("abort"),
        open=table.number("open", 0, most=1000),
    )
    table.done()
    return producers


def _check_step(step: StepRecipe, config: LogConfig, location: str) -> None:
    """Refuse a step whose values contradict each other."""
    changed_by_compaction = step.removed or step.emptied
    wrong = {
        "headers, producers, and traces of compaction need magic 2": step.magic < MAGIC_2
        and (step.headers.count[1] or step.producers.kind != "plain" or changed_by_compaction),
        "zstd needs magic 2 (SEG-MSG-018)": step.magic < MAGIC_2 and step.codec == "zstd",
        "gap, removed and emptied need role = 'follower'": step.role == "leader"
        and (step.gap[1] or changed_by_compaction),
        "open and abort need transactional producers": step.producers.kind != "transactional"
        and (step.producers.open or step.producers.abort),
        "open must not exceed the number of producers": step.producers.open > step.producers.count,
        f"generation {config.generation.value} has no magic 2": step.magic == MAGIC_2
        and not config.generation.has_producer_state,
    }
    for rule, is_broken in wrong.items():
        if is_broken:
            msg = f"{location}: {rule}"
            raise UsageError(msg)
