"""Names of a module whose defining modules are imported at their first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LazyNames:
    """Names that a module offers; the modules that define them are imported at first use.

    Args:
        owner: name of the module that offers them.
        homes: the names that each module defines, by the module's name below the package.
    """

    def __init__(self, owner: str, homes: Mapping[str, Iterable[str]]) -> None:
        self._owner = owner
        self._homes = {name: home for home, names in homes.items() for name in names}

    def load(self, name: str) -> object:
        """Import the module that defines a name.

        Raises:
            AttributeError: the owner offers no such name.
        """
        home = self._homes.get(name)
        if home is None:
            msg = f"module {self._owner!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return getattr(import_module(f"seglog_format.{home}"), name)
