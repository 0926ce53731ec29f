"""An S3 server on 127.0.0.1 with one bucket."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moto.server import ThreadedMotoServer
from pyarrow.fs import LocalFileSystem, S3FileSystem, copy_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "cold"


class Bucket:
    """A bucket of the server.

    Attributes:
        settings: how Arrow reaches it.
    """

    def __init__(self, port: int) -> None:
        self.settings = {
            "endpoint_override": f"127.0.0.1:{port}",
            "scheme": "http",
            "region": "us-east-1",
            "access_key": "someone",
            "secret_key": "with/a+secret",
        }
        self._files = S3FileSystem(**self.settings, allow_bucket_creation=True)
        self._files.create_dir(BUCKET)

    @property
    def options(self) -> dict[str, str]:
        """The same for a query."""
        return {f"storage.{name}": value for name, value in self.settings.items()}

    def put(self, directory: Path, name: str) -> str:
        """Copy a directory into the bucket; its address."""
        copy_files(str(directory), f"{BUCKET}/{name}", LocalFileSystem(), self._files)
        return f"s3a://{BUCKET}/{name}"

    def write(self, name: str, data: bytes) -> None:
        """Write one file."""
        with self._files.open_output_stream(f"{BUCKET}/{name}") as file:
            file.write(data)


def bucket_server() -> Iterator[Bucket]:
    """Run a server in this process until the generator ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield Bucket(server.get_host_and_port()[1])
    finally:
        server.stop()
