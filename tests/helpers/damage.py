"""The damaged cases of `fixtures/damaged/`: a good file, a list of edits, and the requirement that they break.

A ``case.toml`` names its ``base``, a byte vector (``V-06``) or a bundled case (``4.3.0/txn``). A vector is written to
``file`` (by default ``00000000000000000000.log``); of a bundled case everything is copied, or what is in the
directory ``below``. Then come the edits, each on its own ``file`` or on that of the case:

``at``, ``hex``            overwrite bytes; a negative position counts from the end
``at``, ``insert``         put bytes in
``at``, ``remove``         take that many bytes out
``append``, ``zeros``      add bytes, or that many zeros, at the end
``cut``                    take that many bytes off the end
``field``, ``value``       set a field in the header of an entry
``compress``               replace the records of a batch by the same ones in gzip
``replace``                ``[old, new]``: text that occurs once
``content``                text of the whole file
``rename``, ``copy``       to a path below the copy, also of a directory
``make``                   an empty directory
``delete``                 true: without this file

``entry`` counts the entries of a log from 0 and says which one an edit concerns; only the last one may change its
size. ``fix`` then sets its ``size`` or ``crc`` right, or that of a ``snapshot``. With ``inside``, the edit concerns
what the gzip data of entry ``wrapper`` holds, which is packed again. ``verify`` is the path to verify, by default
``file``, and ``verify_base`` the same before the edits, where they rename it. With ``reader = "directory-name"`` it is
not verified: its name is parsed. Nothing here uses the package.
"""

from __future__ import annotations

import gzip
import shutil
import struct
import tomllib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import google_crc32c

from helpers.support import FIXTURES, bundled, vector

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = FIXTURES / "damaged"
LOG_NAME = "00000000000000000000.log"

BATCH_FIELDS = {
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "partition_leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp_ms": (27, ">q"),
    "max_timestamp_ms": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "records_count": (57, ">i"),
}
MESSAGE_FIELDS = {
    "offset": (0, ">q"),
    "message_size": (8, ">i"),
    "crc": (12, ">I"),
    "magic": (16, ">b"),
    "attributes": (17, ">b"),
    "timestamp_ms": (18, ">q"),
}
RECORDS_START = 61


@dataclass(frozen=True)
class Case:
    """One damaged case: its name and the content of its ``case.toml``."""

    name: str
    content: dict[str, Any]

    @property
    def violates(self) -> list[str]:
        """The requirement that the edits break; a list of one."""
        return list(self.content["violates"])

    @property
    def also(self) -> list[str]:
        """Requirements that cannot be kept when that one is broken."""
        return list(self.content.get("also", []))

    def build(self, target: Path, *, damaged: bool = True) -> Path:
        """Write the case below `target`, with or without its edits, and return the path to verify."""
        file = self.content.get("file", LOG_NAME)
        base = self.content["base"]
        if base.startswith("V-"):
            write(target / file, vector(base))
        else:
            shutil.copytree(bundled(base) / self.content.get("below", ""), target, dirs_exist_ok=True)
        if damaged:
            for edit in self.content["edit"]:
                apply(target, {"file": file, **edit})
        verified = self.content.get("verify", file)
        return target / (verified if damaged else self.content.get("verify_base", verified))


def damaged_cases() -> list[Case]:
    """Every case, by name."""
    paths = sorted(DAMAGED.glob("*/case.toml"))
    return [Case(path.parent.name, tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths]


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def apply(root: Path, edit: dict[str, Any]) -> None:
    """One edit: of files as a whole, or of the bytes of one."""
    path = root / edit["file"]
    if "rename" in edit:
        path.rename(root / edit["rename"])
    elif "copy" in edit:
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, root / edit["copy"])
    elif "make" in edit:
        (root / edit["make"]).mkdir()
    elif edit.get("delete"):
        path.unlink()
    elif "content" in edit:
        path.write_text(edit["content"], encoding="utf-8", newline="")
    else:
        path.write_bytes(edited(path.read_bytes(), edit))


def edited(data: bytes, edit: dict[str, Any]) -> bytes:
    """Return the bytes of a file after an edit."""
    if edit.get("inside"):
        return edited_inside(data, edit)
    changed = bytearray(data)
    change(changed, edit)
    for what in edit.get("fix", []):
        set_right(changed, what, edit.get("entry", 0))
    return bytes(changed)


