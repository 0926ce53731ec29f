"""The directory of a request: filled from the request, and reported in the answer."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.reference.disk import Disk
from seglog_format.codec.checkpoints import encode_offset_checkpoint
from seglog_format.errors import UsageError
from seglog_format.log.partition import open_partition
from seglog_format.model import CheckpointedOffset
from seglog_format.names import FileKind, partition_directory_name
from seglog_format.recovery.apply import recover_partition
from seglog_format.state.config import LogConfig, topic_settings
from seglog_format.storage.files import LOCAL_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_conformance.protocol import Json
    from seglog_conformance.reference.disk import Left

TOPIC: Final = "topic"
DELETED: Final = ".deleted"
CHECKPOINTS: Final = {
    "recoveryPoint": FileKind.RECOVERY_POINT_CHECKPOINT,
    "logStartOffset": FileKind.LOG_START_OFFSET_CHECKPOINT,
    "highWatermark": FileKind.REPLICATION_OFFSET_CHECKPOINT,
    "cleanerOffset": FileKind.CLEANER_OFFSET_CHECKPOINT,
}


@contextmanager
def written(request: Json) -> Iterator[Path]:
    """Yield the partition directory of a request, with the files of its log directory."""
    options = request.get("options", {})
    with tempfile.TemporaryDirectory(prefix="seglog-conform-") as root:
        partition = Path(root) / partition_directory_name(options.get("topic", TOPIC), 0)
        partition.mkdir()
        for name, data in request["files"].items():
            (partition / plain_name(name)).write_bytes(bytes.fromhex(data))
        for option, kind in CHECKPOINTS.items():
            if option in options:
                entry = CheckpointedOffset(TOPIC, 0, int(options[option]))
                (Path(root) / kind.value).write_bytes(encode_offset_checkpoint([entry]))
        for name, changed_ms in options.get("modified", {}).items():
            LOCAL_FILES.set_modified_ms(partition / plain_name(name), int(changed_ms))
        for directory, files in options.get("beside", {}).items():
            (Path(root) / plain_name(directory)).mkdir()
            for name, data in files.items():
                (Path(root) / plain_name(directory) / plain_name(name)).write_bytes(bytes.fromhex(data))
        for name, data in options.get("checkpoints", {}).items():
            (Path(root) / plain_name(name)).write_bytes(bytes.fromhex(data))
        if options.get("cleanShutdown"):
            (Path(root) / FileKind.CLEAN_SHUTDOWN.value).touch()
        yield partition


def plain_name(name: str) -> str:
    """Return a name after checking that it has no directory; ``.log`` alone is that of base offset 0.

    Raises:
        UsageError: the name has a directory.
    """
    plain = Path(name).name
    if plain in {"", ".."} or "\0" in plain:
        msg = f"{name!r} is no name of a file"
        raise UsageError(msg)
    return f"{0:020}{plain}" if plain in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"} else plain


def files_in(partition: Path) -> dict[str, str]:
    """Return the files of a partition directory, except those marked for deletion."""
    paths = sorted(path for path in partition.iterdir() if not path.name.endswith(DELETED))
    return {path.name: path.read_bytes().hex() for path in paths}


def checkpoints_beside(partition: Path) -> dict[str, str | None]:
    """Return the checkpoint files of the log directory; null for missing ones."""
    paths = {kind.value: partition.parent / kind.value for kind in CHECKPOINTS.values()}
    return {name: path.read_bytes().hex() if path.is_file() else None for name, path in paths.items()}


def left_in(partition: Path) -> Json:
    """Return the contents of a partition directory and of the log directory around it."""
    files = files_in(partition)
    return {
        "files": files,
        "names": list(files),
        "deleted": deleted_in(partition),
        "checkpoints": checkpoints_beside(partition),
        "isClean": (partition.parent / FileKind.CLEAN_SHUTDOWN.value).exists(),
    }


def deleted_in(partition: Path) -> list[str]:
    """Return the names of the files marked for deletion."""
    return sorted(path.name for path in partition.iterdir() if path.name.endswith(DELETED))


def config_of(request: Json) -> LogConfig:
    """Return the settings of a request, of a broker or a topic.

    Raises:
        UsageError: a setting is not known, or out of its range.
    """
    return LogConfig.from_properties(topic_settings(request.get("config", {})))


# Power cuts


def disk_of(request: Json, partition: Path) -> Disk:
    """Return the file layer for a request, which fails on request, or records possible states after power cuts."""
    options = request.get("options", {})
    disk = Disk(partition.parent, keeps_states=options.get("powerCuts", False))
    disk.failing = options.get("fails", "")
    return disk


def outcomes(request: Json, disk: Disk) -> Json:
    """Return the logs that recovery finds after a power cut at any moment, each as its delivered offsets."""
    return {"outcomes": recovered(disk.states)} if request.get("options", {}).get("powerCuts") else {}


def recovered(states: Iterable[Left]) -> list[str]:
    """Return the distinct logs that recovery finds in states after a power cut."""
    with tempfile.TemporaryDirectory(prefix="seglog-conform-") as scratch:
        return sorted({_recovered(Path(scratch) / str(number), left) for number, left in enumerate(states)})


def _recovered(top: Path, left: Left) -> str:
    for name, data in left:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    partition = next((path for path in top.glob("*") if path.is_dir()), None)
    if partition is None:
        return ""
    recover_partition(partition)
    with open_partition(partition) as log:
        return " ".join(str(record.offset) for record in log.records(on_gap=lambda _: None))
