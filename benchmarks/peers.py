"""Who is measured, and how each is built below ``build/bench/peers``; programs that are missing are named."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from datasets import BUILD, HERE
from pipe import PeerError, Process
from seglog_conformance.toolchains import complaints

SOURCES: Final = HERE / "peers"
HOME: Final = BUILD / "peers"
BUILD_SECONDS: Final = 1800
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - peers make directories of their own in it

CLIENTS: Final = (
    "aiokafka[snappy,lz4,zstd]==0.14.0",
    "kafka-python==3.0.12",
    "cramjam==2.14.0",
    "crc32c==2.9.post0",
    "lz4==4.4.5",
    "numpy==2.4.6",
    "pyarrow==26.0.1",
    "python-snappy==0.7.3",
    "xxhash==3.6.0",
    "zstandard==0.25.0",
)
"""Python's clients, and what they are quickest with."""


@dataclass(frozen=True, slots=True)
class Program:
    """One process that does the work of one or more contenders.

    Attributes:
        name: of it.
        language: it is written in.
        needs: programs that build or run it.
        build: commands, run in its own directory below ``build/bench/peers``, to which its sources are copied.
        command: that starts it, from there.
        environment: variables for it.
    """

    name: str
    language: str
    needs: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def home(self) -> Path:
        """Where it is built."""
        return HOME / self.name

    def missing(self) -> list[str]:
        """The programs that it needs and that are not here or do not work."""
        return complaints(self.needs)

    def built(self) -> None:
        """Build it, unless that was done since its sources changed.

        Raises:
            PeerError: a command failed.
        """
        stamp, digest = self.home / "built", self._digest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        if (SOURCES / self.name).is_dir():
            shutil.copytree(SOURCES / self.name, self.home, dirs_exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        for command in self.build:
            done = subprocess.run(
                command, cwd=self.home, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
            )
            if done.returncode:
                msg = f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                raise PeerError(msg)
        stamp.write_text(digest)

    def _digest(self) -> str:
        files = sorted(path for path in (SOURCES / self.name).rglob("*") if path.is_file() and path.suffix != ".pyc")
        told = repr(self.build).encode() + b"".join(path.name.encode() + path.read_bytes() for path in files)
        return hashlib.sha256(told).hexdigest()

    def start(self) -> Process:
        """Start it."""
        classes = class_path() if self.name == "java" else ""
        command = [part.format(home=self.home, classes=classes) for part in self.command]
        return Process(self.name, command, dict(self.environment))


def class_path() -> str:
    """Where Java finds Kafka, and what stands before it."""
    home = HOME / "java" / "target"
    return os.pathsep.join([str(home / "classes"), (home / "classpath.txt").read_text(encoding="utf-8").strip()])


def java_options() -> tuple[str, ...]:
    """For long work in one thread: a collector that does not use the other core."""
    scratch = (f"-Djava.io.tmpdir={MEMORY}",) if MEMORY.is_dir() else ()
    return ("-Xmx3g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *scratch)


PYTHON_PATH: Final = (("PYTHONPATH", os.pathsep.join([str(HERE), str(SOURCES / "python")])),)
OURS: Final = Program("ours", "Python", (), (), (sys.executable, str(SOURCES / "python" / "ours.py")), PYTHON_PATH)
PROGRAMS: Final = (
    OURS,
    Program(
        "java",
        "Java",
        ("java", "mvn"),
        (("mvn", "-q", "-B", "compile"),),
        ("java", *java_options(), "-cp", "{classes}", "seglog.bench.Main"),
    ),
    Program(
        "rust", "Rust", ("cargo",), (("cargo", "build", "--quiet", "--release"),), ("{home}/target/release/bench-peer",)
    ),
    Program(
        "go", "Go", ("go",), (("go", "mod", "tidy"), ("go", "build", "-o", "bench-peer", ".")), ("{home}/bench-peer",)
    ),
    Program(
        "clients",
        "Python",
        (),
        (
            (sys.executable, "-m", "venv", "."),
            ("bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *CLIENTS),
        ),
        ("{home}/bin/python", str(SOURCES / "python" / "clients.py")),
        PYTHON_PATH,
    ),
)


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of a table.

    Attributes:
        name: in reports.
        program: that it is part of.
        how: what the program is told besides the work.
        largest: bytes of a log that it is given at most.
        magics: that it reads.
    """

    name: str
    program: str
    how: str = ""
    largest: int = 1 << 31
    magics: tuple[int, ...] = (0, 1, 2)

    @property
    def is_reference(self) -> bool:
        """Whether it is the reference, which reads small logs only."""
        return self.how == "reference"
