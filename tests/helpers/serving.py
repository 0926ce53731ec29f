"""A server in this process, to talk to."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

from proofs.serve.client import Answer, Client
from seglog_format.serve.catalog import CatalogOptions, open_catalog
from seglog_format.serve.limits import Limits, Settings
from seglog_format.serve.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.serve.kept_offsets import OffsetsByGroup
    from seglog_format.serve.writing import Writers


class Served(SimpleNamespace):
    """A running server: its port, what it found, and where it failed."""

    port: int
    findings: list[str]
    failures: list[str]
    server: Server

    def client(self) -> Client:
        """Open a connection to this server."""
        return Client(self.port)


@contextmanager
def serving(
    *paths: Path,
    options: CatalogOptions | None = None,
    writers: Writers | None = None,
    limits: dict[str, Answer] | None = None,
    state: Path | None = None,
    committed_offsets: OffsetsByGroup | None = None,
    reported: list[str] | None = None,
    **settings: Answer,
) -> Iterator[Served]:
    """Provide a server over these directories; it must not have failed at anything, unless a list for that is given."""
    findings: list[str] = []
    failures: list[str] = [] if reported is None else reported
    if writers is not None:
        options = (options or CatalogOptions())._replace(end_of=writers.end_of)
    catalog = open_catalog(paths, on_finding=findings.append, options=options)
    if writers is not None:
        writers.open(catalog.topics)
    all_settings = Settings(port=0, limits=Limits(**limits or {}), **settings)
    server = Server(catalog, all_settings, failures.append, writers, state=state)
    server.committed_offsets = committed_offsets or {}
    with server:
        yield Served(port=server.address.port, findings=findings, failures=failures, server=server)
    assert reported is not None or failures == []
