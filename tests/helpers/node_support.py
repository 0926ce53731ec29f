"""Programs of node in tests, and a browser: where they are missing a test is skipped with a reason, except in CI."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from helpers import node_tools
from helpers.support import need

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def need_node(why: str) -> None:
    """Skip where there is no node; where there is one and CI runs, its packages have to come."""
    need(why, node_tools.TOOL_CHAIN)
    try:
        node_tools.modules()
    except node_tools.NodeToolsError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{why} needs packages of node, which could not be fetched: {error}")


def need_browser(why: str) -> str:
    """Return the Chromium of this machine; skips where there is none."""
    found = node_tools.browser()
    if found is None:
        pytest.skip(f"{why} needs Chromium, which this machine does not have")
    need_node(why)
    return found


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class gives it
        pass


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """Provide the origin at which a directory is served on this machine."""
    handler = functools.partial(_Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
