"""The storage through which the chosen engine reads: it decides which decoders parse the bytes of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.engine.choice import Engine
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import Buffer, ByteSource
    from seglog_format.storage.log_storage import LogStorage


def storage_for(engine: Engine, storage: LogStorage = LOCAL) -> LogStorage:
    """Return a storage for an engine: for the reference, its files are parsed by the declarations.

    Args:
        engine: the chosen engine.
        storage: the storage that holds the files; it is returned unchanged for any other engine.
    """
    if engine is not Engine.REFERENCE:
        return storage
    from seglog_format.codec.reference.decoders import DeclaredStorage  # noqa: PLC0415 - loads the declarations

    return DeclaredStorage(storage)


def bytes_for(engine: Engine, data: Buffer, path: str = "") -> ByteSource:
    """Return a source of bytes in memory for an engine: for the reference, they are parsed by the declarations.

    Args:
        engine: the chosen engine.
        data: bytes of a log.
        path: file name for errors.
    """
    if engine is not Engine.REFERENCE:
        return MemoryBytes(data, path)
    from seglog_format.codec.reference.decoders import declared  # noqa: PLC0415 - as above

    return declared(data, path)
