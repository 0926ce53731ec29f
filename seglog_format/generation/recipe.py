"""Recipes: descriptions in TOML of the content of a log directory, parsed into values.

Random recipes are for tests. A recipe for a directory like an existing one is made from sizes, counts and rates,
without any of its content.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.codec.control_record import marker_in
from seglog_format.errors import Location, UsageError
from seglog_format.generation.recipe_model import (
    CODECS,
    ENDS,
    FAULT,
    MAGIC_2,
    MAX_COUNT,
    MAX_EPOCH,
    MAX_PRODUCERS,
    MAX_RECORDS,
    MAX_SIZE,
    NEWEST_VERSION,
    ORDERS,
    PAIR,
    PRODUCER_KINDS,
    ROLES,
    START_MS,
    USUAL_NAME,
    VALUE_KINDS,
    Fault,
    HeaderRecipe,
    ProducerRecipe,
    Range,
    Recipe,
    SeededRandom,
    StepRecipe,
    Table,
    TimestampRecipe,
    TopicRecipe,
    ValueRecipe,
)
from seglog_format.log.partition import open_partition
from seglog_format.log.path_kind import partition_name
from seglog_format.model import INT32_MAX, NO_PRODUCER_ID, CompressionCodec, ControlRecordType, RecordBatchHeader
from seglog_format.names import MAX_PARTITION, require_topic
from seglog_format.state.config import LogConfig
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from _typeshed import DataclassInstance

    from seglog_format.log.partition import Partition
    from seglog_format.model import Message, Record, RecordBatch


# -- options of the command line in place of values of a recipe --------------------------------------------------------


def apply_override(values: dict[str, Any], override: str) -> None:
    """Set one value of a recipe.

    Args:
        values: parsed TOML tables, which are changed in place.
        override: such as ``topic.0.step.0.records=10``.

    Raises:
        UsageError: the override is not of the form key=value, or its key does not exist.
    """
    path, found, text = override.partition("=")
    if not found or not path:
        msg = f"{override!r} is not of the form key=value"
        raise UsageError(msg)
    *way, last = re.findall(r'"[^"]+"|[^."]+', path.strip())
    target: Any = values
    for name in way:
        target = _inside(target, name, override)
    if not isinstance(target, dict):
        msg = f"{override!r}: only a value of a table can be set"
        raise UsageError(msg)
    target[last.strip('"')] = _toml_value(text)


def _inside(target: Any, name: str, override: str) -> Any:  # noqa: ANN401 - values of any kind
    if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
        return target[int(name)]
    if isinstance(target, dict):
        return target.setdefault(name.strip('"'), {})
    msg = f"{override!r}: there is no {name}"
    raise UsageError(msg)


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


# -- recipes -----------------------------------------------------------------------------------------------------------


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
    version = table.number("version", 1, 1, NEWEST_VERSION)
    recipe = Recipe(
        version=version,
        topics=tuple(_topic(topic, version) for topic in table.tables("topic")),
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


def _topic(table: Table, version: int) -> TopicRecipe:
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
        steps=tuple(_step(step, config, version) for step in table.tables("step")),
        faults=tuple(_fault(text, table.location) for text in table.texts("faults")),
        compact=table.flag("compact"),
    )
    table.done()
    _check_topic(topic, version, table.location)
    return topic


def _fault(text: str, location: str) -> Fault:
    found = FAULT.fullmatch(text)
    if found is None:
        msg = f"{location} faults: {text!r} is not a known fault"
        raise UsageError(msg)
    return Fault(text=text, kind=found["kind"] or found["bare"], number=int(found["number"] or 1))


def _step(table: Table, config: LogConfig, version: int) -> StepRecipe:
    step = StepRecipe(
        records=table.number("records", 100, 0, MAX_COUNT if version == 1 else MAX_RECORDS),
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
    _check_step(step, config, version, table.location)
    return step


def _value(table: Table, size: Range) -> ValueRecipe:
    text = table.text("text", "")
    value = ValueRecipe(
        kind=table.choice("kind", "fixed" if text else "text", VALUE_KINDS),
        text=text,
        size=table.sizes("size", size, most=MAX_SIZE),
        null=table.probability("null"),
        empty=table.probability("empty"),
        distinct=table.number("distinct", 0, most=MAX_COUNT),
    )
    table.done()
    return value


def _headers(table: Table) -> HeaderRecipe:
    headers = HeaderRecipe(
        count=table.range("count", (0, 0), most=1000),
        size=table.sizes("size", (0, 12), most=MAX_SIZE),
        null=table.probability("null"),
    )
    table.done()
    return headers


def _timestamps(table: Table) -> TimestampRecipe:
    timestamps = TimestampRecipe(
        order=table.choice("order", "ascending", ORDERS),
        step_ms=table.number("step_ms", 10, most=2**40),
        burst=table.number("burst", 0, most=MAX_COUNT),
        pause_ms=table.range("pause_ms", (0, 0), most=2**40),
    )
    table.done()
    return timestamps


def _producers(table: Table) -> ProducerRecipe:
    producers = ProducerRecipe(
        kind=table.choice("kind", "plain", PRODUCER_KINDS),
        count=table.number("count", 1, 1, MAX_PRODUCERS),
        first_id=table.number("first_id", 1000),
        epoch=table.number("epoch", 0, most=MAX_EPOCH),
        batches=table.range("batches", (1, 3), least=1),
        abort=table.probability("abort"),
        open=table.number("open", 0, most=1000),
    )
    table.done()
    return producers


# Values that contradict each other


def _check_step(step: StepRecipe, config: LogConfig, version: int, location: str) -> None:
    """Refuse a step whose values contradict each other."""
    changed_by_compaction = step.removed or step.emptied
    wrong: dict[str, object] = {
        "headers, producers, and traces of compaction need magic 2": step.magic < MAGIC_2
        and (step.headers.count[1] or step.producers.kind != "plain" or changed_by_compaction),
        f"{step.codec} needs magic 2 (SEG-MSG-018)": not CompressionCodec.fits(CODECS.index(step.codec), step.magic),
        "gap, removed and emptied need role = 'follower'": step.role == "leader"
        and (step.gap[1] or changed_by_compaction),
        "open and abort need transactional producers": step.producers.kind != "transactional"
        and (step.producers.open or step.producers.abort),
        "open must not exceed the number of producers": step.producers.open > step.producers.count,
        f"generation {config.generation.value} has no magic 2": step.magic == MAGIC_2
        and not config.generation.has_producer_state,
    }
    _refuse(location, wrong | (_by_version_1(step) if version == 1 else _by_version_2(step, config)))


def _by_version_1(step: StepRecipe) -> dict[str, object]:
    made = (step.key, step.value)
    return {
        "distinct needs version = 2": any(value.distinct for value in made),
        "burst and pause_ms need version = 2": step.timestamps.burst or step.timestamps.pause_ms[1],
        "a size of more than two numbers needs version = 2": any(
            len(value.size) > PAIR for value in (*made, step.headers)
        ),
    }


def _by_version_2(step: StepRecipe, config: LogConfig) -> dict[str, object]:
    lacks_keys = step.key.kind == "null" or step.key.null > 0
    return {
        "version 2 has no gap, removed and emptied: write compact = true, which compacts the topic": step.gap[1]
        or step.removed
        or step.emptied,
        "a record of a compacted topic has a key (SEG-APP-012)": config.is_compacted and lacks_keys,
    }


def _check_topic(topic: TopicRecipe, version: int, location: str) -> None:
    """Refuse a topic whose values contradict each other."""
    wrong: dict[str, object] = {
        "compact needs version = 2": topic.compact and version == 1,
        'compact needs the setting "cleanup.policy" = "compact"': topic.compact and not topic.config.is_compacted,
    }
    _refuse(location, wrong)


def _refuse(location: str, wrong: dict[str, object]) -> None:
    for rule, is_broken in wrong.items():
        if is_broken:
            msg = f"{location}: {rule}"
            raise UsageError(msg)


# -- the keys of a recipe with their defaults, for help texts and documents --------------------------------------------


INNER: Final = ("topics", "config", "steps", "key", "value", "headers", "timestamps", "producers")
"""Attributes that are tables of their own in a recipe."""

STEP: Final = StepRecipe()
TABLES: Final[Mapping[str, DataclassInstance]] = {
    "top level": Recipe(topics=()),
    "[[topic]]": TopicRecipe(),
    "[[topic.step]]": STEP,
    "[topic.step.key]": STEP.key,
    "[topic.step.value]": STEP.value,
    "[topic.step.headers]": HeaderRecipe(),
    "[topic.step.timestamps]": TimestampRecipe(),
    "[topic.step.producers]": ProducerRecipe(),
}
"""Each table of a recipe, with the defaults of all keys."""

CHOICES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "top level": {"end": ENDS},
    "[[topic.step]]": {"codec": CODECS, "role": ROLES},
    "[topic.step.key]": {"kind": VALUE_KINDS},
    "[topic.step.value]": {"kind": VALUE_KINDS},
    "[topic.step.timestamps]": {"order": ORDERS},
    "[topic.step.producers]": {"kind": PRODUCER_KINDS},
}


def key_list() -> dict[str, dict[str, str]]:
    """Return the keys of each table of a recipe, with their defaults as TOML."""
    return {
        name: {key.name: _toml(getattr(usual, key.name)) for key in fields(usual) if key.name not in INNER}
        for name, usual in TABLES.items()
    }


def choice_list() -> dict[str, dict[str, list[str]]]:
    """Return by table and key the values of each key that takes one of a few words."""
    return {name: {key: list(words) for key, words in CHOICES.get(name, {}).items()} for name in TABLES}


def _toml(default: object) -> str:
    """Return a default as a recipe would write it."""
    if default is None:
        return "(none)"
    if isinstance(default, tuple):
        return str(list(default))
    return str(default).lower() if isinstance(default, bool) else repr(default)


# -- random recipes, which together use every feature of recipes -------------------------------------------------------


LONGEST_VALUE: Final = 300
SEGMENT_SIZES: Final = (8192, 16384, 65536, 1 << 20)
INDEX_INTERVALS: Final = (0, 100, 512, 4096)
INDEX_SIZES: Final = (120, 4096, 1 << 16)

OLD_MAGICS_SHARE: Final = 0.2
FOLLOWER_SHARE: Final = 0.3


def random_recipe(seed: int, *, magics: Sequence[int] = (0, 1, 2), end: str = "clean") -> Recipe:
    """Generate a random recipe: one topic, up to three partitions, up to four steps, no faults.

    Args:
        seed: 0 or more; the same seed gives the same recipe, and is the seed in the recipe.
        magics: magic numbers that may be used; lower ones are used in earlier steps.
        end: ``clean`` or ``killed``.
    """
    rng = SeededRandom(seed, "recipe")
    steps = [_random_step(rng, magic, number) for number, magic in enumerate(_magics(rng, magics))]
    topic = {
        "name": f"made-{seed}",
        "partitions": rng.number(1, 3),
        "settings": _settings(rng),
        "step": steps,
    }
    return recipe_from({"seed": seed, "end": end, "topic": [topic]})


def _magics(rng: SeededRandom, magics: Sequence[int]) -> list[int]:
    """Draw a magic for each step."""
    old = [magic for magic in magics if magic < MAGIC_2]
    new = [magic for magic in magics if magic == MAGIC_2]
    pool = list(magics) if not new or (old and rng.happens(OLD_MAGICS_SHARE)) else new
    return sorted(rng.one_of(pool) for _ in range(rng.number(1, 4)))


def _settings(rng: SeededRandom) -> dict[str, object]:
    settings: dict[str, object] = {
        "segment.bytes": rng.one_of(SEGMENT_SIZES),
        "index.interval.bytes": rng.one_of(INDEX_INTERVALS),
        "segment.index.bytes": rng.one_of(INDEX_SIZES),
        "preallocate": rng.happens(0.2),
    }
    if rng.happens(0.2):
        settings["message.timestamp.type"] = "LogAppendTime"
    if rng.happens(0.2):
        settings["segment.ms"] = rng.number(100, 5000)
    return settings


def _random_step(rng: SeededRandom, magic: int, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "records": rng.number(1, 120),
        "batch": [1, rng.number(1, 12)],
        "magic": magic,
        "codec": rng.one_of(CODECS if magic == MAGIC_2 else CODECS[:-1]),
        "roll": rng.happens(0.2),
        "leader_epoch": number,
        "key": _random_value(rng, 20),
        "value": _random_value(rng, LONGEST_VALUE),
        "timestamps": {"order": rng.one_of(ORDERS), "step_ms": rng.number(0, 500)},
    }
    return step | (_newer(rng, number) if magic == MAGIC_2 else {})


def _newer(rng: SeededRandom, number: int) -> dict[str, Any]:
    """Draw the features that only magic 2 has."""
    newer: dict[str, Any] = {"producers": _random_producers(rng, number)}
    if rng.happens(0.5):
        newer["headers"] = {"count": [0, rng.number(1, 4)], "null": 0.2}
    if rng.happens(FOLLOWER_SHARE):
        newer |= {"role": "follower", "gap": [0, rng.number(0, 30)], "removed": 0.2, "emptied": 0.1}
    return newer


def _random_value(rng: SeededRandom, longest: int) -> dict[str, Any]:
    kind = rng.one_of(VALUE_KINDS)
    return {"kind": kind, "text": "fixed", "size": [0, rng.number(0, longest)], "null": 0.05, "empty": 0.05}


def _random_producers(rng: SeededRandom, number: int) -> dict[str, Any]:
    """Draw producers; each step has different ids, so later steps do not end a transaction that was left open."""
    kind = rng.one_of(("plain", "idempotent", "transactional", "transactional"))
    producers: dict[str, Any] = {"kind": kind, "count": rng.number(1, 4), "first_id": 1000 * (number + 1)}
    if kind == "transactional":
        producers |= {"abort": rng.fraction(), "open": rng.number(0, 1), "batches": [1, 4]}
    return producers


SAMPLED_BATCHES: Final = 5_000
"""Maximum number of batches of a partition that are read."""
SAMPLED_SIZE: Final = 1 << 26
"""Bytes of keys and values after which no more batches of a partition are read: all of them are kept in memory."""
PARTS: Final = 8
"""Number of parts into which sizes are divided."""
OUT_OF_ORDER: Final = 0.01
"""Share of records with an earlier time than the record before, from which times count as shuffled."""
LEAST_SEGMENT_SIZE: Final = 1 << 14
"""Least ``segment.bytes``: segments that brokers closed for their age may be smaller than a batch of the recipe."""


class Sample(NamedTuple):
    """What was read of one partition.

    Attributes:
        total: number of offsets in the partition.
        batches: the first ones.
        is_whole: whether these are all.
        segment_size: of the largest closed segment, in bytes; 0 if none is closed.
    """

    total: int
    batches: Sequence[RecordBatch]
    is_whole: bool
    segment_size: int


def recipe_like(directory: str | PathLike[str]) -> str:
    """Describe a directory as a recipe of version 2.

    Only the first batches of one partition of each topic are read. Names and content do not enter the recipe.

    Args:
        directory: a log directory or partition directory.

    Returns:
        The recipe, as TOML.

    Raises:
        UsageError: the directory cannot be read, or has no partition.
        FormatError: a batch is damaged.
    """
    topics: dict[str, list[Path]] = {}
    for topic, path in _partitions(Path(directory)):
        topics.setdefault(topic, []).append(path)
    if not topics:
        msg = f"{directory} has no partition directory"
        raise UsageError(msg)
    texts = [_like_topic(number, paths) for number, paths in enumerate(topics.values())]
    return "\n".join(["version = 2\n", *texts])


def _partitions(directory: Path) -> list[tuple[str, Path]]:
    """Return the partitions in use in a directory, each with its topic; or the directory, if it is a partition."""
    names = filter(None, map(partition_name, sorted(LOCAL.entries(directory)[1])))
    found = [(name.topic, directory / str(name)) for name in names if not name.state]
    name = partition_name(directory.resolve().name)
    return found if found or name is None or name.state else [(name.topic, directory)]


def _like_topic(number: int, paths: Sequence[Path]) -> str:
    with open_partition(paths[0]) as partition:
        sample = _sample(partition)
    lines = ["[[topic]]", f'name = "topic-{number}"', f"partitions = {len(paths)}"]
    if sample.segment_size:
        lines += ["[topic.settings]", f'"segment.bytes" = {max(sample.segment_size, LEAST_SEGMENT_SIZE)}']
    data = [batch for batch in sample.batches if not batch.header.is_control and batch.records]
    return "\n".join([*lines, *(_like_step(sample, data) if data else ()), ""])


def _sample(partition: Partition) -> Sample:
    batches, size = [], 0
    for batch in partition.batches():
        batches.append(batch)
        size += sum(len(record.key or b"") + len(record.value or b"") for record in batch.records)
        if len(batches) == SAMPLED_BATCHES or size >= SAMPLED_SIZE:
            break
    is_whole = len(batches) < SAMPLED_BATCHES and size < SAMPLED_SIZE
    closed = [segment.size for segment in partition.segments[:-1]]
    return Sample(partition.log_end_offset - partition.log_start_offset, batches, is_whole, max(closed, default=0))


def _like_step(sample: Sample, data: Sequence[RecordBatch]) -> Iterator[str]:
    records = [record for batch in data for record in batch.records]
    sampled = sum(len(batch.records) for batch in sample.batches)
    magic = data[-1].header.magic
    yield "[[topic.step]]"
    yield f"records = {len(records) if sample.is_whole else sample.total * len(records) // sampled}"
    counts = [len(batch.records) for batch in data]
    yield f"batch = {_around(counts)}"
    yield f"magic = {magic}"
    (codec, _) = Counter(batch.header.codec_id for batch in data).most_common(1)[0]
    yield f'codec = "{CompressionCodec(codec).label}"'
    kind = "random" if codec == CompressionCodec.NONE else "text"
    yield f"key = {_values([record.key for record in records], kind)}"
    yield f"value = {_values([record.value for record in records], kind)}"
    if magic == MAGIC_2:
        yield from _like_headers(records)
        yield from _like_producers(sample.batches, data)
    yield f"timestamps = {_like_timestamps(records)}"


def _around(numbers: Sequence[int]) -> list[int]:
    """Return two bounds with the same mean as the numbers."""
    mean = sum(numbers) / len(numbers)
    low = max(min(numbers), 2 * round(mean) - max(numbers), 0)
    return [low, max(2 * round(mean) - low, low)]


def _values(values: Sequence[bytes | None], kind: str) -> str:
    present = [value for value in values if value is not None]
    if not present:
        return '{ kind = "null" }'
    keys = [f'kind = "{kind}"', f"size = {_parts([min(len(value), MAX_SIZE) for value in present])}"]
    if len(present) < len(values):
        keys.append(f"null = {round(1 - len(present) / len(values), 4)}")
    distinct = len(set(present))
    if distinct <= min(len(present) // 2, MAX_COUNT):
        keys.append(f"distinct = {distinct}")
    return f"{{ {', '.join(keys)} }}"


def _parts(sizes: Sequence[int]) -> list[int]:
    """Return bounds that divide sizes into parts of the same number."""
    ordered = sorted(sizes)
    bounds = [ordered[(len(ordered) - 1) * part // PARTS] for part in range(PARTS + 1)]
    return bounds if bounds[0] < bounds[-1] else [bounds[0], bounds[0]]


def _like_headers(records: Iterable[Record | Message]) -> Iterator[str]:
    counts = [len(record.headers) for record in records]
    sizes = [len(header.value or b"") for record in records for header in record.headers]
    if sizes:
        yield f"headers = {{ count = {_around(counts)}, size = {_parts(sizes)} }}"


def _like_producers(batches: Sequence[RecordBatch], data: Sequence[RecordBatch]) -> Iterator[str]:
    headers = [batch.header for batch in data if isinstance(batch.header, RecordBatchHeader)]
    ids = {header.producer_id for header in headers if header.producer_id != NO_PRODUCER_ID}
    transactional = sum(header.is_transactional for header in headers)
    if not ids:
        return
    keys = [f"count = {min(len(ids), MAX_PRODUCERS)}"]
    markers = [batch.records[0] for batch in batches if _is_of_producer(batch)]
    kinds = [marker.kind for record in markers if (marker := marker_in(record, Location())) is not None]
    if transactional and kinds:
        mean = max(1, round(transactional / len(kinds)))
        aborted = round(kinds.count(ControlRecordType.ABORT) / len(kinds), 4)
        keys += ['kind = "transactional"', f"batches = {[max(1, mean // 2), mean + mean // 2]}", f"abort = {aborted}"]
    else:
        keys.append('kind = "idempotent"')
    yield f"producers = {{ {', '.join(keys)} }}"


def _is_of_producer(batch: RecordBatch) -> bool:
    return bool(batch.header.is_control and batch.header.producer_id != NO_PRODUCER_ID and batch.records)


def _like_timestamps(records: Sequence[Record | Message]) -> str:
    times = [record.timestamp_ms for record in records]
    if min(times) < 0:
        return '{ order = "none" }'
    earlier = sum(after < before for before, after in pairwise(times))
    order = "shuffled" if earlier > OUT_OF_ORDER * len(times) else "ascending"
    return f'{{ order = "{order}", step_ms = {(max(times) - min(times)) // len(times)} }}'
