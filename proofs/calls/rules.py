"""Rules about what must be on the disk at which moment, checked on the system calls of a process.

The process writes its acknowledgements into a file called `reported`: ``flushed /logs/t-0``. It works in a directory
that was empty when it began, so every name in it is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath as Path
from typing import TYPE_CHECKING, Final

from proofs.calls.events import EMPTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proofs.calls.events import Event

CLEAN: Final = ".kafka_cleanshutdown"
LOG: Final = ".log"
SEGMENT_FILES: Final = (LOG, ".index", ".timeindex", ".txnindex")
ON_THEIR_WAY_OUT: Final = (".deleted",)
NEVER_READ: Final = ".lock"
TEMPORARY: Final = ".tmp"
STAGED: Final = "/_seglog_"
"""Parts of paths of files that the Spark writer has not committed yet, or keeps for itself."""
REPORTED: Final = "reported"


@dataclass(slots=True, eq=False)
class _File:
    """A file.

    Attributes:
        changed: number of the last event that changed its bytes; 0 if it never had any.
        synced: number of the event at which the last successful sync began.
    """

    changed: int = 0
    synced: int = 0

    @property
    def is_synced(self) -> bool:
        return self.changed <= self.synced


@dataclass(slots=True)
class Disk:
    """The files of a process, and the state of each on the disk.

    Attributes:
        files: by path; two paths may lead to one file.
        names: changes of names that are not on the disk, by directory and name, with the number of the event.
    """

    files: dict[str, _File] = field(default_factory=dict)
    names: dict[str, dict[str, int]] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)

    def apply(self, number: int, event: Event) -> None:
        """Apply an event."""
        match event.what:
            case "create":
                if event.path not in self.files:
                    self.files[event.path] = _File()
                    self._name(number, event.path)
                elif event.more == EMPTIES:
                    self.files[event.path].changed = number
            case "make directory":
                self._name(number, event.path)
            case "write" | "truncate":
                self.files.setdefault(event.path, _File()).changed = number
            case "sync begins":
                self.begun[event.path] = number
            case "sync":
                self._sync(event.path)
            case "rename" | "link":
                self._move(number, event)
            case "remove":
                self.files.pop(event.path, None)
                self.names = {above: names for above, names in self.names.items() if not _is_in(above, event.path)}
                self._name(number, event.path)

    def _name(self, number: int, path: str) -> None:
        above, _, name = path.rpartition("/")
        self.names.setdefault(above, {})[name] = number

    def _move(self, number: int, event: Event) -> None:
        for path in [each for each in self.files if each == event.path or each.startswith(f"{event.path}/")]:
            self.files[event.more + path[len(event.path) :]] = self.files[path]
            if event.what == "rename":
                del self.files[path]
        if event.what == "rename":
            self._name(number, event.path)
        self._name(number, event.more)

    def _sync(self, path: str) -> None:
        begun = self.begun.get(path, 0)
        if path in self.files:
            self.files[path].synced = begun
        elif path in self.names:
            self.names[path] = {name: at for name, at in self.names[path].items() if at > begun}

    def unsynced_bytes(self, below: str) -> Iterator[str]:
        """Yield the files whose bytes are not all on the disk."""
        for path, file in self.files.items():
            if _is_in(path, below) and not file.is_synced and Path(path).name != NEVER_READ:
                yield path

    def unsynced_names(self, below: str) -> Iterator[str]:
        """Yield the paths that were created, renamed or removed, and whose names are not on the disk."""
        for above, names in self.names.items():
            yield from (f"{above}/{name}" for name in names if _is_in(f"{above}/{name}", below))


def _is_in(path: str, below: str) -> bool:
    return path == below or path.startswith(f"{below}/")


class Checker:
    """Checks the events of a process, and collects violations of rules."""

    def __init__(self, top: str) -> None:
        self.problems: list[str] = []
        self.reported: list[str] = []
        self._disk = Disk()
        self._top = top
        self._serves = ""

    def run(self, events: Iterable[Event]) -> None:
        """Check everything that happens below the top directory."""
        for number, event in enumerate(events, 1):
            if event.what == "send":
                self._answered()
            elif event.what == "write" and Path(event.path).name == REPORTED:
                self._check_report(event.more)
            elif _is_in(event.path, self._top):
                self._before(event)
                self._disk.apply(number, event)

    # Rules that hold at any moment

    def _before(self, event: Event) -> None:
        goal = event.more if event.what in {"rename", "link"} else event.path
        is_filled = any(each.name.endswith(TEMPORARY) for path in (event.path, goal) for each in Path(path).parents)
        if is_filled or STAGED in goal:
            return  # a directory that is being filled, and has not been acknowledged
        if event.what in {"create", "rename", "link"} and Path(goal).name == CLEAN:
            self._all_synced(str(Path(goal).parent), "the clean-shutdown file is made", apart_from=event.path)
        if event.what in {"rename", "link"} and not goal.endswith(ON_THEIR_WAY_OUT):
            self._is_synced(event.path, f"it is renamed to {Path(goal).name}")
        if event.what == "create" and goal.endswith(LOG):
            self._lower_segments_are_synced(goal)
        if event.what in {"create", "write", "truncate", "rename", "link", "remove"}:
            self._trusted_is_unchanged(event.what, goal)

    def _is_synced(self, path: str, when: str) -> None:
        for each in self._disk.unsynced_bytes(path):
            self._complain(f"{each} is not synced when {when}")

    def _lower_segments_are_synced(self, path: str) -> None:
        """Check SEG-FLS-009: a segment is on the disk before the next one begins."""
        directory = Path(path).parent
        for each in self._disk.unsynced_bytes(str(directory)):
            if Path(each).suffix in SEGMENT_FILES and Path(each).stem < Path(path).stem:
                self._complain(f"{each} is not synced when {Path(path).name} begins")

    def _trusted_is_unchanged(self, what: str, path: str) -> None:
        """Check SEG-FLS-006, SEG-FLS-010: nothing changes while the disk may have a clean-shutdown file."""
        root = str(Path(path).parent.parent)
        if f"{root}/{CLEAN}" in self._disk.files:
            self._complain(f"{path} changes ({what}) while there is a clean-shutdown file")
        elif CLEAN in self._disk.names.get(root, {}):
            self._complain(f"{path} changes ({what}), and the clean-shutdown file may come back")

    # Acknowledgements

    def _check_report(self, text: str) -> None:
        what, _, path = text.partition(" ")
        self.reported.append(what)
        if what in {"opened", "flushed"}:
            self._acknowledged(path, text, SEGMENT_FILES if what == "flushed" else (LOG,))
        elif what == "done":
            self._all_synced(path, "the work is done")
        elif what == "serves":
            self._serves = path

    def _answered(self) -> None:
        """Check the state at an answer to a client, which may be an acknowledgement."""
        if self._serves:
            self.reported.append("answered")
            self._acknowledged(self._serves, "a client is answered", (LOG,))

    def _acknowledged(self, directory: str, when: str, kinds: tuple[str, ...] = SEGMENT_FILES) -> None:
        """Check SEG-FLS-002: bytes and names of segments are on the disk, and so are the directories above them."""
        for path in self._disk.unsynced_bytes(directory):
            if Path(path).suffix in kinds:
                self._complain(f"{path} is not synced: {when}")
        ways = {str(each) for each in (Path(directory), *Path(directory).parents)}
        for path in self._disk.unsynced_names(self._top):
            file = self._disk.files.get(path)
            is_segment = _is_in(path, directory) and Path(path).suffix in kinds and file is not None and file.changed
            if is_segment or path in ways:
                self._complain(f"the name {path} is not synced: {when}")

    def _all_synced(self, root: str, when: str, apart_from: str = "") -> None:
        """Check that everything below a directory is synced, and its own name."""
        for path in self._disk.unsynced_bytes(root):
            if path != apart_from and STAGED not in path:
                self._complain(f"{path} is not synced when {when}")
        for path in self._disk.unsynced_names(root):
            if path != apart_from and STAGED not in path and not path.endswith(TEMPORARY):
                self._complain(f"the name {path} is not synced when {when}")

    def _complain(self, problem: str) -> None:
        self.problems.append(problem.replace(f"{self._top}/", ""))


def broken_rules(events: Iterable[Event], top: str) -> tuple[list[str], list[str]]:
    """Return the violations of rules, and the acknowledgements, each in order."""
    checker = Checker(top)
    checker.run(events)
    return checker.problems, checker.reported
