"""Testees in processes of their own: the failure of a process fails a case, and never ends the run."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_conformance.processes import (
    HAS_PROC,
    MARK,
    cap_address_space,
    company_size,
    end_all,
    memory_of,
    processor_seconds,
    reset_peak,
    session_size,
)
from seglog_conformance.protocol import (
    PROTOCOL_VERSION,
    Hello,
    Json,
    ProtocolError,
    check_strictly,
    hello_of,
    read_answer,
    request_line,
)
from seglog_conformance.testee import MEBIBYTE, Allowance, Kind, Reply, StartError
from seglog_format.storage.child_processes import NOWHERE, start

if TYPE_CHECKING:
    from pathlib import Path

HELLO: Final = {"seq": 0, "op": "hello", "protocol": PROTOCOL_VERSION}
CHUNK: Final = 1 << 16
WATCH_SECONDS: Final = 0.05
"""Interval of memory samples while an answer is pending."""

KILL_FACTOR: Final = 4
"""Factor on the allowed growth beyond which a process is ended at once."""

IDLE_SHARE: Final = 0.02
BUSY_SHARE: Final = 0.8
MAX_PATIENCE: Final = 3
"""Factor on the time limit on a busy machine; below the first share a process waits, above the second it is late."""

EXIT_SECONDS: Final = 0.5
"""Time in which a process that has closed its standard output must end; later it counts as alive without output."""

STDERR_SIZE: Final = 1 << 16
CHUNKS_AT_ONCE: Final = 16
OUT_OF_MEMORY: Final = (b"out of memory", b"OutOfMemoryError", b"MemoryError", b"bad_alloc", b"memory allocation of")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command and the limits of an adapter.

    Attributes:
        arguments: arguments of its process.
        directory: working directory; by default the root of the file system.
        environment: variables besides those of this process.
        start_seconds: time limit for its greeting.
        address_space: address space in bytes besides that after its greeting; 0 for no limit.
    """

    arguments: tuple[str, ...]
    directory: Path = NOWHERE
    environment: dict[str, str] = field(default_factory=dict)
    start_seconds: float = 60.0
    address_space: int = 8192 * MEBIBYTE


class _Stopped(Exception):  # noqa: N818 - not an error of this program
    """The wait for an answer ended without one."""

    def __init__(self, kind: Kind, detail: str) -> None:
        self.kind = kind
        super().__init__(detail)


