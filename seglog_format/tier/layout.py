"""The protocol of layouts: how a broker's plug-in names objects and encodes their content.

A layout is found by its name among the entry points of the group ``seglog_format.tier_layouts``; two are built in. The
module also has what layouts hand over and need: the files of a stored segment, and the private keys of encrypted ones.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from seglog_format.errors import CorruptIndexError, Location, UsageError
from seglog_format.names import FileKind, printable
from seglog_format.storage.byte_source import MAX_WHOLE_SIZE, Closing, MemoryBytes, open_bytes, refuse_beyond

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from Crypto.PublicKey.RSA import RsaKey

    from seglog_format.model import EpochStart
    from seglog_format.names import ObjectKind
    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.tier.chunked_bytes import ChunkCache
    from seglog_format.tier.segments import RemoteSegmentId


# -- the files of a segment that objects hold, independent of their layout ---------------------------------------------


class MemoryFile(MemoryBytes, Closing):
    """A small file in memory; a `SourceFile`."""

    def expect(self, start: int, end: int | None) -> None:
        """Do nothing: all bytes are in memory."""

    def forget(self) -> None:
        """Do nothing, as `expect`."""

    def release_before(self, position: int) -> None:
        """Do nothing, as `expect`."""

    def close(self) -> None:
        """Do nothing: views stay valid."""


class SmallFile(NamedTuple):
    """A file that is read whole.

    Attributes:
        name: of the object that holds it, for errors.
        size: original size of the file in bytes.
        load: fetches and decodes the file.
    """

    name: str
    size: int
    load: Callable[[], bytes]


class LogFile(NamedTuple):
    """A log in an object.

    Attributes:
        name: of the object.
        size: size of the original log in bytes.
        open: opens the log, without fetching anything.
    """

    name: str
    size: int
    open: Callable[[], SourceFile]


class StoredSegment:
    """The files of a segment; an `OpenedSegment`.

    Attributes:
        facts: description of the segment by its objects.
        kinds: kinds of the stored files.
    """

    def __init__(self, facts: SegmentFacts, log: LogFile | None, others: Mapping[FileKind, SmallFile]) -> None:
        """Create a segment from its files.

        Args:
            facts: description of the segment by its objects.
            log: its log; None if there is no such object.
            others: its other files.
        """
        self.facts = facts
        self._log = log
        self._others = dict(others)
        self.kinds = frozenset(self._others) | ({FileKind.LOG} if log is not None else set())

    def name_of(self, kind: FileKind) -> str:
        """Return the name of the object that holds a file.

        Raises:
            UsageError: there is no such file.
        """
        return self._file(kind).name

    def size(self, kind: FileKind) -> int:
        """Return the original size of a file in bytes.

        Raises:
            UsageError: there is no such file.
        """
        return self._file(kind).size

    def open(self, kind: FileKind) -> SourceFile:
        """Open a file.

        Raises:
            FormatError: an object does not follow its layout.
            UsageError: there is no such file, a decryption key is missing, or the store does not answer.
        """
        file = self._file(kind)
        if isinstance(file, LogFile):
            return file.open()
        refuse_beyond(MAX_WHOLE_SIZE, file.size, file.name)
        return MemoryFile(file.load(), file.name)

    def _file(self, kind: FileKind) -> LogFile | SmallFile:
        file = self._log if kind is FileKind.LOG else self._others.get(kind)
        if file is None:
            msg = (
                f"segment {self.facts.id.segment_id}: there is no object with its {kind.name.lower().replace('_', ' ')}"
            )
            raise UsageError(msg)
        return file


def whole_file(source: SourceFile) -> bytes:
    """Return all bytes of a small file, and close it."""
    with source:
        return bytes(source.view(0, source.size))


# -- private keys that unwrap the data keys of encrypted segments; they come from files or the environment -------------


VARIABLE_PREFIX: Final = "SEGLOG_TIER_KEY_"
"""Prefix of the environment variables that hold private keys in PEM; the key pair id in upper case follows it."""

DATA_KEY_SIZE: Final = 32
MAX_KEY_FILE_SIZE: Final = 2**16
MIN_MODULUS_BITS: Final = 1024


class KeyRing:
    """Private keys by key pair id. A key is read when a segment needs it."""

    def __init__(self, files: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        """Store where the keys are; none is read yet.

        Args:
            files: PEM files of private keys, by key pair id. A key that is not among them is read from the environment
                variable `SEGLOG_TIER_KEY_` and the id, in upper case, with other characters as underscores.
        """
        self._files = dict(files or {})
        self._keys: dict[str, RsaKey] = {}

    def data_key(self, key_id: str, wrapped: bytes, at: Location) -> bytes:
        """Unwrap the data key of a segment: RSA-OAEP with SHA3-512, also in its mask.

        Args:
            key_id: of the key pair.
            wrapped: the wrapped data key from the manifest.
            at: location of the manifest.

        Raises:
            UsageError: the private key is missing, is not an RSA key, or the packages for it are not installed.
            CorruptIndexError: the private key does not unwrap a data key (SEG-TIR-009).
        """
        try:
            from Crypto.Cipher import PKCS1_OAEP  # noqa: PLC0415 - only encrypted segments need it
            from Crypto.Hash import SHA3_512  # noqa: PLC0415 - as above
        except ImportError as error:
            msg = "encrypted segments need the extra tier: pip install 'seglog-format[tier]'"
            raise UsageError(msg) from error
        key = self._key(key_id)
        try:
            # This implementation uses blinding and reports all errors alike: neither timing nor errors leak the key.
            unwrapped: bytes = PKCS1_OAEP.new(key, hashAlgo=SHA3_512).decrypt(wrapped)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            unwrapped = b""
        if len(unwrapped) != DATA_KEY_SIZE:
            shown = printable(key_id)
            expected = f"a data key of {DATA_KEY_SIZE} bytes that the private key {shown} unwraps"
            raise CorruptIndexError(
                at.at("encryption.dataKey"), "SEG-TIR-009", expected=expected, found="something else"
            )
        return unwrapped

    def _key(self, key_id: str) -> RsaKey:
        if key_id not in self._keys:
            self._keys[key_id] = self._read(key_id)
        return self._keys[key_id]

    def _read(self, key_id: str) -> RsaKey:
        shown, variable = printable(key_id), variable_of(key_id)
        if key_id in self._files:
            with open_bytes(self._files[key_id], max_size=MAX_KEY_FILE_SIZE) as file:
                pem, origin = bytes(file.view(0, file.size)), printable(str(self._files[key_id]))
        elif variable in os.environ:
            pem, origin = os.environ[variable].encode(), variable
        else:
            msg = f"no private key {shown}: name its file by --key {shown}=FILE, or put it into {variable}"
            raise UsageError(msg)
        key = _private_key(pem)
        if key is None or key.size_in_bits() < MIN_MODULUS_BITS:
            msg = f"{origin}: not a private key of RSA in PEM, without a passphrase"
            raise UsageError(msg)
        return key

    def __repr__(self) -> str:
        return f"KeyRing({sorted(self._files)})"


def _private_key(pem: bytes) -> RsaKey | None:
    """Return the private key in a PEM text; None if there is none.

    Its numbers are not tested for primality, which would take most of the time: a wrong key fails to unwrap.
    """
    from Crypto.PublicKey import RSA  # noqa: PLC0415 - as above
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above

    try:
        key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, RSAPrivateKey):
        return None
    numbers = key.private_numbers()
    public = numbers.public_numbers
    parts = (public.n, public.e, numbers.d, numbers.p, numbers.q)
    return RSA.construct(parts, consistency_check=False)


def variable_of(key_id: str) -> str:
    """Return the name of the environment variable that may hold a key."""
    return VARIABLE_PREFIX + re.sub(r"[^A-Z0-9]", "_", key_id.upper())


# -- the protocol of layouts: how a broker's plug-in names objects and encodes their content ---------------------------


class StoredObject(NamedTuple):
    """An object of a store that a layout recognizes.

    Attributes:
        path: relative to the root of the store, with parts separated by ``/``.
        id: of the segment that the object belongs to.
        start_offset: of that segment.
        kind: of the content.
    """

    path: str
    id: RemoteSegmentId
    start_offset: int
    kind: ObjectKind


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The description of a segment by its objects, without a record of `__remote_log_metadata`.

    Attributes:
        id: from the names of the objects.
        start_offset: from the names of the objects.
        end_offset: last offset, inclusive; None if only the log shows it.
        epochs: leader epochs with their first offset in the segment, in order; empty if no object has them.
        size: of the original log in bytes; None if there is no log and no manifest.
        noted_ms: recorded time at which the plug-in began to write the objects; None if there is none.
    """

    id: RemoteSegmentId
    start_offset: int
    end_offset: int | None = None
    epochs: tuple[EpochStart, ...] = ()
    size: int | None = None
    noted_ms: int | None = None


