"""A broker on 127.0.0.1 of which a consumer can ask three things: versions, metadata, and fetches of one partition."""

from __future__ import annotations

import socket
import struct
import threading

TOPIC = "t"
FETCH, METADATA, API_VERSIONS = 1, 3, 18
VERSIONS = ((0, 3, 3), (FETCH, 4, 4), (METADATA, 4, 4), (API_VERSIONS, 0, 3))
"""Key, lowest and highest version; Produce stands here because clients take its version for that of the messages."""


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class Broker:
    """Serves `data` to the first fetch, and nothing to those after it, whose offsets it keeps."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offsets: list[int] = []
        self.fetched_again = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as lines:
                while size := lines.read(4):
                    body = lines.read(struct.unpack(">i", size)[0])
                    key, version, correlation, client = struct.unpack_from(">hhih", body)
                    answer = self._answer(key, version, body[10 + max(client, 0) :])
                    connection.sendall(struct.pack(">ii", len(answer) + 4, correlation) + answer)
        except (OSError, ValueError, struct.error):
            return

    def _answer(self, key: int, version: int, body: bytes) -> bytes:
        if key == API_VERSIONS:
            return self._versions(version)
        return self._metadata() if key == METADATA else self._fetch(body)

    def _versions(self, version: int) -> bytes:
        if version < 3:
            rows = b"".join(struct.pack(">hhh", *row) for row in VERSIONS)
            return struct.pack(">hi", 0, len(VERSIONS)) + rows
        rows = b"".join(struct.pack(">hhhb", *row, 0) for row in VERSIONS)
        return struct.pack(">hb", 0, len(VERSIONS) + 1) + rows + struct.pack(">ib", 0, 0)

    def _metadata(self) -> bytes:
        broker = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">ih", self.port, -1)
        partition = struct.pack(">hiiiiii", 0, 0, 1, 1, 1, 1, 1)
        topic = struct.pack(">h", 0) + text(TOPIC) + struct.pack(">bi", 0, 1) + partition
        return struct.pack(">ii", 0, 1) + broker + struct.pack(">hi", -1, 1) + struct.pack(">i", 1) + topic

    def _fetch(self, body: bytes) -> bytes:
        # replica, wait, least, most, isolation, topics, name, partitions, partition: then the offset
        (offset,) = struct.unpack_from(">q", body, 17 + 4 + 2 + len(TOPIC) + 4 + 4)
        data = b"" if self.offsets else self.data
        if self.offsets:
            self.fetched_again.set()
            threading.Event().wait(0.02)
        self.offsets.append(offset)
        head = struct.pack(">ii", 0, 1) + text(TOPIC) + struct.pack(">iihqqi", 1, 0, 0, 1 << 62, 1 << 62, -1)
        return head + struct.pack(">i", len(data)) + data