class ProcessTestee:
    """An adapter in a process of its own, which exchanges JSON lines.

    Args:
        name: name in the registry.
        command: command and limits.
        strict: whether to validate requests and answers against their schemas.
    """

    def __init__(self, name: str, command: Command, *, strict: bool = False) -> None:
        self._name = name
        self.command = command
        self._strict = strict
        self._child: _Child | None = None

    @property
    def name(self) -> str:
        """Return the name in the registry."""
        return self._name

    def start(self) -> Hello:
        """Start the process, again if one runs, and read its greeting.

        Raises:
            StartError: the process does not start, or its greeting is invalid.
        """
        self.close()
        try:
            self._child = _Child(self.command)
        except OSError as error:
            msg = f"{self.command.arguments[0]}: {error.strerror}"
            raise StartError(msg) from error
        reply = self.ask(HELLO, Allowance(self.command.start_seconds))
        try:
            hello = _greeting(reply)
        except ProtocolError as error:
            self.close()
            msg = f"{error}\n{reply.stderr}".rstrip()
            raise StartError(msg) from error
        assert self._child is not None
        self._child.has_company = company_size(self._child.pid) > 0
        cap_address_space(self._child.pid, self.command.address_space)
        return hello

    def ask(self, request: Json, allowance: Allowance) -> Reply:
        """Send a request once; after any outcome but an answer, the process has ended."""
        child = self._child
        if child is None:
            return Reply(Kind.CRASH, detail="there is no process")
        start = time.perf_counter()
        watch = _Watch(child, allowance)
        try:
            if self._strict:
                check_strictly(request, f"request-{request['op']}")
            answer = self._exchange(child, request, allowance, watch)
        except ProtocolError as error:
            return self._end(Kind.BROKEN, str(error), start, watch)
        except _Stopped as stop:
            return self._end(stop.kind, str(stop), start, watch)
        growth = watch.growth()
        if allowance.growth is not None and growth is not None and growth > allowance.growth:
            detail = f"memory grew by {growth >> 20} MiB, {allowance.growth >> 20} MiB are allowed"
            return self._end(Kind.MEMORY, detail, start, watch)
        return Reply(Kind.ANSWER, answer, "", child.stderr(), time.perf_counter() - start, growth)

    def _exchange(self, child: _Child, request: Json, allowance: Allowance, watch: _Watch) -> Json:
        line = child.exchange(request_line(request), _Patience(child.pid, allowance.seconds), allowance.line, watch)
        answer = read_answer(line, request["seq"])
        if self._strict:
            check_strictly(answer, f"answer-{request['op']}")
        return answer

    def _end(self, kind: Kind, detail: str, start: float, watch: _Watch) -> Reply:
        growth, seconds = watch.growth(), time.perf_counter() - start
        child = self._child
        assert child is not None
        self._child = None
        child.end()
        stderr = child.stderr()
        if kind is Kind.CRASH and any(words in stderr.encode() for words in OUT_OF_MEMORY):
            kind, detail = Kind.MEMORY, f"{detail}, out of memory"
        return Reply(kind, None, detail, stderr, seconds, growth)

    def kill(self) -> None:
        """End all processes at once, as a crash does."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def close(self) -> None:
        """Send stop, wait a moment, and end all processes."""
        child, self._child = self._child, None
        if child is not None:
            child.say_stop()
            child.end()


def _greeting(reply: Reply) -> Hello:
    if reply.answer is None:
        msg = f"no answer to hello: {reply.detail}"
        raise ProtocolError(msg)
    return hello_of(reply.answer)


class _Watch:
    """A watch on the memory of a process during a request."""

    def __init__(self, child: _Child, allowance: Allowance) -> None:
        self._child = child
        self._most = None if allowance.growth is None else allowance.growth * KILL_FACTOR
        self._is_watched = HAS_PROC and allowance.growth is not None
        self._before = 0
        self._company = 0
        self._peak = 0
        self._next = time.monotonic() + WATCH_SECONDS
        if self._is_watched:
            reset_peak(child.pid)
            memory = memory_of(child.pid)
            self._before = memory.resident if memory else 0
            self._company = company_size(child.pid) if child.has_company else 0

    def look(self) -> None:
        """Sample the memory.

        Raises:
            _Stopped: memory is far beyond the limit.
        """
        now = time.monotonic()
        if not self._is_watched or self._most is None or now < self._next:
            return
        self._next = now + WATCH_SECONDS
        self._peak = max(self._peak, session_size(self._child.pid) - self._company)
        if self._peak - self._before > self._most:
            raise _Stopped(Kind.MEMORY, f"memory grew by {(self._peak - self._before) >> 20} MiB, and it was ended")

    def growth(self) -> int | None:
        """Return the growth of memory at its peak in bytes; None if that is not known."""
        if not self._is_watched or not self._before:
            return None
        memory = memory_of(self._child.pid)
        peak = max(self._peak, memory.peak if memory else 0)
        return max(peak - self._before, 0) if peak else None


class _Patience:
    """The time limit of an answer.

    It is the allowed time, and up to three times as long on a busy machine: for a process that works, and has used
    less processor time than the allowed time.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._start = time.monotonic()
        self._next = self._start + seconds
        self._used = processor_seconds(pid)

    def is_at_end(self) -> bool:
        """Return whether the time is over."""
        now = time.monotonic()
        if now < self._next:
            return False
        used = processor_seconds(self._pid) - self._used
        is_starved = IDLE_SHARE * self._seconds < used < BUSY_SHARE * self._seconds
        self._next = now + self._seconds / 4
        return not is_starved or now - self._start > MAX_PATIENCE * self._seconds


