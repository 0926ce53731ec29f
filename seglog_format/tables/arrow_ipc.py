"""Arrow IPC files, also known as Feather."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from seglog_format.tables.sink import ArrowWritten

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile

CODEC: Final = "zstd"


class ArrowFile(ArrowWritten):
    """An Arrow IPC file, open for writing; each group of rows becomes a record batch."""

    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        super().__init__(file)
        options = pa.ipc.IpcWriteOptions(compression=CODEC)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), schema, options=options)

    def write(self, rows: pa.Table) -> None:
        """Write rows."""
        self._writer.write_table(rows.combine_chunks())
