"""Names of this package for proofs, which run kernels on memory that ends at unreadable pages, and check bounds.

All other code calls this package through `seglog_format.engine`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seglog_format.columnar import plan as names
from seglog_format.columnar.chunks import Decoders, decompress_ahead, no_chunks
from seglog_format.columnar.compiled import LIBRARY, checksum_path, helper
from seglog_format.columnar.kernel_build import kernel_modules
from seglog_format.columnar.memory import SLACK, load_64, region

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes

__all__ = ["SLACK", "compiled_kernels", "decompress_first", "helper", "load_64", "region"]

DECODERS: Final = Decoders()


def compiled_kernels() -> list[Any]:
    """Load every module with kernels, and return the kernels that this process compiles: none with a library."""
    for module in kernel_modules():
        import_module(f"{__package__}.{module}")
    return [] if LIBRARY else list(import_module(f"{__package__}.jit").KERNELS)


def decompress_first(log: Bytes, arena: Bytes, *, used: int, limit: int) -> list[int] | None:
    """Decompress the first entry of a log as the kernels for checks do.

    Args:
        log: starts with the entry.
        arena: receives the content, and has `SLACK` additional bytes.
        used: number of bytes of the arena that are in use.
        limit: bytes that the entry may decompress to.

    Returns:
        Position of the entry, start and end of its content in the arena; None if the fallback decoder has to read it.
    """
    plan, state = np.zeros(names.PLAN_SIZE, np.int64), np.zeros(names.STATE_SIZE, np.int64)
    chunks = no_chunks()
    plan[names.LIMIT], plan[names.MAX_ROWS], state[names.ARENA_USED] = limit, 1, used
    plan[names.CHECKSUM_PATH], plan[names.DECODERS :] = checksum_path(), DECODERS.slots
    decompress_ahead(log, arena, plan, state, chunks)
    found: list[int] = chunks[: names.CHUNK_FIELDS].tolist()
    return found if state[names.CHUNKS] else None
