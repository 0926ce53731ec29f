"""A whole adapter of a storage: change `HELLO` and what calls `your_storage`. To run it, name it in adapter.toml.

The files of a request are written into the directory of partition 0 of `topic`; the answer has the files afterwards.
"""

import json
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

out = os.fdopen(os.dup(1), "w", encoding="utf-8")  # keeps output of the library apart from the answers
os.dup2(2, 1)

import your_storage  # noqa: E402

HELLO = {
    "implementation": {"name": "your-storage", "version": your_storage.__version__, "language": "Python"},
    "features": {
        "magic": [0, 1, 2],  # of 0, 1, 2: those it can read
        "codec": ["none", "gzip", "snappy", "lz4", "zstd"],
        "recovery": ["like-brokers"],  # by-the-text: it removes less than brokers do
        "headers": "ordered",
        "bytesKeys": True,
    },
}


class SkipError(Exception):
    """The storage cannot be asked for this."""


@contextmanager
def partition(request):
    with tempfile.TemporaryDirectory() as root:
        directory = Path(root, "topic-0")
        directory.mkdir()
        for name, content in request["files"].items():
            (directory / name).write_bytes(bytes.fromhex(content))
        for name, milliseconds in request.get("options", {}).get("modified", {}).items():
            os.utime(directory / name, ns=(int(milliseconds) * 1_000_000,) * 2)
        yield directory


def settings(request):
    """Topic settings as texts, the clock (`now` is when the request takes place), and what is known of the log."""
    return {"config": request.get("config", {}), "now_ms": int(request.get("now", 0)), "known": known(request)}


def known(request):
    """What the log directory knows of the log: offsets in its checkpoints, and whether it was shut down cleanly."""
    offsets = ("recoveryPoint", "logStartOffset", "highWatermark", "cleanerOffset")
    options = request.get("options", {})
    found = {name: int(options[name]) for name in offsets if name in options}
    return {**found, "cleanShutdown": options.get("cleanShutdown", False)}


def left(directory):
    """The files, and the names of those that wait for their deletion."""
    is_deleted = {path: path.name.endswith(".deleted") for path in sorted(directory.iterdir())}
    files = {path.name: path.read_bytes().hex() for path, deleted in is_deleted.items() if not deleted}
    return {"files": files, "deleted": [path.name for path, deleted in is_deleted.items() if deleted]}


def write(directory, request):
    log = your_storage.open(directory, **settings(request))
    results = []
    try:
        for step in request["steps"]:
            if step["do"] not in STEPS or "fails" in step:
                raise SkipError(f"it has no step {step['do']}")
            log.now_ms = int(step.get("now", log.now_ms))
            try:
                results.append(STEPS[step["do"]](log, step))
            except Exception as error:  # refused: the log stays as it was
                results.append({"reject": {"class": "policy", "message": repr(error)}})
    finally:
        log.close()
    ends = {"nextOffset": log.end, "logStartOffset": log.start, "lastStableOffset": log.last_stable}
    return {"steps": results, **{name: str(offset) for name, offset in ends.items()}, **left(directory)}


def append(log, step):
    role = {"is_leader": step.get("as", "leader") == "leader", "leader_epoch": step.get("leaderEpoch")}
    done = log.append(bytes.fromhex(step["records"]), origin=step.get("origin", "client"), **role)
    answer = {"firstOffset": str(done.first_offset), "lastOffset": str(done.last_offset)}
    return {**answer, "rolled": done.rolled, "recoveryPoint": str(log.recovery_point)}  # rolled: None, or the reason


def look(log, _step):
    return {"files": left(log.directory)["files"]}


STEPS = {
    "append": append,
    "lead": lambda log, step: log.lead(step["leaderEpoch"]) or {},
    "roll": lambda log, _step: {"baseOffset": str(log.roll())},
    "flush": lambda log, _step: log.flush() or {"recoveryPoint": str(log.recovery_point)},
    "look": look,
}


def size(directory):
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def recover(directory, request):
    before, interval = size(directory), request.get("options", {}).get("indexIntervalBytes")
    end = your_storage.recover(directory, interval_bytes=interval, known=known(request))
    after = {"truncatedBytes": max(before - size(directory), 0), "nextOffset": str(end)}
    return {**after, "files": left(directory)["files"]}


def truncate(directory, request):
    end = your_storage.truncate(directory, int(request["offset"]), known=known(request))
    return {"nextOffset": str(end), "files": left(directory)["files"]}


def retain(directory, request):
    done = your_storage.retain(directory, **settings(request))
    found = {"segments": [str(base) for base in done.removed], "logStartOffset": str(done.start)}
    return {**found, "nextOffset": str(done.end), **left(directory)}


def compact(directory, request):
    if request.get("options", {}).get("batches"):
        raise SkipError("it does not decode what it has cleaned")
    done = your_storage.compact(directory, max_keys=request.get("options", {}).get("mostKeys"), **settings(request))
    found = {"firstDirtyOffset": str(done.first_dirty), "firstUncleanableOffset": str(done.first_uncleanable)}
    modified = {path.name: str(path.stat().st_mtime_ns // 1_000_000) for path in directory.glob("*.log")}
    return {**found, "endOffset": str(done.end), "modified": modified, **left(directory)}


def text(data):
    return None if data is None else bytes(data).hex()


def read(directory, request):
    is_committed = request.get("isolation") == "read_committed"
    size_limit = int(request.get("maxBytes", 1 << 20))
    records, end = your_storage.read(directory, int(request["offset"]), size_limit, is_committed=is_committed)
    found = [
        {
            "offset": str(one.offset),
            "timestamp": str(one.timestamp),
            "key": text(one.key),
            "value": text(one.value),
            "headers": [[text(key), text(value)] for key, value in one.headers],
        }
        for one in records
    ]
    return {"records": found, "nextOffset": str(end)}


# Take away what the storage lacks. No other operations are asked.
OPERATIONS = {
    "write": write,
    "recover": recover,
    "truncate": truncate,
    "retain": retain,
    "compact": compact,
    "read": read,
}


def answer(request):
    if request["op"] == "hello":
        return {"ok": True, "protocol": 1, "ops": list(OPERATIONS), **HELLO}
    try:
        with partition(request) as directory:
            return {"ok": True, **OPERATIONS[request["op"]](directory, request)}
    except SkipError as reason:
        return {"skip": {"reason": str(reason)}}
    except Exception as error:  # any exception is a refusal
        return {"ok": False, "reject": {"class": "other", "message": repr(error)}}


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "stop":
        break
    print(json.dumps({"seq": request["seq"], **answer(request)}), file=out, flush=True)
