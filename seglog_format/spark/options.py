"""The options of the data source, parsed from strings and checked.

Options of Spark's Kafka connector keep their names, so only format and path of a query need to change.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from seglog_format.errors import UsageError
from seglog_format.log.reading import ISOLATIONS, READ_COMMITTED, READ_UNCOMMITTED
from seglog_format.model import DEFAULT_OUTPUT_LIMIT
from seglog_format.spark.offsets import EARLIEST, LATEST, OffsetChoice, parse_numbers, parse_offsets
from seglog_format.storage.object_store import has_secret, is_address, shown_address
from seglog_format.values.schemas import AS_MAP, HEADERS_AS, KINDS, TIMES_AS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from seglog_format.values.decoder import Form
    from seglog_format.values.schemas import Schemas


# -- checks of names that users give, with suggestions of similar known names ------------------------------------------


def refuse(what: str, name: str, known: Collection[str]) -> NoReturn:
    """Refuse an unknown name.

    Raises:
        UsageError: always; it lists similar names, or all.
    """
    lower = {each.lower(): each for each in known}
    near = [lower[each] for each in get_close_matches(name.lower(), lower, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    msg = f"seglog: unknown {what} {name!r}: {hint}"
    raise UsageError(msg)


def without_keys(path: str) -> str:
    """Return a path unless it has keys in it, since columns and findings show it.

    Raises:
        UsageError: keys precede the bucket of an address.
    """
    if is_address(path) and has_secret(path):
        keys = "give them as options storage.access_key and storage.secret_key, or in the environment"
        msg = f"seglog: {shown_address(path)}: keys before a bucket would be shown in columns and findings: {keys}"
        raise UsageError(msg)
    return path


def one_of(what: str, value: str, known: Collection[str]) -> str:
    """Return the known value that equals the given one but for its case.

    Raises:
        UsageError: the value is unknown.
    """
    for each in known:
        if each.lower() == value.lower():
            return each
    refuse(f"value of option {what}:", value, known)


def parse_files(text: str) -> dict[str, str]:
    """Parse names of files by id, an object in JSON.

    Raises:
        ValueError: it is something else.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        msg = 'not an object of files by id, such as {"key1": "/keys/key1.pem"}'
        raise ValueError(msg)
    return found


# -- the options of the data source ------------------------------------------------------------------------------------


LOGGER: Final = logging.getLogger(__name__)

LEFT_OUT: Final = "leftout"
TABLES: Final = ("records", "batches", "segments", "findings", LEFT_OUT)
FAIL_FAST: Final = "failfast"
DROP_CORRUPT: Final = "dropcorrupt"
PERMISSIVE: Final = "permissive"
MODES: Final = (FAIL_FAST, DROP_CORRUPT, PERMISSIVE)
LONGEST: Final = "longest"
REPLICAS: Final = (LONGEST, "first", "all")
REFUSE: Final = "refuse"
RECREATED: Final = (REFUSE, "keep")
HONOUR: Final = "honour"
IGNORE: Final = "ignore"
LOG_START: Final = (HONOUR, IGNORE)
TIME_INDEX: Final = ("trust", IGNORE)
USE: Final = "use"
PUSHED_FILTERS: Final = (IGNORE, USE)
STRATEGIES: Final = ("error", "latest")

OPTIONS: Final = (
    "path",
    "paths",
    "table",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "includeHeaders",
    "headersAs",
    "minPartitions",
    "maxBytesPerPartition",
    "splitBytes",
    "isolationLevel",
    "kafka.isolation.level",
    "failOnDataLoss",
    "mode",
    "replicas",
    "recreatedTopics",
    "logStartOffset",
    "timeIndex",
    "maxLateness",
    "pushedFilters",
    "outputLimit",
    "remote",
    "remoteLayout",
    "remoteKeys",
    "columns",
    "keyAs",
    "valueAs",
    "valueSchema",
    "valueMessage",
    "valueIsPlain",
    "times",
    "schemas",
)
"""Options of a batch read."""

