"""The comparison of the profiles with file systems: programs are known by their history, and a wrong state is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from helpers.walking import each_of

from proofs.crash_disks import asked_about

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proofs.crash_disks import Device

PROGRAMS = range(1, 30)


class Directory:
    """A directory that loses nothing, or shows what was never written."""

    def __init__(self, root: Path, more: dict[str, bytes]) -> None:
        self._root, self._more = root, more

    def after(self, work: Callable[[Path], object]) -> dict[str, bytes]:
        """Return the files after some work."""
        self._root.mkdir()
        work(self._root)
        return {path.name: path.read_bytes() for path in self._root.iterdir()} | self._more


@each_of(("more", "verdict"), [({}, "whole"), ({"f0": b"x"}, "illegal"), ({"f1": b"not written"}, "illegal")])
def test_a_state_is_told_by_the_model_from_one_that_was_never_written(
    tmp_path: Path, more: dict[str, bytes], verdict: str
) -> None:
    for seed in PROGRAMS:
        directory = Directory(tmp_path / f"{seed}", more)
        assert asked_about(cast("Device", directory), "xfs", seed)[0] == verdict
