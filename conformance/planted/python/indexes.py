"""Build the indexes of a segment, and find offsets and timestamps in a log: chapters 40 to 42 and 60."""

import struct

from codec import require
from decoder import batches_of

ABORT, COMMIT = 0, 1


def build(data, base, interval):
    """Return the three index files that a current broker writes for a log, by suffix."""
    offsets, times = b"", b""
    since, latest, latest_offset, stored = 0, -1, base, -1
    batches = list(batches_of(data))
    for batch in batches:
        if batch["maxTimestamp"] > latest:
            latest, latest_offset = batch["maxTimestamp"], batch["lastOffset"]
        if since > interval:
            offsets += struct.pack(">ii", batch["lastOffset"] - base, batch["position"])
            if latest > stored:
                times += struct.pack(">qi", latest, latest_offset - base)
                stored = latest
            since = 0
        since += batch["sizeInBytes"]
    if latest > stored:
        times += struct.pack(">qi", latest, latest_offset - base)
    files = {".index": offsets, ".timeindex": times}
    aborted = aborted_transactions(batches)
    if aborted:
        files[".txnindex"] = b"".join(struct.pack(">hqqqq", 0, *entry) for entry in aborted)
    return files


def aborted_transactions(batches):
    """Return producer, first, last and last stable offset of each aborted transaction, by its marker."""
    started, aborted = {}, []
    for batch in batches:
        if batch["magic"] < 2 or batch["producerId"] < 0:
            continue
        producer = batch["producerId"]
        if not batch["isControl"]:
            if batch["isTransactional"]:
                started.setdefault(producer, batch["baseOffset"])
        elif batch["records"]:
            kind = struct.unpack_from(">h", batch["records"][0]["key"], 2)[0]
            if kind in (ABORT, COMMIT):
                first = started.pop(producer, None)
                if kind == ABORT and first is not None:
                    stable = min(started.values(), default=batch["baseOffset"] + 1)
                    aborted.append((producer, first, batch["baseOffset"], stable))
    return aborted


def segments(files):
    """Return base offset and content of each `.log` file, in order."""
    return sorted((int(name[:20]), data) for name, data in files.items() if name.endswith(".log"))


def find_offset(files, offset):
    """Return the first batch whose last offset is not below an offset, or None; the log is walked from its start."""
    logs = segments(files)
    require(logs and offset >= logs[0][0], "offset out of range")
    end = logs[-1][0]
    for number, (_, data) in enumerate(logs):
        if number + 1 < len(logs) and logs[number + 1][0] <= offset:
            continue
        for batch in batches_of(data):
            end = batch["nextOffset"]
            if batch["lastOffset"] >= offset:
                return start_of(batch)
    require(offset <= end, "offset out of range")
    return None


def find_timestamp(files, timestamp):
    """Return the first record at or after a time; -1 the end, -2 the start, -3 the record with the largest time."""
    logs = segments(files)
    if timestamp == -1:
        last = logs[-1][0]
        for batch in batches_of(logs[-1][1]):
            last = batch["nextOffset"]
        return {"offset": last, "timestamp": -1}
    if timestamp == -2:
        return {"offset": logs[0][0], "timestamp": -1}
    pairs = timed_records(logs)
    if timestamp == -3:
        found = max(pairs, key=lambda pair: pair[1]["timestamp"], default=None)
    else:
        found = next((pair for pair in pairs if pair[1]["timestamp"] >= timestamp), None)
    return found and start_of(found[0]) | {name: found[1][name] for name in ("offset", "timestamp")}


def timed_records(logs):
    for _, data in logs:
        for batch in batches_of(data):
            yield from ((batch, record) for record in batch["records"] if record["timestamp"] >= 0)


def start_of(batch):
    return {"position": batch["position"], "baseOffset": batch["baseOffset"]}
