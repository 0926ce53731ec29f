"""Known differences, each with its explanation; any other difference is a failure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from proofs.dissecting.entry import Difference, Entry

BEFORE_THE_ATTRIBUTES: Final = frozenset({"offset", "size", "crc", "magic", "codec"})


def is_late(theirs: Entry) -> bool:
    """Return whether the dissector has skipped the attributes of this message twice, and then read on."""
    return bool(theirs.circumstances.get("is_late"))


def attributes_of_two_bytes(difference: Difference) -> bool:
    """Wireshark 4.0 skips the attributes of a message of magic 0 or 1 twice, and reads all that follows a byte late."""
    _, theirs = difference.entries
    return is_late(theirs) and difference.name not in BEFORE_THE_ATTRIBUTES


def text_of_batch_times(difference: Difference) -> bool:
    """Wireshark 4.0 shows the times of a batch as seconds and nanoseconds of four bytes each."""
    if not difference.name.endswith("_timestamp_text"):
        return False
    seconds, nanoseconds = struct.unpack(">ii", struct.pack(">q", difference.ours))
    shown = None if nanoseconds < 0 else seconds * 1000 + nanoseconds // 1_000_000
    return bool(difference.theirs == shown)


def append_time(difference: Difference) -> bool:
    """Return whether a record has the time of its batch, and Wireshark shows the time that the producer stored."""
    ours, _ = difference.entries
    return difference.name == "timestamp_ms" and difference.theirs == ours.circumstances.get("stored_timestamp_ms")


def codec(difference: Difference) -> bool:
    """Wireshark says that it cannot decompress the records."""
    _, theirs = difference.entries
    return difference.name == "items" and bool(theirs.circumstances.get("is_undecoded"))


KNOWN: Final[tuple[Callable[[Difference], bool], ...]] = (
    attributes_of_two_bytes,
    text_of_batch_times,
    append_time,
    codec,
)


def reason(difference: Difference) -> str | None:
    """Return the name of the explanation of a difference, or None."""
    return next((each.__name__ for each in KNOWN if each(difference)), None)
