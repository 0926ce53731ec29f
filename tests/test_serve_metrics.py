"""What a server tells of itself: to Prometheus, and on a terminal."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from threading import Event
from typing import TYPE_CHECKING
from urllib.error import HTTPError

import pytest
from helpers.serving import serving
from helpers.support import bundled

from proofs.serve.client import Client
from seglog_format.cli.serve import status_text
from seglog_format.serve.metrics_endpoint import MetricsEndpoint

if TYPE_CHECKING:
    from pathlib import Path


def partition() -> Path:
    return next(bundled("4.3.0/segs").glob("*-0"))


def value_of(text: str, name: str) -> int:
    found = re.search(rf"^seglog_{re.escape(name)} (\d+)$", text, re.MULTILINE)
    assert found, text
    return int(found[1])


def test_prometheus_is_told_what_happened() -> None:
    with serving(partition()) as served:
        server = served.server
        with MetricsEndpoint(0, lambda: server.metrics.text(server.load)) as endpoint, served.client() as client:
            size = len(client.fetch("segs", 0).records)
            with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics") as answer:
                text = answer.read().decode()
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert value_of(text, 'requests_total{api="fetch"}') == 1
            assert value_of(text, "connections") == value_of(text, "connections_accepted_total") == 1
            assert value_of(text, "sent_bytes_total") > size
            assert 0 < value_of(text, "received_bytes_total") < 1000
            assert value_of(text, "failures_total") == value_of(text, "queued_requests") == 0
            with pytest.raises(HTTPError) as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/")
            refused.value.close()


def fail() -> None:
    message = "a fault of ours"
    raise ValueError(message)


def test_a_delayed_call_that_fails_is_reported_and_the_next_is_made() -> None:
    reported: list[str] = []
    with serving(partition(), reported=reported) as served:
        delays = served.server._delays
        called = Event()
        delays.after(0, fail)
        delays.after(0, called.set)
        assert called.wait(10)
        assert value_of(served.server.metrics.text(served.server.load), "failures_total") == 1
    assert reported == ["a delayed call failed: ValueError: a fault of ours"]


def test_a_process_counts_what_it_finds(tmp_path: Path) -> None:
    path = tmp_path / "segs-0"
    shutil.copytree(partition(), path)
    log = min(path.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", "--metrics", "0", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            process.stderr.readline()
            address = process.stderr.readline().split()[-1]
            assert address.startswith("http://127.0.0.1:")
            with Client(int(process.stderr.readline().rsplit(":", 1)[1])) as client:
                client.fetch("segs", 0)
            assert "SEG-BAT-003" in process.stderr.readline()
            with urllib.request.urlopen(address) as answer:  # noqa: S310 - as checked above
                assert value_of(answer.read().decode(), "findings_total") == 1
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_terminal_is_shown_what_is_going_on() -> None:
    reading, writing = pty.openpty()
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", "--end-after", "3", str(partition())]
    with subprocess.Popen(command, stderr=writing, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(writing)
        said, deadline = b"", time.monotonic() + 30
        while b"requests/s" not in said and time.monotonic() < deadline:
            try:
                said += os.read(reading, 1 << 12)
            except OSError:
                break
        process.kill()
    os.close(reading)
    assert b"0 connections, 0 requests/s, 0.0 MB/s" in said


def test_the_line_tells_rates() -> None:
    assert status_text(3, (10, 1_000_000, 5.0), (30, 5_000_000, 7.0)) == "3 connections, 10 requests/s, 2.0 MB/s"
