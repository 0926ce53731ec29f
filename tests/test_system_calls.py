"""What the one class that touches the disk asks of the system: whatever is acknowledged was synced before.

Everything else in this package is tested on a disk in memory, which cannot tell whether `LocalFiles` syncs at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.walking import each_of

from proofs.calls.events import EMPTIES, Event
from proofs.calls.rules import broken_rules
from proofs.calls.trace import CannotWatchError, events_of, watched_by_preload, watched_by_strace
from proofs.power.plants import Plant, plants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAULTS = [plant for plant in plants() if plant.breaks_calls]
MUST_BE_SEEN = {"flushed": 15, "opened": 1, "answered": 6, "done": 9}


def watched(watch: Callable[..., list[Event]], tmp_path: Path, *fault: str) -> tuple[list[str], list[str]]:
    """Problems that a watched process has, and what it told others."""
    top = tmp_path.resolve() / "top"
    top.mkdir()
    try:
        events = watch("proofs.calls.work", [str(top), *fault], tmp_path / "calls")
    except CannotWatchError as error:
        pytest.skip(str(error))
    return broken_rules(events, str(top))


@pytest.mark.parametrize("watch", [watched_by_strace, watched_by_preload], ids=["strace", "preload"])
def test_whatever_is_acknowledged_was_synced(watch: Callable[..., list[Event]], tmp_path: Path) -> None:
    pytest.importorskip("kio", reason="the server needs kio")
    pytest.importorskip("pyarrow", reason="Spark's rows need pyarrow")
    problems, reported = watched(watch, tmp_path)
    assert problems == []
    for what, count in MUST_BE_SEEN.items():
        assert reported.count(what) >= count, what


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.name)
def test_a_fault_breaks_a_rule(plant: Plant, tmp_path: Path) -> None:
    problems, _ = watched(watched_by_preload, tmp_path, plant.name)
    assert problems != []


# The rules, on calls written out by hand


LOG, INDEX, CLEAN = "/top/l/t-0/0.log", "/top/l/t-0/0.index", "/top/l/.kafka_cleanshutdown"


def made(path: str) -> list[Event]:
    """Make and sync a file, its name too."""
    above = path.rpartition("/")[0]
    return [Event("create", path), Event("write", path), *synced(path), *synced(above)]


def synced(path: str) -> list[Event]:
    return [Event("sync begins", path), Event("sync", path)]


def reported(text: str) -> Event:
    return Event("write", "/reported", text)


FLUSHED = reported("flushed /top/l/t-0")
DIRECTORIES = [
    Event("make directory", "/top/l"),
    Event("make directory", "/top/l/t-0"),
    *synced("/top"),
    *synced("/top/l"),
]


@each_of(
    ("events", "problem"),
    [
        ([*made(LOG), FLUSHED], ""),
        ([*made(LOG), Event("write", LOG), FLUSHED], "l/t-0/0.log is not synced: flushed"),
        ([*made(LOG), Event("truncate", INDEX), reported("opened /top/l/t-0")], ""),
        ([Event("create", LOG), Event("write", LOG), *synced(LOG), FLUSHED], "the name l/t-0/0.log"),
        ([*made(LOG), Event("create", LOG, EMPTIES), FLUSHED], "l/t-0/0.log is not synced"),
        (
            [
                *made(LOG),
                Event("sync begins", LOG),
                Event("write", LOG),
                Event("sync", LOG),
                FLUSHED,
            ],
            "l/t-0/0.log is not synced",
        ),
        ([*made(LOG), Event("write", LOG), Event("rename", LOG, f"{LOG}.swap")], "not synced when it is renamed"),
        ([*made(LOG), Event("write", LOG), Event("rename", LOG, f"{LOG}.deleted")], ""),
        ([*made(LOG), Event("write", LOG), Event("create", "/top/l/t-0/5.log")], "not synced when 5.log begins"),
        ([*made(LOG), Event("write", LOG), Event("create", CLEAN)], "not synced when the clean-shutdown file is made"),
        ([*made(LOG), *made(CLEAN), Event("write", LOG)], "changes (write) while there is a clean-shutdown file"),
        ([*made(LOG), *made(CLEAN), Event("remove", CLEAN), Event("write", LOG)], "may come back"),
        ([*made(LOG), *made(CLEAN), Event("remove", CLEAN), *synced("/top/l"), Event("write", LOG)], ""),
        ([reported("serves /top/l/t-0"), *made(LOG), Event("write", LOG), Event("send", "")], "a client is answered"),
        (
            [*made(LOG), Event("remove", LOG), reported("done /top/l")],
            "the name l/t-0/0.log is not synced when the work",
        ),
    ],
)
def test_rules(events: list[Event], problem: str) -> None:
    problems, _ = broken_rules([*DIRECTORIES, *events], "/top")
    assert [problem in each for each in problems[:1]] == ([True] if problem else [])


def test_what_strace_writes_is_read() -> None:
    lines = [
        '7 openat(AT_FDCWD</here>, "/top/a", O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC, 0644) = 5</top/a>',
        '7 openat(AT_FDCWD</here>, "/top/b", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = -1 EACCES (Permission denied)',
        '7 pwrite64(5</top/a>, "x = 1, y\\0"..., 400, 0 <unfinished ...>',
        "8 fsync(5</top/a> <unfinished ...>",
        "7 <... pwrite64 resumed>) = 400",
        "8 <... fsync resumed>) = 0",
        '7 write(3</reported>, "done /top\\n", 10) = 10',
        "7 mmap(NULL, 70, PROT_READ|PROT_WRITE, MAP_SHARED, 5</top/a>, 0) = 0x7f",
        "7 mmap(NULL, 70, PROT_READ, MAP_SHARED, 5</top/a>, 0) = 0x7f",
        '7 unlinkat(6</top/c>, "d", 0) = 0',
        '7 linkat(AT_FDCWD</here>, "/top/a", AT_FDCWD</here>, "e", 0) = 0',
        '7 sendto(9<socket:[77]>, "\\0\\0"..., 46, 0, NULL, 0) = 46',
        "7 +++ exited with 0 +++",
    ]
    assert list(events_of(lines)) == [
        Event("create", "/top/a", EMPTIES),
        Event("sync begins", "/top/a"),
        Event("write", "/top/a", "x = 1, y\\0"),
        Event("sync", "/top/a"),
        Event("write", "/reported", "done /top"),
        Event("write", "/top/a"),
        Event("remove", "/top/c/d"),
        Event("link", "/top/a", "/here/e"),
        Event("send", ""),
    ]
