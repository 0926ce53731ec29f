"""Load compiled kernels faster than numba does by itself; it has no public interface for that, so only known versions.

numba fills the tables of its compiler before it takes machine code from disk, which code that is ready does not need:
that is 0.3 of the 0.95 seconds of processor time that the first scan of a process takes (`docs/explanation`, two
engines). And it looks at one source file to see whether kept code is still current, while a kernel also holds the code
of all its helpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN_VERSION: Final = (0, 68)
"""The version of numba whose classes this module uses, required by the extra ``fast``."""
STAMP: Final = "_source_stamp"


class KeptKernel(FunctionCache):  # type: ignore[misc] # numba has no types
    """A kernel's machine code on disk, which is loaded without the tables of the compiler."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code for these types; None if there is none, so numba compiles it."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def load_cached(dispatcher: Any, function: Callable[..., Any], stamp: tuple[float, int]) -> None:
    """Load the stored code of a kernel in this way, and keep it current as long as a stamp does not change.

    Does nothing with a version of numba that is not known.

    Args:
        dispatcher: of the kernel, whose code numba stores.
        function: that the kernel is made from.
        stamp: latest change and total size of all that it is made from.
    """
    if numba.version_info.short != KNOWN_VERSION:
        return
    kept = KeptKernel(function)
    for holder in (kept, kept._cache_file):  # noqa: SLF001 - see the module
        setattr(holder, STAMP, stamp)
    dispatcher._cache = kept  # noqa: SLF001
