"""Decryption and decompression of stored bytes (chapter 47). This module reads no objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.compression import decompress
from seglog_format.codec.compression.zstd import decompress_whole
from seglog_format.errors import CorruptRecordError, FormatError, RefusedError, UsageError
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from seglog_format.errors import Location


IV_SIZE: Final = 12
TAG_SIZE: Final = 16


class PieceCipher:
    """Decrypts the pieces of one segment by AES-GCM; a piece is IV, encrypted bytes and tag."""

    def __init__(self, data_key: bytes, aad: bytes) -> None:
        """Create a cipher; the key is kept in memory.

        Args:
            data_key: 32 bytes.
            aad: additional data that each piece is authenticated with.

        Raises:
            UsageError: the package for decryption is not installed.
        """
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only encrypted segments need it
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above
        except ImportError as error:
            msg = "encrypted segments need the extra tier: pip install seglog-format[tier]"
            raise UsageError(msg) from error
        self._cipher, self._wrong_tag, self._aad = AESGCM(data_key), InvalidTag, aad

    def decrypt(self, piece: bytes | memoryview, at: Location) -> bytes:
        """Return the decrypted bytes of a piece.

        Raises:
            CorruptRecordError: the piece is too short, or its tag is wrong (SEG-TIR-008).
        """
        if len(piece) < IV_SIZE + TAG_SIZE:
            raise CorruptRecordError(
                at, "SEG-TIR-008", expected=f"{IV_SIZE} bytes of IV, {TAG_SIZE} of tag", found=len(piece)
            )
        view = memoryview(piece)
        try:
            return self._cipher.decrypt(view[:IV_SIZE], view[IV_SIZE:], self._aad)
        except self._wrong_tag:
            expected = "bytes that the data key of this segment authenticates"
            raise CorruptRecordError(at, "SEG-TIR-008", expected=expected, found="others") from None

    def __repr__(self) -> str:
        return "PieceCipher()"


def decompressed_chunk(data: bytes | memoryview, size: int, at: Location) -> bytes:
    """Decompress a chunk of a log.

    Args:
        data: one zstd frame.
        size: number of bytes that it has to decompress to.
        at: location of the chunk in its object.

    Raises:
        CorruptRecordError: the data is no zstd frame, or decompresses to another size (SEG-TIR-007).
    """
    whole = decompress_whole(data, size)
    if whole is not None:
        return whole
    try:
        found = decompress(CompressionCodec.ZSTD, data, magic=2, at=at, limit=size)
    except RefusedError:
        raise CorruptRecordError(at, "SEG-TIR-007", expected=f"{size} bytes of a log", found="more") from None
    except FormatError as error:
        raise CorruptRecordError(
            at, "SEG-TIR-007", *error.requirements, expected=error.expected, found=error.found
        ) from None
    if len(found) != size:
        raise CorruptRecordError(at, "SEG-TIR-007", expected=f"{size} bytes of a log", found=len(found))
    return found
