"""Shut ext4 and xfs down in the middle of random programs, and look whether each state is one that the model allows.

Each program creates, writes, truncates, renames, removes and syncs a few files on a loop device. Then the file system
is shut down without writing its log, and mounted again: what is there has to be one of the states that the profile of
`seglog conform crash` calls legal. This needs root, loop devices and mkfs.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.crash.history import read_history
from seglog_conformance.crash.states import Disk
from seglog_conformance.toolchains import child_processes

from proofs.harness import Outcome

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from seglog_conformance.crash.states import State

MEASURES: Final = ("conformance/seglog_conformance/crash",)
FILE_SYSTEMS: Final = {
    "ext4": ("ext4-ordered", ["mkfs.ext4", "-q", "-F"], "loop,commit=1"),
    "xfs": ("xfs", ["mkfs.xfs", "-q", "-f"], "loop"),
}
"""Profile, command that makes it, and options of its mount; a commit each second leaves names without their data."""
IMAGE_SIZE: Final = 512 << 20
SHUTDOWN: Final = 0x8004587D
NO_LOG_FLUSH: Final = 2
WRITE_AND_WAIT: Final = 7
COMMIT_SECONDS: Final = 1.3
ACTIONS: Final = {
    "create": 5,
    "write": 12,
    "cut": 3,
    "sync": 5,
    "data": 2,
    "names": 2,
    "rename": 4,
    "remove": 2,
    "out": 4,
}
CONTENTS: Final = {b"old": "old", b"new": "new", b"": "empty", bytes(3): "zeros"}
WAYS: Final = ("rename", "truncation", "a cut inside a new block", "a cut inside a synced block")
TIMES: Final = 20
"""So often a file gets new content in each way."""
MOST_ACTIONS: Final = 12
MOST_CANDIDATES: Final = 11
SIZES: Final = (7, 600, 4096, 6000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; the defaults are those of the full run."""
    parser.add_argument("--count", type=int, default=400, help="how many programs on each file system")
    parser.add_argument("--seconds", type=float, default=1e9, help="no program begins after so many")


def prove(options: argparse.Namespace) -> Outcome:
    """Run the programs on each file system."""
    if reason := missing():
        return Outcome({}, [reason])
    facts: dict[str, Any] = {"kernel": os.uname().release}
    failures: list[str] = []
    end = time.monotonic() + options.seconds
    for name, (profile, make, mount_options) in FILE_SYSTEMS.items():
        counts: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="seglog-disks-") as scratch:
            device = Device(Path(scratch), make, mount_options)
            for seed in range(options.seed, options.seed + options.count):
                if time.monotonic() > end:
                    break
                verdict, shown = asked_about(device, profile, seed)
                counts.update(("programs", verdict))
                if verdict == "illegal":
                    failures.append(f"{name}, program {seed}: {shown}")
            replaced = {
                way: dict(
                    Counter(CONTENTS.get(device.after(partial(_replaced, way))["f"], "other") for _ in range(TIMES))
                )
                for way in WAYS
            }
        facts[name] = {**counts, "replaced": replaced}
    return Outcome(facts, failures)


def missing() -> str:
    """Return what this machine lacks; empty if nothing."""
    if os.geteuid() != 0:
        return "loop devices need root"
    if not Path("/dev/loop-control").exists():
        return "/dev/loop-control is missing"
    absent = [make[0] for _, make, _ in FILE_SYSTEMS.values() if child_processes.find_program(make[0]) is None]
    return f"{', '.join(absent)} is missing" if absent else ""