OF_STREAMS: Final = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Options that only streams take."""
NOT_OF_STREAMS: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "maxLateness", "remote")

STORAGE: Final = "storage."
"""Prefix of options for the file system of an address, such as ``storage.region``."""

FOR_A_BROKER: Final = "is for a broker"
UNUSED: Final = {
    "groupidprefix": FOR_A_BROKER,
    "kafkaconsumer.polltimeoutms": FOR_A_BROKER,
    "fetchoffset.numretries": FOR_A_BROKER,
    "fetchoffset.retryintervalms": FOR_A_BROKER,
    "maxrecordsperpartition": "counts records, and tasks are cut by bytes: use splitBytes",
}
"""Options of the connector that the source ignores, with the reason, besides all that start with ``kafka.``."""

_SIZE = re.compile(r"(\d+)\s*([kmg]?)b?", re.IGNORECASE)
_FACTORS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_DURATION = re.compile(r"(\d+)\s*(|ms|s|m|h|d)", re.IGNORECASE)
_MILLISECONDS: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read.

    Attributes:
        paths: log directories, partition directories, or trees that hold them.
        table: of `TABLES`.
        topics: topics to read; None for all.
        pattern: regular expression for the whole names of topics to read.
        assigned: partitions to read.
        starting, ending: from the first offset inclusive to the second exclusive, for each partition.
        mode: what to do about damage: one of `MODES`.
        isolation: ``read_uncommitted`` or ``read_committed``.
        fail_on_data_loss: whether a requested offset that does not exist is an error.
        include_headers: whether there is a column of headers if the caller gives no schema.
        headers_as: of `seglog_format.values.schemas.HEADERS_AS`.
        split_size: approximate bytes for one task; None: chosen.
        min_partitions: minimum number of tasks, as far as pieces can be cut.
        replicas: which replica to read of a partition that is found more than once.
        recreated: what to do where directories of one partition have several topic ids.
        log_start: whether records below the checkpointed log start offset are hidden.
        time_index: whether to skip older records by the time index.
        max_lateness_ms: maximum time by which a record is older than any record before it; None: unknown.
        pushed_filters: whether filters that Spark pushes choose what is read.
        limit: maximum bytes that one entry may decompress to.
        rows_per_trigger, size_per_trigger: maximum of a step of a stream; None for no limit.
        min_rows_per_trigger: minimum of a step of a stream, unless the last step is `max_delay_ms` ago.
        max_delay_ms: maximum time between two steps if records are there.
        storage: settings of the file systems of paths that are addresses, by name.
        remote: folder or address of the store with the tiered segments; None to read local segments only.
        remote_layout: layout of its objects; None to recognize it.
        remote_keys: files of private keys, by the ids of the key pairs.
        columns: names of the columns if the caller gives no schema; None for the default ones.
        key_as, value_as: how keys and values are decoded; of `seglog_format.values.decoder.KINDS`.
        value_schema: text of the reader's schema of values; None for the newest of the topic.
        value_message: name of a Protobuf message; None for that of the first value that names one.
        is_plain: whether values have no header of Schema Registry.
        times: of `seglog_format.values.schemas.TIMES_AS`.
        schemas_path: partition directory of `_schemas`; None for the one beside the partitions.
        forms: how the columns are decoded that are not bytes, by name; found on the driver.
        schemas: those that keys and values were written by; None without such a topic.
    """

    paths: tuple[str, ...]
    table: str = TABLES[0]
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assigned: frozenset[tuple[str, int]] | None = None
    starting: OffsetChoice = EARLIEST
    ending: OffsetChoice = LATEST
    mode: str = FAIL_FAST
    isolation: str = READ_UNCOMMITTED
    fail_on_data_loss: bool = True
    include_headers: bool = False
    headers_as: str = HEADERS_AS[0]
    split_size: int | None = None
    min_partitions: int | None = None
    replicas: str = LONGEST
    recreated: str = REFUSE
    log_start: str = HONOUR
    time_index: str = TIME_INDEX[0]
    max_lateness_ms: int | None = None
    pushed_filters: str = IGNORE
    limit: int = DEFAULT_OUTPUT_LIMIT
    rows_per_trigger: int | None = None
    size_per_trigger: int | None = None
    min_rows_per_trigger: int = 0
    max_delay_ms: int = 15 * 60_000
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)  # there may be secrets in it
    remote: str | None = field(default=None, repr=False)  # as above
    remote_layout: str | None = None
    remote_keys: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    key_as: str = KINDS[0]
    value_as: str = KINDS[0]
    value_schema: str | None = None
    value_message: str | None = None
    is_plain: bool = False
    times: str = TIMES_AS[0]
    schemas_path: str | None = None
    forms: Mapping[str, Form] = field(default_factory=dict)
    schemas: Schemas | None = field(default=None, repr=False)

    @property
    def is_decoding(self) -> bool:
        """Return whether columns have other types than by default."""
        return {self.key_as, self.value_as} != {KINDS[0]} or self.headers_as == AS_MAP

    @property
    def is_committed_only(self) -> bool:
        """Return whether records of aborted and undecided transactions are left out."""
        return self.isolation == READ_COMMITTED

    def wants(self, topic: str, partition: int) -> bool:
        """Return whether the query reads a partition."""
        return (
            (self.topics is None or topic in self.topics)
            and (self.pattern is None or re.fullmatch(self.pattern, topic) is not None)
            and (self.assigned is None or (topic, partition) in self.assigned)
        )


