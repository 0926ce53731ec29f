"""Two things that numba has no public interface for; with a version that is not known here, kernels do without.

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
"""Of numba, whose classes are as they are used here. The extra ``fast`` asks for it."""
STAMP: Final = "_source_stamp"


class KeptKernel(FunctionCache):  # type: ignore[misc] # numba has no types
    """A kernel's machine code on disk, which is loaded without the tables of the compiler."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these types; None where there is none, and then numba compiles it."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def load_quickly(dispatcher: Any, function: Callable[..., Any], stamp: tuple[float, int]) -> None:
    """Let the kept code of a kernel be loaded so, and be current as long as a stamp does not change.

    Does nothing with a version of numba that is not known.

    Args:
        dispatcher: of the kernel, which keeps its code by numba's own means.
        function: that the kernel is made from.
        stamp: latest change and total size of all that it is made from.
    """
    if numba.version_info.short != KNOWN_VERSION:
        return
    kept = KeptKernel(function)
    for holder in (kept, kept._cache_file):  # noqa: SLF001 - see the module
        setattr(holder, STAMP, stamp)
    dispatcher._cache = kept  # noqa: SLF001