class _Child:
    """A process with its three pipes; one thread, and no blocking call but the wait for all pipes at once.

    Attributes:
        has_company: whether it had child processes when it greeted: their memory at that time is no growth.
    """

    def __init__(self, command: Command) -> None:
        self.has_company = False
        self._mark = uuid.uuid4().hex
        self._process = start(
            command.arguments,
            directory=command.directory,
            changes={**command.environment, MARK: self._mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes if pipe is not None)
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._received = bytearray()
        self._stderr = bytearray()
        self._is_err_open = True

    @property
    def pid(self) -> int:
        """Return the id of the process, which is also that of its session and group."""
        return self._process.pid

    def exchange(self, line: bytes, patience: _Patience, most: int, watch: _Watch) -> bytes:
        """Write a line and read one.

        Raises:
            _Stopped: no line came.
            ProtocolError: the line is longer than allowed.
        """
        left = memoryview(line)
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            selector.register(self._in, selectors.EVENT_WRITE)
            if self._is_err_open:
                selector.register(self._err, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if patience.is_at_end():
                    raise _Stopped(Kind.HANG, "no answer within the time")
                ready = {key.fd for key, _ in selector.select(WATCH_SECONDS)}
                watch.look()
                if not ready and self._process.poll() is not None:
                    raise self._ended()  # a child process still has the pipe open
                if self._err in ready and not self._take_stderr():
                    selector.unregister(self._err)
                if self._in in ready:
                    left = self._write(left)
                    if not left:
                        selector.unregister(self._in)
                if self._out in ready:
                    self._take(most)
        answer, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        return answer

    def _write(self, left: memoryview) -> memoryview:
        """Write as much as the pipe accepts; a closed pipe is noticed at the other one."""
        try:
            return left[os.write(self._in, left[:CHUNK]) :]
        except BlockingIOError:
            return left
        except OSError:
            return left[len(left) :]

    def _take(self, most: int) -> None:
        data = os.read(self._out, CHUNK)
        if not data:
            raise self._ended()
        self._received += data
        if len(self._received) > most:
            msg = f"the answer has more than {most} bytes"
            raise ProtocolError(msg)

    def _ended(self) -> _Stopped:
        """Return the reason why standard output was closed."""
        try:
            code = self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return _Stopped(Kind.BROKEN, "it closed its standard output and continued to run")
        self._take_stderr()
        if code < 0:
            return _Stopped(Kind.CRASH, f"ended by {_signal_name(-code)}")
        return _Stopped(Kind.CRASH, f"ended with exit status {code} without an answer")

    def _take_stderr(self) -> bool:
        """Read the available bytes, within a limit, and return whether more may come."""
        for _ in range(CHUNKS_AT_ONCE):
            try:
                data = os.read(self._err, CHUNK)
            except BlockingIOError:
                return True
            if not data:
                self._is_err_open = False
                return False
            self._stderr += data
            del self._stderr[:-STDERR_SIZE]
        return True

    def stderr(self) -> str:
        """Return the end of its standard error since the last call."""
        if self._is_err_open:
            with contextlib.suppress(OSError):
                self._take_stderr()
        text = self._stderr.decode("utf-8", "backslashreplace")
        self._stderr.clear()
        return text

    def say_stop(self) -> None:
        """Ask the process to end, and wait a moment."""
        with contextlib.suppress(OSError):
            os.write(self._in, request_line({"seq": 0, "op": "stop"}))
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(EXIT_SECONDS)

    def end(self) -> None:
        """End the process and all its descendants."""
        with contextlib.suppress(OSError):
            self._take_stderr()
        end_all(self.pid, self._mark)
        self._process.wait()
        if self._is_err_open:
            with contextlib.suppress(OSError):
                self._take_stderr()
        self._is_err_open = False
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
