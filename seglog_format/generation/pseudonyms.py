"""Replacements of keys, values, names, ids and times, for a directory that is fit to share.

The replacement has the size of the original, and the same original always gets the same one. A key that is drawn for
each run, and kept nowhere, decides it: without the key, a guessed original cannot be compared with its replacement.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from itertools import product
from typing import TYPE_CHECKING, Final

from seglog_format.names import is_reserved_id
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import Buffer

KEY_SIZE: Final = 32
BLOCK_SIZE: Final = 32
"""Bytes that are drawn for a replacement; a longer one repeats them, so compression does not enlarge it much."""
SHUFFLED_SIZE: Final = 16
"""Maximum size of bytes that are shuffled: then different ones always get different replacements."""
ROUNDS: Final = 6
LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
MORE_LETTERS: Final = LETTERS + b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
"""For names so short that others have all that consist of letters."""
DAY_MS: Final = 86_400_000
LONGEST_SHIFT_DAYS: Final = 365
EARLIEST_MS: Final = 100_000_000_000
"""Times before 1973 are no times of a clock; they stay unchanged."""
PLAUSIBLE: Final = 1 << 48
"""Offsets, producer ids and times in milliseconds are below it; 8 bytes of text, read as a number, are above."""
UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")

PUBLIC_NAMES: Final = frozenset({*COORDINATOR_TOPICS, *FRAMED_TOPICS, "consumer", "metadata.version", "kraft.version"})
"""Names of Kafka itself, which stay: readers depend on them."""


class Pseudonyms:
    """The replacements of one run.

    Args:
        key: decides all replacements; None for a random one.

    Attributes:
        shift_ms: by which all times become earlier: a whole number of milliseconds from one day to one year.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(KEY_SIZE) if key is None else key
        span = (LONGEST_SHIFT_DAYS - 1) * DAY_MS
        self.shift_ms = DAY_MS + int.from_bytes(self._digest(b"time", b""), "big") % span
        self._names: dict[str, str] = {name: name for name in PUBLIC_NAMES}
        self._used = set(PUBLIC_NAMES)

    def _digest(self, use: bytes, data: Buffer) -> bytes:
        return hashlib.blake2b(data, digest_size=BLOCK_SIZE, key=self._key, person=use).digest()

    def noise(self, data: Buffer) -> bytes:
        """Replace bytes by as many others; equal bytes get equal replacements, different bytes different ones."""
        size = len(data)
        if size <= SHUFFLED_SIZE:
            return self._shuffled(bytes(data))
        block = self._digest(b"bytes", data)
        return (block * (size // BLOCK_SIZE + 1))[:size]

    def fresh(self, size: int) -> bytes:
        """Return random bytes, for bytes that no reader can read anyway."""
        return secrets.token_bytes(size)

    def _shuffled(self, data: bytes) -> bytes:
        """Replace few bytes by a network of rounds, which can be inverted: so no two get the same replacement."""
        bits = 8 * len(data)
        low_bits = bits // 2
        number = int.from_bytes(data, "big")
        high, low = number >> low_bits, number & (1 << low_bits) - 1
        for turn in range(ROUNDS):
            mixed = self._digest(
                b"%d/%d/%d" % (bits, turn % 2, turn), (low if turn % 2 == 0 else high).to_bytes(9, "big")
            )
            if turn % 2 == 0:
                high ^= int.from_bytes(mixed, "big") & (1 << bits - low_bits) - 1
            else:
                low ^= int.from_bytes(mixed, "big") & (1 << low_bits) - 1
        return (high << low_bits | low).to_bytes(len(data), "big")

    def name(self, text: str) -> str:
        """Replace a name by letters of the same size in UTF-8; different names get different ones, if there are any."""
        found = self._names.get(text)
        if found is None:
            size = len(text.encode(errors="surrogatepass"))
            turns = product((LETTERS, MORE_LETTERS), range(1000))
            tries = (self._drawn(letters, text, size, turn) for letters, turn in turns)
            found = next((name for name in tries if name not in self._used), self._drawn(LETTERS, text, size, 0))
            self._names[text] = found
            self._used.add(found)
        return found

    def _drawn(self, letters: bytes, text: str, size: int, turn: int) -> str:
        digest = hashlib.shake_128(self._digest(b"name%d" % turn, text.encode(errors="surrogatepass"))).digest(size)
        return bytes(letters[byte % len(letters)] for byte in digest).decode()

    def uuid(self, text: str) -> str:
        """Replace an id in URL-safe Base64; the replacement does not begin with a dash, as Kafka's ids do not."""
        data = base64.urlsafe_b64decode(text + "==")
        if is_reserved_id(data):
            return text
        while True:
            data = self.noise(data)
            found = base64.urlsafe_b64encode(data).decode().rstrip("=")
            if not found.startswith("-") and not is_reserved_id(data):
                return found

    def identifier(self, text: str) -> str:
        """Replace an id, or another name in its place."""
        try:
            return self.uuid(text) if UUID_TEXT.fullmatch(text) else self.name(text)
        except binascii.Error:
            return self.name(text)

    def time(self, timestamp_ms: int) -> int:
        """Move a time; one before 1973 stays."""
        return timestamp_ms - self.shift_ms if timestamp_ms >= EARLIEST_MS else timestamp_ms
