"""A decoder of magic 0, 1 and 2, written from `spec/` alone: chapters 20, 30 to 34."""

import struct
import zlib

from codec import Corrupt, decompress, require

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MIN_TAIL = 17
LARGEST_OFFSET = (1 << 63) - 1
BATCH_HEADER = 61
DEFAULT_LIMIT = 1 << 24


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc32c_table()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


class Cursor:
    """Bytes that are read from the front, never past the end."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, size):
        require(size <= self.end - self.at, "bytes end in a field")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(form)))[0]

    def varint(self, bits):
        value, shift = 0, 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            require(shift < bits, "varint is too long")
        value &= (1 << bits) - 1
        return value >> 1 ^ -(value & 1)

    def nullable(self, size):
        return None if size < 0 else self.take(size)


# -- the walk


def walk(data):
    """Yield position, size and magic of each entry; at last, where the whole entries end and what follows."""
    at = 0
    while len(data) - at > MIN_TAIL:
        size, _, magic = struct.unpack_from(">iib", data, at + 8)
        if size == 0 and not any(data[at:]):
            break
        require(size >= 14, f"size {size}")
        if at + 12 + size > len(data):
            break
        require(magic in (0, 1, 2), f"magic {magic}")
        require(magic < 2 or size >= BATCH_HEADER - 12, f"batch length {size}")
        yield at, 12 + size, magic
        at += 12 + size
    yield at, len(data) - at, None


def batches_of(data, crc=True, limit=DEFAULT_LIMIT):
    """Yield each whole batch or message, when it is reached."""
    for at, size, magic in walk(data):
        if magic is not None:
            entry = data[at : at + size]
            batch = batch_of(entry, crc, limit) if magic == 2 else message_of(entry, crc, limit)
            yield {"position": at, "sizeInBytes": size, "magic": magic, **batch}


def decode(data, batches, crc, limit):
    """Append each batch to a list; return where the whole entries end, and what follows."""
    for batch in batches_of(data, crc, limit):
        batches.append(batch)
    *_, (end, size, _) = walk(data)
    return end, size and {"class": "partial" if any(data[end:]) else "zeros", "at": end} or None


# -- magic 2


def batch_of(entry, crc, limit):
    base, length, epoch, magic, checksum, attributes, delta = struct.unpack_from(">qiibIhi", entry)
    first, largest, producer, producer_epoch, sequence, count = struct.unpack_from(">qqqhii", entry, 27)
    require(not crc or checksum == crc32c(entry[21:]), "checksum")
    require(base >= 0, "negative base offset")
    require(delta >= 0, "negative last offset delta")
    require(base + delta <= LARGEST_OFFSET, "last offset")
    require(count >= 0, "negative records count")
    append_time, is_control = bool(attributes & 8), bool(attributes & 32)
    batch = {
        "baseOffset": base,
        "lastOffset": base + delta,
        "nextOffset": base + delta + 1,
        "crc": checksum,
        "codec": CODECS[attributes & 7] if attributes & 7 < 5 else "unknown",
        "timestampType": "LogAppendTime" if append_time else "CreateTime",
        "maxTimestamp": largest,
        "deleteHorizonMs": first if attributes & 64 else None,
        "recordsCount": count,
        "producerId": producer,
        "producerEpoch": producer_epoch,
        "baseSequence": sequence,
        "lastSequence": -1 if sequence == -1 else (sequence + delta) & 0x7FFFFFFF,
        "isTransactional": bool(attributes & 16),
        "isControl": is_control,
        "partitionLeaderEpoch": epoch,
        "isValid": checksum == crc32c(entry[21:]),
    }
    records = Cursor(decompress(attributes & 7, entry[BATCH_HEADER:], 2, limit))
    batch["records"] = [record_of(records, base, first, largest if append_time else None) for _ in range(count)]
    require(records.at == records.end, "bytes after the last record")
    if is_control:
        for record in batch["records"]:
            check_control(record)
    return batch


def record_of(records, base, first, append_time):
    length = records.varint(32)
    require(0 <= length <= records.end - records.at, f"record length {length}")
    body = Cursor(records.data, records.at, records.at + length)
    body.take(1)
    timestamp, offset = wrapped(first + body.varint(64)), base + body.varint(32)
    require(0 <= offset <= LARGEST_OFFSET, f"offset {offset}")
    key, value = body.nullable(body.varint(32)), body.nullable(body.varint(32))
    count = body.varint(32)
    require(count >= 0, "negative header count")
    headers = [header_of(body) for _ in range(min(count, length + 1))]
    require(body.at == body.end, "fields do not fill the record")
    records.at = body.end
    return {
        "offset": offset,
        "timestamp": timestamp if append_time is None else append_time,
        "key": key,
        "value": value,
        "headers": headers,
    }


def header_of(body):
    size = body.varint(32)
    require(size >= 0, "null header key")
    return [body.take(size), body.nullable(body.varint(32))]


def wrapped(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def check_control(record):
    key, value = record["key"], record["value"]
    require(key is not None and len(key) >= 4, "control key")
    version, kind = struct.unpack_from(">hh", key)
    require(version >= 0, "version of a control key")
    if kind in (0, 1):
        require(value is not None and len(value) >= 6, "end marker")
        require(struct.unpack_from(">h", value)[0] >= 0, "version of an end marker")


# -- magic 0 and 1


def message_of(entry, crc, limit):
    outer = plain_of(entry, crc)
    require(outer["offset"] >= 0, "offset of a wrapper")
    codec = outer["attributes"] & 7
    append_time = outer["magic"] == 1 and bool(outer["attributes"] & 8)
    records = [outer]
    if codec:
        require(codec < 4, f"codec {codec} in a wrapper")
        require(outer["value"] is not None, "null value of a wrapper")
        records = inside(outer, decompress(codec, outer["value"], outer["magic"], limit), crc)
    for record in records:
        require(0 <= record["offset"] <= LARGEST_OFFSET, "offset of a message")
        if append_time and record["magic"] == 1:
            record["timestamp"] = outer["timestamp"]
    kinds = "LogAppendTime" if append_time else "CreateTime"
    return {
        **NO_BATCH,
        "baseOffset": records[0]["offset"],
        "lastOffset": outer["offset"],
        "nextOffset": outer["offset"] + 1,
        "crc": outer["crc"],
        "codec": CODECS[codec],
        "timestampType": kinds if outer["magic"] else "NoTimestampType",
        "maxTimestamp": outer["timestamp"],
        "isValid": outer["isValid"],
        "records": [
            {name: record[name] for name in ("offset", "timestamp", "key", "value")} | {"headers": []}
            for record in records
        ],
    }


NO_BATCH = {"deleteHorizonMs": None, "recordsCount": None, "producerId": -1, "producerEpoch": -1, "baseSequence": -1}
NO_BATCH |= {"lastSequence": -1, "isTransactional": False, "isControl": False, "partitionLeaderEpoch": -1}


def plain_of(entry, crc):
    """Return the fields of one message, as stored."""
    fields = Cursor(entry)
    offset, size, checksum = fields.number("q"), fields.number("i"), fields.number("I")
    magic, attributes = fields.number("b"), fields.number("b")
    require(magic in (0, 1), f"magic {magic} inside a wrapper")
    require(size >= (22 if magic else 14), f"size {size} of a message")
    require(not crc or checksum == zlib.crc32(entry[16:]), "checksum of a message")
    timestamp = fields.number("q") if magic else -1
    key = fields.nullable(fields.number("i"))
    value = fields.nullable(fields.number("i"))
    return {
        "offset": offset,
        "crc": checksum,
        "isValid": checksum == zlib.crc32(entry[16:]),
        "magic": magic,
        "attributes": attributes,
        "timestamp": timestamp,
        "key": key,
        "value": value,
    }


def inside(outer, content, crc):
    """Return the messages of a wrapper, with absolute offsets."""
    messages, at = [], 0
    while len(content) - at >= 12:
        (size,) = struct.unpack_from(">i", content, at + 8)
        require(size >= 14, f"size {size} inside a wrapper")
        if at + 12 + size > len(content):
            break
        messages.append(plain_of(content[at : at + 12 + size], crc))
        require(not messages[-1]["attributes"] & 7, "a wrapper inside a wrapper")
        at += 12 + size
    require(messages, "a wrapper without messages")
    if outer["magic"] == 1 and outer["offset"] != 0:
        shift = outer["offset"] - messages[-1]["offset"]
        require(shift >= 0, "offset of a wrapper below the last one inside")
        for message in messages:
            message["offset"] += shift
    return messages