def parse_options(raw: Mapping[str, str], *, more: tuple[str, ...] = ()) -> ReadOptions:
    """Parse the options of a query.

    Args:
        raw: by name, in any case.
        more: further names to accept, which have no effect on a batch query.

    Raises:
        UsageError: an unknown option, with similar ones, or an invalid value.
    """
    given = {name.lower(): value for name, value in raw.items()}
    _check_names(given, more)
    values = {
        "paths": _paths(given),
        "table": _chosen(given, "table", TABLES),
        **_subscription(given),
        "starting": _offsets(given, "starting", EARLIEST),
        "ending": _offsets(given, "ending", LATEST),
        "mode": _chosen(given, "mode", MODES),
        "isolation": _isolation(given),
        "fail_on_data_loss": parsed(given, "failOnDataLoss", parse_bool),
        "include_headers": parsed(given, "includeHeaders", parse_bool),
        "headers_as": _chosen(given, "headersAs", HEADERS_AS),
        "split_size": parsed(given, "splitBytes", parse_size) or parsed(given, "maxBytesPerPartition", parse_size),
        "min_partitions": parsed(given, "minPartitions", parse_count),
        "replicas": _chosen(given, "replicas", REPLICAS),
        "recreated": _chosen(given, "recreatedTopics", RECREATED),
        "log_start": _chosen(given, "logStartOffset", LOG_START),
        "time_index": _chosen(given, "timeIndex", TIME_INDEX),
        "max_lateness_ms": parsed(given, "maxLateness", parse_duration),
        "pushed_filters": _chosen(given, "pushedFilters", PUSHED_FILTERS),
        "limit": parsed(given, "outputLimit", parse_size),
        "rows_per_trigger": parsed(given, "maxOffsetsPerTrigger", parse_count),
        "size_per_trigger": parsed(given, "maxBytesPerTrigger", parse_size),
        "min_rows_per_trigger": parsed(given, "minOffsetsPerTrigger", parse_count),
        "max_delay_ms": parsed(given, "maxTriggerDelay", parse_duration),
        "storage": {name.removeprefix(STORAGE): value for name, value in given.items() if name.startswith(STORAGE)},
        "remote": given.get("remote"),
        "remote_layout": given.get("remotelayout"),
        "remote_keys": parsed(given, "remoteKeys", parse_files),
        "columns": parsed(given, "columns", _parse_names),
        "key_as": _chosen(given, "keyAs", KINDS),
        "value_as": _chosen(given, "valueAs", KINDS),
        "value_schema": given.get("valueschema"),
        "value_message": given.get("valuemessage"),
        "is_plain": parsed(given, "valueIsPlain", parse_bool),
        "times": _chosen(given, "times", TIMES_AS),
        "schemas_path": given.get("schemas"),
    }
    assert set(values) == {field.name for field in fields(ReadOptions)} - {"forms", "schemas"}
    return ReadOptions(**{name: value for name, value in values.items() if value is not None})  # type: ignore[arg-type]