class ObjectReader(Protocol):
    """The interface by which layouts read the objects of a store: in ranges, unless an object is small."""

    def name_of(self, path: str) -> str:
        """Return the name of an object that errors show."""

    def size(self, path: str) -> int:
        """Return the size of an object in bytes.

        Raises:
            UsageError: there is no such object, or the store does not answer.
        """

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of an object; the whole range must exist.

        Raises:
            UsageError: there is no such object, the store does not answer, or the object is shorter.
        """


class OpenedSegment(Protocol):
    """The files of a segment, as they were before the upload. Nothing is fetched until it is read."""

    @property
    def facts(self) -> SegmentFacts:
        """The description of the segment by its objects."""

    @property
    def kinds(self) -> frozenset[FileKind]:
        """Kinds of the stored files; leader epochs and producer snapshot are those at the segment's end."""

    def name_of(self, kind: FileKind) -> str:
        """Return the name of the object that holds a file, for errors."""

    def size(self, kind: FileKind) -> int:
        """Return the original size of a file in bytes."""

    def open(self, kind: FileKind) -> SourceFile:
        """Open a file of `kinds`.

        Raises:
            FormatError: the objects do not follow the layout.
            UsageError: a decryption key is missing, or the store does not answer.
        """


class TierLayout(Protocol):
    """The way in which a plug-in names objects and encodes their content."""

    @property
    def name(self) -> str:
        """The name by which users choose the layout."""

    def parse(self, path: str) -> StoredObject | None:
        """Recognize an object by its path; return None if it does not belong to this layout.

        Args:
            path: below the root of the store.
        """

    def path_of(self, segment: RemoteSegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
        """Return the path of an object below the root of the store.

        Args:
            segment: the segment that the object belongs to.
            start_offset: of the segment.
            kind: of the content.
            prefix: text that the plug-in puts before the names of objects.
        """

    def required(self, *, has_aborted: bool) -> frozenset[ObjectKind]:
        """Return the kinds of objects that every finished segment has.

        Args:
            has_aborted: whether it is known that the segment has aborted transactions.
        """

    def open(
        self, objects: Mapping[ObjectKind, StoredObject], reader: ObjectReader, keys: KeyRing, cache: ChunkCache
    ) -> OpenedSegment:
        """Open a segment; read its manifest, if it has one.

        Args:
            objects: of the segment, by kind; at least one.
            reader: of the store.
            keys: for encrypted segments.
            cache: of chunks, shared by the logs of a store.

        Raises:
            FormatError: an object is missing, or does not follow the layout.
            UsageError: the store does not answer.
        """
