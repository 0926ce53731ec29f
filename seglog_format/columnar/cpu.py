"""The instructions of this processor, and the checksum path that they allow."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from seglog_format.columnar.compiled import LIBRARY, config
from seglog_format.columnar.kernel_library import CHECKSUM_FEATURES

ENVIRONMENT: Final = "SEGLOG_CHECKSUM_PATH"
"""Environment variable that forces a path: ``portable``, ``narrow`` or ``wide``."""

PORTABLE: Final = 0
"""Tables; correct on any processor."""
NARROW: Final = 1
"""SSE 4.2 and carry-less products of 128 bits."""
WIDE: Final = 2
"""AVX-512 with carry-less products of 512 bits."""

PATHS: Final = {"portable": PORTABLE, "narrow": NARROW, "wide": WIDE}
NEEDS: Final = {
    PORTABLE: frozenset[str](),
    NARROW: frozenset({"sse4.2", "pclmul"}),
    WIDE: frozenset({"sse4.2", "pclmul", "avx512f", "vpclmulqdq"}),
}


@cache
def features() -> frozenset[str]:
    """Return the features that code may use: those of the library of kernels, of numba's settings, or the processor's.

    A checksum that was not compiled for its path would give 0, and each batch would be left to the fallback decoder.
    """
    if LIBRARY is not None:
        return CHECKSUM_FEATURES[LIBRARY.level]
    if config.CPU_NAME or config.CPU_FEATURES:
        reported = (config.CPU_FEATURES or "").split(",")
        return frozenset(name[1:] for name in reported if name.startswith("+"))
    from llvmlite import binding  # noqa: PLC0415 - comes with numba

    return frozenset(name for name, has in binding.get_host_cpu_features().items() if has)


def supports(path: int) -> bool:
    """Return whether this processor can run a path."""
    return NEEDS[path] <= features()


def checksum_path() -> int:
    """Return the fastest path that this processor supports, or a slower one that was requested."""
    forced = PATHS.get(os.environ.get(ENVIRONMENT, ""), WIDE)
    return max(path for path in NEEDS if path <= forced and supports(path))