class Device:
    """A file system on a loop device.

    Args:
        scratch: an empty directory.
        make: the command that makes a file system.
        options: of the mount.
    """

    def __init__(self, scratch: Path, make: list[str], options: str) -> None:
        self._image, self._root, self._options = scratch / "image", scratch / "mounted", options
        self._image.touch()
        os.truncate(self._image, IMAGE_SIZE)
        self._root.mkdir()
        child_processes.run([*make, str(self._image)], directory=child_processes.NOWHERE)

    def after(self, work: Callable[[Path], object]) -> dict[str, bytes]:
        """Return the files that are in a directory after some work in it, and a shutdown at its end."""
        with self.mounted() as root:
            directory = Path(tempfile.mkdtemp(dir=root))
            _sync(directory, root)
            work(directory)
            shut_down(root)
        with self.mounted() as root:
            left = root / directory.name
            contents = {path.name: path.read_bytes() for path in left.iterdir()}
            shutil.rmtree(left)
        return contents

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mount it, for as long as the block runs."""
        child_processes.run(
            ["mount", "-o", self._options, str(self._image), str(self._root)], directory=child_processes.NOWHERE
        )
        try:
            yield self._root
        finally:
            child_processes.run(["umount", str(self._root)], directory=child_processes.NOWHERE)


def _sync(*paths: Path) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def shut_down(root: Path) -> None:
    """Shut a file system down without writing its log: what is not on the disk is lost."""
    directory = os.open(root, os.O_RDONLY)
    try:
        fcntl.ioctl(directory, SHUTDOWN, NO_LOG_FLUSH.to_bytes(4, "little"))
    finally:
        os.close(directory)


class Program:
    """A random program, and the history of what it did.

    Args:
        directory: where its files are.
        dice: chooses what it does.
    """

    def __init__(self, directory: Path, dice: random.Random) -> None:
        self.lines: list[str] = []
        self._directory, self._dice = directory, dice
        self._files: dict[str, tuple[int, int]] = {}
        """Node and descriptor of each file by its name."""
        self._descriptors: list[int] = []
        self._made = 0

    def run(self) -> None:
        """Do something until it is enough, and in every third program wait for a commit at the end."""
        for _ in range(self._dice.randint(3, MOST_ACTIONS)):
            history = read_history(self.lines)
            if len(Disk(history, "posix").cut(len(history)).candidates) > MOST_CANDIDATES - 3:
                break
            self._act(self._dice.choices(tuple(ACTIONS), tuple(ACTIONS.values()))[0])
        if self._dice.random() < 1 / 3:
            time.sleep(COMMIT_SECONDS)
        for descriptor in self._descriptors:
            os.close(descriptor)

    def _act(self, what: str) -> None:
        if what == "create" or not self._files:
            self._create()
            return
        name = self._dice.choice(sorted(self._files))
        node, descriptor = self._files[name]
        size = os.fstat(descriptor).st_size
        match what:
            case "write":
                data = self._dice.randbytes(self._dice.choice(SIZES))
                position = self._dice.choice((size, size, self._dice.randint(0, size)))
                os.pwrite(descriptor, data, position)
                self._note("write", name, node=node, position=position, data=data.hex(), isMapped=False)
            case "cut":
                size = self._dice.randint(0, size + 100)
                os.ftruncate(descriptor, size)
                self._note("resize", name, node=node, size=size)
            case "sync":
                os.fsync(descriptor)
                self._note("sync", name, node=node, dataOnly=False)
            case "data":
                os.fdatasync(descriptor)
                self._note("sync", name, node=node, dataOnly=True)
            case "names":
                _sync(self._directory)
                self._note("sync", "", node=0, dataOnly=False)
            case "rename":
                new = self._dice.choice([*sorted(self._files.keys() - {name}), f"r{self._made}{len(self.lines)}"])
                (self._directory / name).rename(self._directory / new)
                changes = [[0, name, None], [0, new, node]]
                self._note("rename", name, to=new, changes=changes, replaces=new in self._files)
                self._files[new] = self._files.pop(name)
            case "remove":
                (self._directory / name).unlink()
                del self._files[name]
                self._note("unlink", name, changes=[[0, name, None]])
            case _:  # the kernel may write the data of a file when it likes
                ctypes.CDLL(None).sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), WRITE_AND_WAIT)

    def _create(self) -> None:
        self._made += 1
        name = f"f{self._made}"
        descriptor = os.open(self._directory / name, os.O_RDWR | os.O_CREAT)
        self._files[name] = self._made, descriptor
        self._descriptors.append(descriptor)
        self._note("create", name, node=self._made, changes=[[0, name, self._made]])

    def _note(self, operation: str, name: str, **fields: object) -> None:
        self.lines.append(json.dumps({"op": operation, "path": name, "time": 0, **fields}))


def asked_about(device: Device, profile: str, seed: int) -> tuple[str, str]:
    """Return a verdict on one program, and what the program did and left.

    Returns:
        ``illegal``, ``lost`` (legal, and something of the program is missing) or ``whole``; and the text.
    """
    dice, programs = random.Random(seed), list[Program]()

    def work(directory: Path) -> None:
        programs.append(Program(directory, dice))
        programs[0].run()

    there = device.after(work)
    history = read_history(programs[0].lines)
    disk = Disk(history, profile)
    cut = disk.cut(len(history))
    shown = f"{[history.text(each) for each in range(len(history))]} leaves {_sizes(there)}"
    states = disk.states(cut, 1 << len(cut.candidates), dice)
    if there not in (_contents(disk, state) for state in states):
        return "illegal", shown
    return "whole" if there == _contents(disk, Disk(history, "posix").state(cut)) else "lost", shown


def _contents(disk: Disk, state: State) -> dict[str, bytes]:
    return {path: disk.content(done or ())[0] for path, done in state.tree.items()}


def _sizes(there: dict[str, bytes]) -> dict[str, int]:
    return {name: len(content) for name, content in there.items()}


def _replaced(way: str, directory: Path) -> None:
    """Give new content to a file, close it, and let another file's sync commit names and lengths."""
    file, other = directory / "f", directory / "g"
    if way != "a cut inside a new block":
        file.write_bytes(b"old")
        _sync(file, directory)
    match way:
        case "rename":
            other.write_bytes(b"new")
            other.rename(file)
        case "truncation":
            file.write_bytes(b"new")
        case _:
            file.touch()
            with file.open("r+b") as opened:
                opened.write(b"newer")
            os.truncate(file, len(b"new"))
    other.touch()
    _sync(other)