def parse_stream_options(raw: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a stream; like the connector's, it starts at the end by default.

    Raises:
        UsageError: as `parse_options`; also an end, a table other than records, or both limits for a step.
    """
    given = {name.lower() for name in raw}
    ends = [name for name in NOT_OF_STREAMS if name.lower() in given]
    options = parse_options(raw, more=OF_STREAMS)
    if ends or options.table != "records" or (options.rows_per_trigger and options.size_per_trigger):
        limits = " and ".join(OF_STREAMS[:2])
        what = ends[0] if ends else "a table but records" if options.table != "records" else limits
        msg = f"seglog: a stream cannot have {what}"
        raise UsageError(msg)
    starts = {"startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"}
    return options if starts & given else replace(options, starting=LATEST)


def _check_names(given: Mapping[str, str], more: tuple[str, ...]) -> None:
    known = {name.lower() for name in (*OPTIONS, *more)}
    for name in given:
        if name in known or name.startswith(STORAGE):
            continue
        if not name.startswith("kafka.") and name not in UNUSED:
            refuse("option", name, (*OPTIONS, *more))
        LOGGER.warning("seglog: option %s %s: it is ignored", name, UNUSED.get(name, FOR_A_BROKER))


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths: ``load(a)`` gives an option ``path``, ``load([a, b])`` gives ``paths``, an array in JSON."""
    several = parsed(given, "paths", _parse_strings) or ()
    paths = tuple(filter(None, (given.get("path"), *several)))
    if not paths:
        msg = "seglog: no path: give one to load(), a log directory or a partition directory"
        raise UsageError(msg)
    return tuple(map(without_keys, paths))


def _parse_strings(text: str) -> tuple[str, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        msg = "not an array of strings"
        raise ValueError(msg)
    return tuple(found)


def _subscription(given: Mapping[str, str]) -> dict[str, object]:
    ways = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in given]
    if len(ways) > 1:
        msg = f"seglog: give one of {' and '.join(ways)}"
        raise UsageError(msg)
    return {
        "topics": frozenset(names) if (names := parsed(given, "subscribe", _parse_names)) is not None else None,
        "pattern": parsed(given, "subscribePattern", _parse_pattern),
        "assigned": parsed(given, "assign", _parse_assignment),
    }


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _parse_pattern(text: str) -> str:
    try:
        return re.compile(text).pattern
    except re.error as error:
        raise ValueError(str(error)) from error


def _parse_assignment(text: str) -> frozenset[tuple[str, int]]:
    try:
        found = json.loads(text)
        return frozenset((str(topic), int(number)) for topic, numbers in found.items() for number in numbers)
    except (ValueError, TypeError, AttributeError) as error:
        msg = 'expected a list for each topic, such as {"orders": [0, 1]}'
        raise ValueError(msg) from error


def _offsets(given: Mapping[str, str], which: str, default: OffsetChoice) -> OffsetChoice:
    """Return the start or the end of a read; of several options, the one that the connector reads first applies."""
    strategy = _chosen(given, "startingOffsetsByTimestampStrategy", STRATEGIES) or STRATEGIES[0]
    timestamp_ms = parsed(given, f"{which}Timestamp", int)
    if timestamp_ms is not None:
        return OffsetChoice("timestamp", timestamp_ms=timestamp_ms, strategy=strategy)
    timestamps = parsed(given, f"{which}OffsetsByTimestamp", parse_numbers)
    if timestamps is not None:
        return OffsetChoice("timestamps", timestamps, strategy=strategy)
    return parsed(given, f"{which}Offsets", parse_offsets) or default


def _isolation(given: Mapping[str, str]) -> str | None:
    found = [given[name] for name in ("isolationlevel", "kafka.isolation.level") if name in given]
    return one_of("isolationLevel", found[0], ISOLATIONS) if found else None


def _chosen(given: Mapping[str, str], name: str, values: tuple[str, ...]) -> str | None:
    value = given.get(name.lower())
    return None if value is None else one_of(name, value, values)


def parsed(given: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    """Parse an option, by its name in lower case; return None if it is not given.

    Raises:
        UsageError: the value is invalid; the text says what is valid.
    """
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        return parse(text)
    except (ValueError, TypeError, AttributeError) as error:
        msg = f"seglog: option {name} cannot be {text!r}: {error}"
        raise UsageError(msg) from error


def parse_bool(text: str) -> bool:
    """Parse ``true`` or ``false``."""
    if text.lower() not in {"true", "false"}:
        msg = "must be true or false"
        raise ValueError(msg)
    return text.lower() == "true"


def parse_count(text: str) -> int:
    """Parse a number from 1 on."""
    if int(text) < 1:
        msg = "must be 1 or more"
        raise ValueError(msg)
    return int(text)


def parse_size(text: str) -> int:
    """Parse a number of bytes from 1 on, optionally followed by ``k``, ``m`` or ``g``."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or not int(match[1]):
        msg = "must be a number of bytes, such as 33554432 or 32m"
        raise ValueError(msg)
    return int(match[1]) * _FACTORS[match[2].lower()]


def parse_duration(text: str) -> int:
    """Parse a duration in milliseconds, or followed by ``ms``, ``s``, ``m``, ``h`` or ``d``."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        msg = "must be a time, such as 500ms, 30s, 10m, 1h or 0"
        raise ValueError(msg)
    return int(match[1]) * _MILLISECONDS[match[2].lower()]
