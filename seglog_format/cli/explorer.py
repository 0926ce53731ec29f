"""``seglog explorer``: the explorer in the browser, with files of this machine."""

from __future__ import annotations

import http.server
import json
import os
import re
import secrets
import time
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import click

import seglog_format
from seglog_format.cli.options import PATH
from seglog_format.cli.output import diagnose
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


LARGEST_TOTAL: Final = 2 << 30
"""Bytes of all files together; a browser keeps them while the page is open."""
REST_SECONDS: Final = 120

EPILOG: Final = """\b
Examples:
  seglog explorer
  seglog explorer my-topic-0
  seglog explorer --no-browser my-topic-0/00000000000000000000.log"""


@click.command(epilog=EPILOG)
@click.argument("path", type=PATH, required=False)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port of 127.0.0.1; by default any."
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening it.")
@click.option(
    "--rest",
    "rest_seconds",
    type=click.FloatRange(min=1),
    default=REST_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="End after no page has been open for this long.",
)
def command(path: Path | None, *, port: int, no_browser: bool, rest_seconds: float) -> int:
    """Open the explorer in the browser, with the files at PATH: a partition directory, or a file and its segment.

    Nothing leaves this machine: a server on 127.0.0.1 hands the page and the files to the browser, and ends by itself
    when the page is closed. Without PATH, drop files on the page or choose a sample.
    """
    try:
        server = ExplorerServer(_named(_files(path)) if path else {}, port, rest_seconds)
    except OSError as error:
        msg = f"port {port}: {error.strerror}"
        raise UsageError(msg) from error
    with server:
        diagnose(server.address)
        if not no_browser:
            webbrowser.open(server.address)
        server.serve_until_closed()
    return 0


def _files(path: Path) -> list[Path]:
    """Return the files of a partition directory, or those of the segment of a file.

    Raises:
        UsageError: the path is neither, or the files are too large together.
    """
    from seglog_format.cli.paths import partition_directory_at
    from seglog_format.log.listing import list_partition

    if path.is_file():
        stem = path.name.partition(".")[0]
        beside = [
            one.path for one in list_partition(path.absolute().parent).files if one.path.name.startswith(f"{stem}.")
        ]
        found = [path, *(one for one in beside if stem.isdecimal() and one.name != path.name)]
    else:
        found = [one.path for one in list_partition(partition_directory_at(path)).files]
    if sum(one.stat().st_size for one in found) > LARGEST_TOTAL:
        msg = f"{path}: more than 2 GiB for a browser; name a file of one segment"
        raise UsageError(msg)
    return found


def _named(files: Iterable[Path]) -> dict[str, Path]:
    return {f"{one.absolute().parent.name}/{one.name}": one for one in files}


# -- serves the explorer and the files to look at, to a browser of this machine; it ends when the page is closed ------


TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".md": "text/plain"}
START_SECONDS: Final = 60.0
"""Time in which the first page has to be asked for."""
POLL_SECONDS: Final = 0.2
PIECE_SIZE: Final = 1 << 20
SCRIPT: Final = '<script src="explorer.js" defer></script>'
MODULES: Final = '<script type="module" src="main.js"></script>'
CHAPTER: Final = re.compile(r"spec/([\w-]+)/index\.html")


class Answer(NamedTuple):
    """The content at a path: bytes with their type, or a file that is sent piece by piece."""

    kind: str
    data: bytes = b""
    file: Path | None = None


def sources() -> tuple[Path, Path]:
    """Return the directories of the explorer and of the specification: those of the package, or those of a clone."""
    package = Path(seglog_format.__file__).parent
    if (package / "_explorer").is_dir():
        return package / "_explorer", package / "_spec"
    return package.parent / "docs" / "explorer", package.parent / "spec"


class ExplorerServer(http.server.ThreadingHTTPServer):
    """The server; `address` is the page.

    Args:
        files: files to show, by the path that the page shows.
        port: to listen on; 0 for any.
        rest_seconds: after which it ends without a sign of life from the page.
    """

    daemon_threads = True

    def __init__(self, files: Mapping[str, Path], port: int, rest_seconds: float) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._files, self._rest = dict(files), rest_seconds
        self._root = f"/{secrets.token_urlsafe(16)}/"
        self._ends_at = time.monotonic() + max(START_SECONDS, rest_seconds)
        self.host = f"127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{self.host}{self._root}explorer/index.html"

    def serve_until_closed(self) -> None:
        """Answer until the page is closed."""
        self.timeout = POLL_SECONDS
        while time.monotonic() < self._ends_at:
            self.handle_request()

    def answer(self, target: str) -> Answer | None:
        """Return the content at a path; None if there is none."""
        path = unquote(urlsplit(target).path)
        if not path.startswith(self._root):
            return None
        self._ends_at = max(self._ends_at, time.monotonic() + self._rest)
        return self._below(path.removeprefix(self._root))

    def _below(self, path: str) -> Answer | None:
        explorer, specification = sources()
        if path == "explorer/alive":
            return Answer("text/plain")
        if path.startswith("explorer/files/"):
            file = self._files.get(path.removeprefix("explorer/files/"))
            return None if file is None else Answer("application/octet-stream", file=file)
        if chapter := CHAPTER.fullmatch(path):
            return _text(specification / f"{chapter[1]}.md")
        folder, _, name = path.partition("/")
        if folder != "explorer" or "/" in name or Path(name).suffix not in {".html", ".css", ".js"}:
            return None
        return self._page(explorer) if name == "index.html" else _text(explorer / name)

    def _page(self, explorer: Path) -> Answer:
        """Return the page: with the names of the files, and with scripts that may ask this server for them."""
        given = escape(json.dumps(list(self._files)))
        text = (explorer / "index.html").read_text(encoding="utf-8").replace(SCRIPT, MODULES)
        text = text.replace("connect-src 'none'", "connect-src 'self'")
        meta = f'<meta name="seglog-files" content="{given}">'
        return Answer("text/html", text.replace("<title>", f"{meta}\n<title>", 1).encode())


def _text(path: Path) -> Answer | None:
    return Answer(TYPES[path.suffix], path.read_bytes()) if path.is_file() else None


class _Handler(http.server.BaseHTTPRequestHandler):
    server: ExplorerServer

    def do_GET(self) -> None:
        found = self.server.answer(self.path) if self.headers["Host"] == self.server.host else None
        if found is None:
            self.send_error(404)
            return
        if found.file is not None:
            self._send_file(found.file)
            return
        self._begin(found.kind, len(found.data))
        self.wfile.write(found.data)

    def _begin(self, kind: str, size: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
        self.send_header("Content-Length", str(size))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def _send_file(self, path: Path) -> None:
        """Send a file up to the size that it has now; a broker may be appending to it."""
        try:
            with path.open("rb") as source:
                left = os.fstat(source.fileno()).st_size
                self._begin("application/octet-stream", left)
                while left and (piece := source.read(min(left, PIECE_SIZE))):
                    self.wfile.write(piece)
                    left -= len(piece)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""
