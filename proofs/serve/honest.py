"""An honest client in a process of its own: ``python -m proofs.serve.honest PORT read|write``.

It sends requests continuously, on a permanent connection and on new ones, until its standard input ends. Then it writes
a JSON report: the longest time of each kind of request, the failures, and the acknowledged records.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from collections import Counter
from threading import Thread
from typing import Final

from proofs.serve.wire import API_VERSIONS, METADATA, Connection, batch, fetch, header, produce

PAUSE_SECONDS: Final = 0.02


class Honest:
    """Sends requests and measures their times."""

    def __init__(self, port: int, *, is_writing: bool) -> None:
        self._port = port
        self._connection = Connection(port)
        self._worst: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()
        self._acknowledged: dict[int, str] = {}
        self._is_writing = is_writing

    def work(self) -> None:
        """Send each request once."""
        versions = header(API_VERSIONS, 0)
        self._timed("ApiVersions", versions)
        self._timed("Metadata", header(METADATA, 1) + struct.pack(">i", -1))
        answer = self._timed("Fetch", fetch(0))
        if answer is not None and b"\0\0\0\0" not in answer:
            self._wrong["Fetch"] += 1
        if self._is_writing:
            self._produce()
        self._timed("ApiVersions on a new connection", versions, is_new=True)

    def _produce(self) -> None:
        value = f"honest-{self._counts['Produce']}"
        answer = self._timed("Produce", produce(batch(value.encode())))
        if answer is None:
            return
        # Answer: correlation id, one topic with its name, one partition: number, error, base offset
        position = 4 + 4 + 2 + len("orders") + 4 + 4
        error, offset = struct.unpack_from(">hq", answer, position)
        if error:
            self._wrong[f"Produce: error {error}"] += 1
        else:
            self._acknowledged[offset] = value

    def _timed(self, name: str, body: bytes, *, is_new: bool = False) -> bytes | None:
        began = time.monotonic()
        try:
            if is_new:
                with Connection(self._port) as connection:
                    answer = connection.ask(body)
            else:
                answer = self._connection.ask(body)
        except OSError:
            answer = None
        took = time.monotonic() - began
        self._counts[name] += 1
        self._worst[name] = max(self._worst.get(name, 0.0), took)
        if answer is None:
            self._closed[name] += 1
            if not is_new:
                self._connect_again()
        return answer

    def _connect_again(self) -> None:
        self._connection.close()
        while True:
            try:
                self._connection = Connection(self._port)
            except OSError:
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def found(self) -> dict[str, object]:
        """Return the report."""
        return {
            "worst_seconds": {name: round(seconds, 3) for name, seconds in self._worst.items()},
            "asked": dict(self._counts),
            "closed": dict(self._closed),
            "wrong": dict(self._wrong),
            "acknowledged": {str(offset): value for offset, value in self._acknowledged.items()},
        }


def main() -> None:
    """Send requests until standard input ends."""
    port, is_writing = int(sys.argv[1]), sys.argv[2] == "write"
    Honest(port, is_writing=False).work()  # one-time loading in the first requests is not an effect of an attack
    honest = Honest(port, is_writing=is_writing)
    print("ready", flush=True)
    ended = Thread(target=sys.stdin.read, daemon=True)
    ended.start()
    while ended.is_alive():
        honest.work()
        time.sleep(PAUSE_SECONDS)
    print(json.dumps(honest.found()), flush=True)


if __name__ == "__main__":
    main()
