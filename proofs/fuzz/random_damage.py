"""Random damage to the bytes of a `.log` file, repeatable by its seed: typical of crashes, disks and software."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from proofs.entries import sealed
from seglog_format import walk
from seglog_format.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Damage = Callable[[random.Random, list[bytes]], None]

PREFIX_SIZE: Final = 12
SIZE_POSITION, EPOCH_POSITION, MAGIC_POSITION, ATTRIBUTES_POSITION = 8, 12, 16, 21
LAST_DELTA_POSITION, BASE_TIME_POSITION, MAX_TIME_POSITION = 23, 27, 35
PRODUCER_POSITION, PRODUCER_EPOCH_POSITION, SEQUENCE_POSITION, COUNT_POSITION = 43, 51, 53, 57
FIELDS: Final = {
    ATTRIBUTES_POSITION: 2,
    LAST_DELTA_POSITION: 4,
    BASE_TIME_POSITION: 8,
    MAX_TIME_POSITION: 8,
    PRODUCER_POSITION: 8,
    PRODUCER_EPOCH_POSITION: 2,
    SEQUENCE_POSITION: 4,
    COUNT_POSITION: 4,
}
"""Position and size of the fields of a record batch that its checksum covers."""
MIN_BATCH_SIZE: Final = 61
MAGIC_2: Final = 2


def flip(dice: random.Random, entries: list[bytes]) -> None:
    """Flip one bit anywhere, without a change of the checksum."""
    number = dice.randrange(len(entries))
    changed = bytearray(entries[number])
    changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    entries[number] = bytes(changed)


def flip_and_seal(dice: random.Random, entries: list[bytes]) -> None:
    """Flip one bit after the prefix, and correct the checksum."""
    number = dice.randrange(len(entries))
    changed = bytearray(entries[number])
    changed[dice.randrange(MAGIC_POSITION + 1, len(changed))] ^= 1 << dice.randrange(8)
    entries[number] = sealed(changed)


def set_field(dice: random.Random, entries: list[bytes]) -> None:
    """Set a field of a record batch to a wrong number, and correct the checksum."""
    number = dice.randrange(len(entries))
    changed = bytearray(entries[number])
    if len(changed) < MIN_BATCH_SIZE or changed[MAGIC_POSITION] != MAGIC_2:
        return flip_and_seal(dice, entries)
    position, size = dice.choice(tuple(FIELDS.items()))
    limit = 1 << 8 * size - 1
    value = dice.choice((-1, 0, 1, 5, 127, limit - 1, -limit, dice.randrange(-limit, limit)))
    changed[position : position + size] = value.to_bytes(size, "big", signed=True)
    entries[number] = sealed(changed)
    return None


def set_offset(dice: random.Random, entries: list[bytes]) -> None:
    """Change the offset of an entry by a little or a lot; no checksum covers it."""
    number = dice.randrange(len(entries))
    entry = entries[number]
    old = int.from_bytes(entry[:8], "big", signed=True)
    step = dice.choice((-(10**6), -100, -10, -2, -1, 1, 2, 10, 100, 10**6, 2**31, 2**33))
    offset = dice.choice((old + step, old + step, old + step, -1, 0, 2**63 - 1, -(2**63)))
    entries[number] = max(min(offset, 2**63 - 1), -(2**63)).to_bytes(8, "big", signed=True) + entry[8:]


def set_magic(dice: random.Random, entries: list[bytes]) -> None:
    """Set another magic; the checksum covers it only in magic 0 and 1."""
    number = dice.randrange(len(entries))
    changed = bytearray(entries[number])
    changed[MAGIC_POSITION] = dice.choice((0, 1, 2, 3, 4, 127, 128, 255))
    entries[number] = bytes(changed)


def set_size(dice: random.Random, entries: list[bytes]) -> None:
    """Set another size, which sends readers to a wrong position for the next entry."""
    number = dice.randrange(len(entries))
    entry = entries[number]
    old = len(entry) - PREFIX_SIZE
    size = dice.choice((0, 13, 14, 48, 49, old - 1, old + 1, -1, 2**31 - 1, dice.randrange(2000)))
    entries[number] = entry[:SIZE_POSITION] + size.to_bytes(4, "big", signed=True) + entry[EPOCH_POSITION:]


def set_codec(dice: random.Random, entries: list[bytes]) -> None:
    """Set another codec, defined or not, and correct the checksum."""
    number = dice.randrange(len(entries))
    changed = bytearray(entries[number])
    position = ATTRIBUTES_POSITION + 1 if changed[MAGIC_POSITION] == MAGIC_2 else MAGIC_POSITION + 1
    changed[position] = changed[position] & ~7 | dice.randrange(8)
    entries[number] = sealed(changed)


def swap(dice: random.Random, entries: list[bytes]) -> None:
    """Swap two entries."""
    one, other = dice.randrange(len(entries)), dice.randrange(len(entries))
    entries[one], entries[other] = entries[other], entries[one]


def repeat(dice: random.Random, entries: list[bytes]) -> None:
    """Repeat an entry."""
    number = dice.randrange(len(entries))
    entries.insert(dice.randrange(number, len(entries)) + 1, entries[number])


def drop(dice: random.Random, entries: list[bytes]) -> None:
    """Remove an entry."""
    del entries[dice.randrange(len(entries))]


def cut_short(dice: random.Random, entries: list[bytes]) -> None:
    """Cut the file."""
    number = dice.randrange(len(entries))
    entries[number:] = [entries[number][: dice.randrange(len(entries[number]))]]


def tear(dice: random.Random, entries: list[bytes]) -> None:
    """Remove bytes in the middle."""
    number = dice.randrange(len(entries))
    entry = entries[number]
    start = dice.randrange(len(entry))
    entries[number] = entry[:start] + entry[start + dice.randrange(1, 50) :]


def zero_tail(dice: random.Random, entries: list[bytes]) -> None:
    """Append zeros."""
    entries.append(bytes(dice.choice((1, 11, 12, 16, 17, 18, 61, 512, 4096))))


def zero_page(dice: random.Random, entries: list[bytes]) -> None:
    """Zero a run of bytes, as if they were never written."""
    number = dice.randrange(len(entries))
    entry = entries[number]
    start = dice.randrange(len(entry))
    size = min(dice.randrange(1, 200), len(entry) - start)
    entries[number] = entry[:start] + bytes(size) + entry[start + size :]


def junk_tail(dice: random.Random, entries: list[bytes]) -> None:
    """Append random bytes."""
    entries.append(dice.randbytes(dice.randrange(1, 100)))


DAMAGES: Final[Sequence[Damage]] = (
    flip,
    flip_and_seal,
    set_field,
    set_field,
    set_offset,
    set_magic,
    set_size,
    set_codec,
    swap,
    repeat,
    drop,
    cut_short,
    tear,
    zero_tail,
    zero_page,
    junk_tail,
)


def damaged(seed: int, data: bytes) -> tuple[bytes, list[str]]:
    """Damage the bytes of a log.

    Args:
        seed: seed of all decisions.
        data: whole entries.

    Returns:
        The damaged bytes, and the names of the changes in order.
    """
    dice = random.Random(f"damage {seed}")
    entries, names = _entries(data), []
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        damage = dice.choice(DAMAGES)
        if any(entries):
            entries = [entry for entry in entries if len(entry) > MAGIC_POSITION + 1] or entries
            _do(damage, dice, entries)
            names.append(damage.__name__)
    return b"".join(entries), names


def _do(damage: Damage, dice: random.Random, entries: list[bytes]) -> None:
    """Damage a log if it still has entries."""
    try:
        damage(dice, entries)
    except (IndexError, ValueError):
        junk_tail(dice, entries)


def _entries(data: bytes) -> list[bytes]:
    found = walk(data)
    try:
        return [bytes(frame.data) for frame in found]
    except FormatError:
        return [data]
