"""Pieces of a run, stored as soon as they are measured: a run can be resumed, and a failure affects one piece only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class Pieces:
    """The pieces that were measured so far.

    Args:
        path: file that stores them.
        conditions: conditions of the run; pieces of other conditions are not used.
        say: called with a message about a failure, or about reused results.
        resume: whether to use stored pieces.

    Attributes:
        failed: reasons why pieces could not be measured, by name.
    """

    def __init__(
        self, path: Path, conditions: Mapping[str, object], say: Callable[[str], None], *, resume: bool = False
    ) -> None:
        self.failed: dict[str, str] = {}
        self._path = path
        self._conditions = dict(conditions)
        self._say = say
        self._kept: dict[str, Any] = self._read() if resume else {}
        if self._kept:
            say(f"going on: {len(self._kept)} pieces are measured already")

    def _read(self) -> dict[str, Any]:
        try:
            reported = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        pieces: dict[str, Any] = reported["pieces"] if reported["conditions"] == self._conditions else {}
        return pieces

    def measured(self, name: str, measure: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is measured
        """Return a piece: the stored one, or a new one; None if its measurement fails.

        Args:
            name: name of the piece.
            measure: returns a value that JSON can hold.
        """
        if name not in self._kept:
            try:
                self._kept[name] = measure()
            except Exception as error:  # noqa: BLE001 - the others are still wanted
                self.failed[name] = f"{type(error).__name__}: {error}"
                self._say(f"  {name}: {self.failed[name]}")
                return None
            self._path.write_text(json.dumps({"conditions": self._conditions, "pieces": self._kept}), encoding="utf-8")
        return self._kept[name]