def edited_inside(data: bytes, edit: dict[str, Any]) -> bytes:
    """Return the bytes after an edit of what a gzip entry holds."""
    changed = bytearray(data)
    number = edit.get("wrapper", 0)
    start, end = entry_bounds(data, number)
    packed = start + payload_start(data[start:end])
    inner = edited(gzip.decompress(data[packed:end]), {**edit, "inside": False})
    changed[packed:end] = gzip.compress(inner, mtime=0)
    growth = len(changed) - len(data)
    if changed[start + 16] != 2:  # a message states the length of its value, too
        struct.pack_into(">i", changed, packed - 4, end + growth - packed)
    set_size(changed, start, end + growth)
    set_right(changed, "crc", number)
    return bytes(changed)


def change(data: bytearray, edit: dict[str, Any]) -> None:
    """Make the edit itself, without setting anything right."""
    at = edit.get("at", len(data))
    at += len(data) if at < 0 else 0
    if "field" in edit:
        set_field(data, edit.get("entry", 0), edit["field"], edit["value"])
    elif "replace" in edit:
        old, new = (text.encode() for text in edit["replace"])
        assert data.count(old) == 1, edit
        data[:] = data.replace(old, new)
    elif "compress" in edit:
        compress(data, edit.get("entry", 0))
    elif "remove" in edit:
        del data[at : at + edit["remove"]]
    elif "cut" in edit:
        del data[len(data) - edit["cut"] :]
    elif "hex" in edit:
        new_bytes = bytes.fromhex(edit["hex"])
        data[at : at + len(new_bytes)] = new_bytes
    else:
        added = bytes(edit["zeros"]) if "zeros" in edit else bytes.fromhex(edit.get("insert", edit.get("append")))
        data[at:at] = added


def entry_bounds(data: bytes | bytearray, entry: int) -> tuple[int, int]:
    """Return where an entry starts and ends; the last one runs to the end, because its size may be wrong."""
    starts = [0]
    while (end := starts[-1] + 12 + struct.unpack_from(">i", data, starts[-1] + 8)[0]) < len(data) - 17:
        starts.append(end)
        if len(starts) > entry + 1:
            break
    return (starts[entry], starts[entry + 1]) if len(starts) > entry + 1 else (starts[entry], len(data))


def set_field(data: bytearray, entry: int, field: str, value: int) -> None:
    start, _ = entry_bounds(data, entry)
    position, layout = (BATCH_FIELDS if data[start + 16] == 2 else MESSAGE_FIELDS)[field]
    struct.pack_into(layout, data, start + position, value)


def set_size(data: bytearray, start: int, end: int) -> None:
    struct.pack_into(">i", data, start + 8, end - start - 12)


def set_right(data: bytearray, what: str, entry: int) -> None:
    """Recompute the size or the checksum of an entry, or the checksum of a snapshot."""
    if what == "snapshot":
        struct.pack_into(">I", data, 2, google_crc32c.value(bytes(data[6:])))
        return
    start, end = entry_bounds(data, entry)
    if what == "size":
        set_size(data, start, end)
    elif data[start + 16] == 2:
        struct.pack_into(">I", data, start + 17, google_crc32c.value(bytes(data[start + 21 : end])))
    else:
        struct.pack_into(">I", data, start + 12, zlib.crc32(data[start + 16 : end]))


def payload_start(entry: bytes) -> int:
    """Return where the records of a batch, or the value of a message, start."""
    magic = entry[16]
    if magic == 2:
        return RECORDS_START
    key_length = 18 + 8 * magic
    (size,) = struct.unpack_from(">i", entry, key_length)
    return key_length + 8 + max(int(size), 0)


def compress(data: bytearray, entry: int) -> None:
    start, end = entry_bounds(data, entry)
    records = gzip.compress(bytes(data[start + RECORDS_START : end]), mtime=0)
    data[start + RECORDS_START : end] = records
    data[start + 22] |= 1
    set_size(data, start, start + RECORDS_START + len(records))
    set_right(data, "crc", entry)
