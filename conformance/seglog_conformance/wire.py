"""Whole clients as testees: a stock consumer fetches the bytes of a case, and a stock producer sends its records.

    python -m seglog_conformance.wire COMMAND...

COMMAND is a program around a client that speaks the adapter protocol. This module is between that program and the
runner, and runs an endpoint of `seglog serve --raw` for it. Instead of `data`, a request to the program has a `place`:

    {"bootstrap": "127.0.0.1:40123", "topic": "case-7", "ended": "/tmp/.../ended"}

The program consumes partition 0 of the topic from offset 0 on, and answers with the delivered records and, if there was
one, the error. The file `ended` appears when the client has requested the offset after the last record, or the same
offset again and again; records that it delivers after that were in its buffers. This module adds the requested offsets
to the answer.

For `encode` there are `batches`, and a place without `ended`. The program sends the records of each batch to partition
0, and answers when the producer has got the acknowledgement or an error. This module adds the sent bytes to the answer
as a broker would store them: with base offsets and the leader epoch, which no producer knows. A place may have
`producer`: `idempotent` or `transactional`, each batch in a transaction of its own; the suite uses neither.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from seglog_conformance.protocol import request_line
from seglog_conformance.wire_endpoint import TOPIC_PREFIX, Endpoint
from seglog_conformance.wire_producing import unreported
from seglog_format.storage.child_processes import start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_conformance.protocol import Json

OPS: Final = ("decode", "position")
"""Operations for a consumer; its program only answers ``decode``."""
PRODUCER_OP: Final = "encode"
"""Operations for a producer, if the program has one."""

MAX_POSITIONS: Final = 1000
UNKNOWN_EPOCH: Final = -1
NO_LIMIT: Final = 1 << 30


class Client:
    """The program around a client, in JSON lines."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = start(command, directory=Path.cwd(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request: Json) -> Json:
        """Return the answer of the program; if it ends instead, end this process in the same way."""
        self.send(request)
        assert self._process.stdout is not None
        line = self._process.stdout.readline(NO_LIMIT)
        if not line.endswith(b"\n"):
            end_like(self._process.wait())
        answer: Json = json.loads(line)
        return answer

    def send(self, request: Json) -> None:
        """Write a request to the program."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request_line(request))
            self._process.stdin.flush()
        except BrokenPipeError:
            end_like(self._process.wait())

    def stop(self) -> None:
        """Ask the program to end; the runner ends any processes that remain."""
        self.send({"seq": 0, "op": "stop"})


def end_like(code: int) -> None:
    """End this process as the program has ended: by the same signal, or with the same status."""
    sys.stdout.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in {signal.SIGKILL, signal.SIGSTOP} else None
        os.kill(os.getpid(), -code)
    os._exit(code if code > 0 else 1)


class Wire:
    """Answers requests with the records that a client delivers from fetched bytes, or with the bytes that it sends."""

    def __init__(self, client: Client, endpoint: Endpoint, scratch: Path) -> None:
        self._client = client
        self._endpoint = endpoint
        self._scratch = scratch
        self._number = 0
        self._ops: tuple[str, ...] = OPS

    def answer(self, request: Json) -> Json:
        """Return the answer to one request."""
        if request["op"] == "hello":
            hello = self._client.ask(request)
            self._ops = (*OPS, PRODUCER_OP) if PRODUCER_OP in hello["ops"] else OPS
            return {**hello, "ops": list(self._ops)}
        if request["op"] not in self._ops:
            return {"skip": {"feature": f"op:{request['op']}"}}
        if request["op"] == PRODUCER_OP:
            return unreported(request["batches"]) or self._produced(request)
        found, positions = self._consumed(request)
        if request["op"] == "decode":
            return {**found, "positions": positions} if "ok" in found else found
        return {"ok": True, "positions": positions} if found.get("ok") else {**found, "batches": None}

    def _produced(self, request: Json) -> Json:
        """Return the batches that the client sends."""
        topic, partition = self._new_topic()
        first = request["batches"][0]
        try:
            start, epoch = int(first.get("baseOffset") or 0), int(first.get("partitionLeaderEpoch", UNKNOWN_EPOCH))
            captured = self._endpoint.take(partition, topic, start, epoch)
            target = {"bootstrap": self._endpoint.address, "topic": topic}
            found = self._client.ask({**request, "place": target})
            return {**found, "data": captured.data.hex()} if found.get("ok") else {**found, "batches": None}
        finally:
            partition.rmdir()

    def _new_topic(self) -> tuple[str, Path]:
        """Return a new topic name, and the empty directory of its partition."""
        self._number += 1
        topic = f"{TOPIC_PREFIX}{self._number}"
        partition = self._scratch / f"{topic}-0"
        partition.mkdir()
        return topic, partition

    def _consumed(self, request: Json) -> tuple[Json, list[str]]:
        """Return the records that the client delivers, and the offsets that it requested."""
        topic, partition = self._new_topic()
        ended = self._scratch / f"{topic}.ended"
        (partition / f"{0:020}.log").write_bytes(bytes.fromhex(request["data"]))
        try:
            watched = self._endpoint.show(partition, topic, ended)
            target = {"bootstrap": self._endpoint.address, "topic": topic, "ended": str(ended)}
            asked = {name: value for name, value in request.items() if name != "data"}
            found = self._client.ask({**asked, "op": "decode", "place": target})
            return found, [str(offset) for offset in watched.positions[:MAX_POSITIONS]]
        finally:
            shutil.rmtree(partition, ignore_errors=True)
            ended.unlink(missing_ok=True)


def main(command: Sequence[str], lines: IO[str], out: IO[str]) -> None:
    """Answer requests until there are no more.

    Args:
        command: command of the program around a client.
        lines: requests.
        out: stream for the answers.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seglog-wire-")))
        client = Client(command)
        wire = Wire(client, stack.enter_context(Endpoint()), scratch)
        for line in lines:
            request = json.loads(line)
            if request["op"] == "stop":
                break
            answer = {name: value for name, value in wire.answer(request).items() if value is not None}
            out.write(json.dumps({**answer, "seq": request["seq"]}, separators=(",", ":")) + "\n")
            out.flush()
        client.stop()


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin, sys.stdout)
