"""Arrow IPC files, also known as Feather."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.tables.sink import Sink

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile

CODEC: Final = "zstd"


class ArrowFile:
    """An Arrow IPC file that is being written; each group of rows becomes a record batch."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        self._sink = Sink(file)
        options = pa.ipc.IpcWriteOptions(compression=CODEC)
        self._writer: Any = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), schema, options=options)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._sink.tell()

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows.combine_chunks())

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._sink.flush_all()

    def abandon(self) -> None:
        """Write nothing more."""
        self._sink.is_abandoned = True
        with suppress(OSError, ValueError):
            self._writer.close()
