"""The state after a sequence of metadata records: the image, the quorum, and where the sequence ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.cluster.image import Fields, MetadataImage
from seglog_format.cluster.replay import replay
from seglog_format.errors import FormatError
from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"


class MetadataRecord(NamedTuple):
    """One record of the metadata log or of a snapshot.

    Attributes:
        offset: of the record; in a snapshot its number among the records.
        epoch: leader epoch of its batch.
        timestamp_ms: time at which the controller wrote it.
        type: Kafka's name of its type, control records included.
        fields: by Kafka's names.
        is_control: whether it is in a control batch.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    type: str
    fields: Fields
    is_control: bool


@dataclass(slots=True)
class MetadataState:
    """The state of the metadata after a record.

    Attributes:
        image: topics, brokers, configurations and the rest.
        end_offset: the offset after the last record that was read; 0 if there is none.
        epoch: leader epoch of that record, or of the snapshot; -1 if there is none.
        timestamp_ms: of that record, or of the last record that the snapshot includes; -1 if there is none.
        kraft_version: 0 for a static quorum, 1 for a dynamic quorum, whose voters are in the log.
        voters: fields of each voter of a dynamic quorum.
        leader: id of the last active controller; -1 if no record has it.
        snapshot: the file that reading began with; None if it began with the log.
        snapshot_time_ms: time of the last record that the snapshot includes, from its header; -1 without a snapshot.
        is_finished: whether the snapshot's footer was read.
        has_gap: whether records before the first one of the log are missing.
        problems: descriptions of what could not be read or replayed, and what the image therefore lacks.
    """

    image: MetadataImage = field(default_factory=MetadataImage)
    end_offset: int = 0
    epoch: int = -1
    timestamp_ms: int = -1
    kraft_version: int = 0
    voters: list[Fields] = field(default_factory=list)
    leader: int = -1
    snapshot: Path | None = None
    snapshot_time_ms: int = -1
    is_finished: bool = False
    has_gap: bool = False
    problems: list[str] = field(default_factory=list)
    _pending: list[MetadataRecord] | None = None

    def replay(self, records: Iterable[MetadataRecord]) -> None:
        """Replay records in their order.

        A record that does not fit the image is left out, and damage ends the replay; `problems` lists both. Records of
        a metadata transaction are applied when it ends, as in brokers.
        """
        try:
            for record in records:
                self._take(record)
                self.end_offset, self.epoch = record.offset + 1, record.epoch
                self.timestamp_ms = record.timestamp_ms
        except FormatError as error:
            self.problems.append(str(error))

    def _take(self, record: MetadataRecord) -> None:
        if record.is_control:
            self._control(record)
        elif record.type == BEGIN:
            self._pending = []
        elif record.type in {END, ABORT}:
            self._complete(is_aborted=record.type == ABORT)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record)

    def _complete(self, *, is_aborted: bool) -> None:
        pending, self._pending = self._pending, None
        for record in () if is_aborted else pending or ():
            self._apply(record)

    def _apply(self, record: MetadataRecord) -> None:
        try:
            replay(self.image, record.type, record.fields)
        except FormatError as error:
            problem = f"{kafka_name(error.location.field)}: expected {error.expected}, found {error.found}"
            self.problems.append(f"record {record.offset}, {record.type}: {problem}")

    def _control(self, record: MetadataRecord) -> None:
        if record.type in CONTROL_RULES:
            CONTROL_RULES[record.type](self, record.fields)


def _kraft_version(state: MetadataState, fields: dict[str, Any]) -> None:
    state.kraft_version = fields["kRaftVersion"]


def _voters(state: MetadataState, fields: dict[str, Any]) -> None:
    state.voters = fields["voters"]


def _leader_change(state: MetadataState, fields: dict[str, Any]) -> None:
    state.leader = fields["leaderId"]


def _snapshot_header(state: MetadataState, fields: dict[str, Any]) -> None:
    state.snapshot_time_ms = fields["lastContainedLogTimestamp"]


def _snapshot_footer(state: MetadataState, _fields: dict[str, Any]) -> None:
    state.is_finished = True


CONTROL_RULES: Final[dict[str, Callable[[MetadataState, Fields], None]]] = {
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _voters,
    "LEADER_CHANGE": _leader_change,
    "SNAPSHOT_HEADER": _snapshot_header,
    "SNAPSHOT_FOOTER": _snapshot_footer,
}
