"""Load compiled kernels faster than numba does; without a public interface, this works with known versions only.

numba fills the tables of its compiler before it loads machine code from disk, though compiled code does not need them:
that is 0.3 of the 0.95 seconds of processor time that the first scan of a process takes (`docs/explanation`, two
engines). It also tests only one source file for whether stored code is current, while a kernel holds the code of all
its helpers.
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
    """Cache of a kernel's machine code on disk, which loads it without the tables of the compiler."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code for these types; None if there is none, so numba compiles it."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def load_cached(dispatcher: Any, function: Callable[..., Any], stamp: tuple[float, int]) -> None:
    """Make a kernel load its stored code in this way, as long as its stamp does not change.

    With an unknown version of numba, this function does nothing.

    Args:
        dispatcher: of the kernel, with the cache that numba made.
        function: from which the kernel is compiled.
        stamp: latest change and total size of all sources of the kernel.
    """
    if numba.version_info.short != KNOWN_VERSION:
        return
    kept = KeptKernel(function)
    for holder in (kept, kept._cache_file):  # noqa: SLF001 - see the module
        setattr(holder, STAMP, stamp)
    dispatcher._cache = kept  # noqa: SLF001
