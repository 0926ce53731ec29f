"""A log in a directory of the machine, which stays open between requests: for power cuts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.reference.scratch import TOPIC, config_of
from seglog_conformance.reference.wire import rejection
from seglog_format.errors import SeglogError
from seglog_format.log.partition import open_partition
from seglog_format.names import partition_directory_name
from seglog_format.recovery.apply import recover_partition
from seglog_format.recovery.truncation import truncate_to
from seglog_format.state.producer_state import Origin
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json
    from seglog_format.writing.partition_log import Appended
    from seglog_format.writing.writer import PartitionWriter

OPTIONAL: Final = ["checkpoint", "duplicates", "retain", "roll", "together", "truncate"]
"""What a storage need not do to be judged."""


class LiveLog:
    """The open log, if there is one."""

    def __init__(self) -> None:
        self._log: LogWriter | None = None

    def answer(self, request: Json) -> Json:
        """Return the results of the steps of a request, up to the first that is refused."""
        results: list[Json] = []
        for step in request["steps"]:
            try:
                results.append(ACTIONS[step["do"]](self, step))
            except SeglogError as error:
                return {"ok": True, "steps": [*results, {"reject": rejection(error)["reject"]}]}
        return {"ok": True, "steps": results}

    @property
    def _writer(self) -> PartitionWriter:
        assert self._log is not None
        return self._log.writers[0]

    def open(self, request: Json) -> Json:
        """Open the log of a directory, which recovers it unless it was closed cleanly."""
        self._log = LogWriter(request["directory"], config_of(request))
        try:
            writer = self._log.open(TOPIC, 0)
        except SeglogError:
            self.close(request)
            raise
        return {"logStartOffset": str(writer.log_start_offset), "nextOffset": str(writer.log_end_offset)}

    def append(self, request: Json) -> Json:
        """Append a batch; with `acks` flushed, it is on the disk when this returns."""
        data, origin = bytes.fromhex(request["data"]), Origin(request.get("origin", "client"))
        acks = "flushed" if request.get("acks") == "flushed" else "written"
        return _appended(self._writer.append(data, origin=origin, acks=acks))  # type: ignore[arg-type]  # a literal

    def together(self, request: Json) -> Json:
        """Append several batches at the same time; each waits until it is on the disk."""
        found: dict[int, Json] = {}
        writer = self._writer

        def append(number: int, data: str) -> None:
            found[number] = _appended(writer.append(bytes.fromhex(data), acks="flushed"))

        threads = [threading.Thread(target=append, args=each) for each in enumerate(request["batches"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"appended": [found[number] for number in range(len(threads))]}

    def flush(self, _request: Json) -> Json:
        """Wait until everything that was appended is on the disk."""
        return {"recoveryPoint": str(self._writer.flush())}

    def roll(self, _request: Json) -> Json:
        """Begin a segment."""
        return {"baseOffset": str(self._writer.roll())}

    def checkpoint(self, _request: Json) -> Json:
        """Write the checkpoints of the log directory."""
        assert self._log is not None
        self._log.checkpoint()
        return {}

    def retain(self, _request: Json) -> Json:
        """Remove the segments that retention does not keep, and the files that were marked for deletion before."""
        plan = self._writer.apply_retention()
        self._writer.remove_deleted()
        return {"logStartOffset": str(plan.log_start_offset)}

    def read(self, request: Json) -> Json:
        """Return all records that a consumer gets."""
        isolation = request.get("isolation", "read_uncommitted")
        with open_partition(self._writer.path, trust_indexes=True) as partition:
            records = partition.records(isolation=isolation, on_gap=lambda _: None)
            return {"records": [{"offset": str(one.offset), "value": (one.value or b"").hex()} for one in records]}

    def close(self, _request: Json) -> Json:
        """Close the log cleanly."""
        log, self._log = self._log, None
        if log is not None:
            log.close()
        return {}

    def truncate(self, request: Json) -> Json:
        """Truncate a log that is not open, as a follower does that has diverged."""
        path = Path(request["directory"]) / partition_directory_name(TOPIC, 0)
        recover_partition(path)
        return {"nextOffset": str(truncate_to(path, int(request["offset"])).plan.offset)}


def _appended(done: Appended) -> Json:
    return {
        "firstOffset": str(done.first_offset),
        "lastOffset": str(done.last_offset),
        "isDuplicate": done.is_duplicate,
    }


ACTIONS: Final[dict[str, Callable[[LiveLog, Json], Json]]] = {
    "open": LiveLog.open,
    "append": LiveLog.append,
    "together": LiveLog.together,
    "flush": LiveLog.flush,
    "roll": LiveLog.roll,
    "checkpoint": LiveLog.checkpoint,
    "retain": LiveLog.retain,
    "read": LiveLog.read,
    "close": LiveLog.close,
    "truncate": LiveLog.truncate,
}
