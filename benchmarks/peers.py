"""The measured programs, and how to build each below ``build/bench/peers``; missing programs are reported by name."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from datasets import BENCHMARKS, BUILD
from pipe import PeerError, Process
from seglog_conformance.toolchains import child_processes, complaints

SOURCES: Final = BENCHMARKS / "peers"
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
"""Python's clients, with the libraries that make them fastest."""


@dataclass(frozen=True, slots=True)
class Program:
    """One process that does the work of one or more contenders.

    Attributes:
        name: name of the program.
        language: language it is written in.
        needs: programs that build or run it.
        build: commands to run in its own directory below ``build/bench/peers``, to which its sources are copied.
        command: command that starts it, from there.
        environment: environment variables for it.
        built_as: name of another program whose build it runs, in a process of its own; empty for none.
        shares: source files of other programs that it also needs: where they are, and where to copy them.
        edits: replacements to make in those.
    """

    name: str
    language: str
    needs: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    built_as: str = ""
    shares: tuple[tuple[str, str], ...] = ()
    edits: tuple[tuple[str, str], ...] = ()

    @property
    def home(self) -> Path:
        """Return the directory in which the program is built."""
        return HOME / (self.built_as or self.name)

    @property
    def source(self) -> Path:
        """Return the directory of the program's sources."""
        return SOURCES / (self.built_as or self.name)

    def missing(self) -> list[str]:
        """Return the required programs that are missing or do not work."""
        return complaints(self.needs)

    def built(self) -> None:
        """Build the program, unless its sources have not changed since the last build.

        Raises:
            PeerError: a command failed.
        """
        stamp, digest = self.home / "built", self._digest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        self._copy_sources()
        for command in self.build:
            done = child_processes.run(
                command, directory=self.home, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
            )
            if done.returncode:
                msg = f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                raise PeerError(msg)
        stamp.write_text(digest)

    def _copy_sources(self) -> None:
        shutil.rmtree(self.home / "src", ignore_errors=True)
        if self.source.is_dir():
            shutil.copytree(self.source, self.home, dirs_exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        for origin, target in self.shares:
            shutil.copytree(SOURCES / origin, self.home / target, dirs_exist_ok=True)
            for path in (self.home / target).rglob("*.java"):
                text = path.read_text(encoding="utf-8")
                for old, new in self.edits:
                    text = text.replace(old, new)
                path.write_text(text, encoding="utf-8")

    def _digest(self) -> str:
        roots = (self.source, *(SOURCES / origin for origin, _ in self.shares))
        files = sorted(path for root in roots for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
        settings = repr((self.build, self.shares, self.edits)).encode()
        digested = settings + b"".join(path.name.encode() + path.read_bytes() for path in files)
        return hashlib.sha256(digested).hexdigest()

    def start(self) -> Process:
        """Start the program."""
        classes = class_path(self.home) if self.language == "Java" else ""
        command = [part.format(home=self.home, classes=classes) for part in self.command]
        return Process(self.name, command, dict(self.environment))


def class_path(home: Path) -> str:
    """Return the class path for Kafka, with the classes that must precede it."""
    target = home / "target"
    return os.pathsep.join([str(target / "classes"), (target / "classpath.txt").read_text(encoding="utf-8").strip()])


def java_options() -> tuple[str, ...]:
    """Return options for long single-threaded work: a garbage collector that leaves the other core free."""
    scratch = (f"-Djava.io.tmpdir={MEMORY}",) if MEMORY.is_dir() else ()
    return ("-Xmx3g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *scratch)


PYTHON_PATH: Final = (("PYTHONPATH", os.pathsep.join([str(BENCHMARKS), str(SOURCES / "python")])),)
OURS: Final = Program("ours", "Python", (), (), (sys.executable, str(SOURCES / "python" / "ours.py")), PYTHON_PATH)
JAVA: Final = Program(
    "java",
    "Java",
    ("java", "mvn"),
    (("mvn", "-q", "-B", "compile"),),
    ("java", *java_options(), "-cp", "{classes}", "seglog.bench.Main"),
)
BEFORE_THEY_MOVED: Final = (
    ("common.record.internal.", "common.record."),
    ("common.utils.internals.BufferSupplier", "common.record.BufferSupplier"),
    ("common.utils.internals.", "common.utils."),
)
"""Edits for classes that moved, to fit the oldest release that reads all of the data (the first with zstd)."""


def _own_process(name: str) -> Program:
    """Return Kafka's newest classes in another process, which the JIT compiler optimizes for one kind of buffer."""
    return replace(JAVA, name=name, built_as=JAVA.name)


PROGRAMS: Final = (
    OURS,
    JAVA,
    _own_process("java-heap"),
    _own_process("java-loop"),
    _own_process("java-file"),
    Program(
        "java-oldest",
        "Java",
        JAVA.needs,
        JAVA.build,
        JAVA.command,
        shares=(("java/src/reading", "src/reading"),),
        edits=BEFORE_THEY_MOVED,
    ),
    Program(
        "rust", "Rust", ("cargo",), (("cargo", "build", "--quiet", "--release"),), ("{home}/target/release/bench-peer",)
    ),
    Program(
        # The crate's manifest asks for a later compiler than it needs.
        "krabka",
        "Rust",
        ("cargo",),
        (("cargo", "build", "--quiet", "--release", "--ignore-rust-version"),),
        ("{home}/target/release/bench-peer-krabka",),
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

NOT_COMPARABLE: Final = {
    "kafkarrow": "a consumer of brokers by librdkafka (0.1.1): it decodes no log without a broker",
}
"""Other readers of records into columns, each with the reason why it takes no part."""
MAY_BE_MISSING: Final = frozenset({*NOT_COMPARABLE, "krabka"})
"""Contenders that a complete report may lack: krabka needs a compiler later than the stable one."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender: one row of a table.

    Attributes:
        name: name in reports.
        program: program that runs it.
        how: variant of the work, sent to the program.
        largest: largest log that it is given, in bytes.
        magics: magics that it reads.
    """

    name: str
    program: str
    how: str = ""
    largest: int = 1 << 31
    magics: tuple[int, ...] = (0, 1, 2)

    @property
    def is_reference(self) -> bool:
        """Return whether this is the reference, which reads only small logs."""
        return self.how == "reference"
