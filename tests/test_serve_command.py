"""``seglog serve`` as a process: it tells where it listens, answers, ends on a signal, and leaves no trace."""

from __future__ import annotations

import hashlib
import shutil
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from helpers.serving import serving
from helpers.support import bundled
from kio.schema.errors import ErrorCode

from proofs.serve.client import METADATA, Client
from seglog_format.cli.main import run
from seglog_format.cli.serve import check_exposure, resolved
from seglog_format.errors import UsageError
from seglog_format.serve.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Provide a log directory with two partitions in use, and three that are not."""
    segs = next(bundled("4.3.0/segs").glob("*-0"))
    unique = "0123456789abcdef0123456789abcdef"
    for name in ("segs-0", "segs-3", f"segs-1.{unique}-delete", f"segs-2.{unique}-stray", f"segs-4.{unique}-future"):
        shutil.copytree(segs, tmp_path / "data" / name)
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    return tmp_path / "data"


def sums(directory: Path) -> dict[str, str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_serves_until_it_is_told_to_end(directory: Path, number: signal.Signals) -> None:
    before = sums(directory)
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", str(directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == "seglog: 1 topic, 2 partitions\n"
            said = process.stderr.readline()
            assert said.startswith("seglog: listening on 127.0.0.1:")
            with Client(int(said.rsplit(":", 1)[1])) as client:
                metadata = client.ask(METADATA, 9, topics=None)
                assert metadata.cluster_id == "abc"
                assert [each.partition_index for each in metadata.topics[0].partitions] == [0, 3]
                assert client.fetch("segs", 0, number=3).records
            process.send_signal(number)
            assert process.wait(SECONDS) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()
    assert sums(directory) == before


def test_a_server_that_still_recovers_its_logs_ends_when_it_is_told_to(directory: Path) -> None:
    script = (
        "import sys, time; from seglog_format.cli.main import run; from seglog_format.serve.writing import Writers\n"
        "def recover(*_):\n    print('recovering', flush=True)\n    while True: time.sleep(0.01)\n"
        "Writers.open = recover; run(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, "serve", "--writable", "--port", "0", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "recovering\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == -signal.SIGTERM
        finally:
            process.kill()


def test_options_say_what_the_server_takes_by_itself() -> None:
    from seglog_format.cli import serve

    assert (
        DEFAULT_LIMITS.request_items,
        DEFAULT_LIMITS.batch_parts,
    ) == (serve.MAX_REQUEST_ITEMS, serve.MAX_BATCH_PARTS)
    assert DEFAULT_LIMITS.held_size == 40 << 20


UNNEEDED = (
    "construct",
    "numba",
    "numpy",
    "pyarrow",
    "rich",
    "cramjam",
    "zstandard",
    "lz4",
    "json",
    "hashlib",
    "pickle",
)
"""What a start has no use for; nor for what others bring along, nor for these of our own."""
BROUGHT_ALONG = ("asyncio", "hypothesis", "logging", "ssl", "typing_extensions")
LATER = (
    "serve.side_files",
    "serve.groups",
    "serve.api_groups",
    "serve.api_produce",
    "serve.writing",
    "columnar",
    "schema.fields",
    "codec.plain",
    "codec.message_set",
    "codec.container_headers",
)


def test_a_start_and_a_fetch_load_no_more_than_they_need(directory: Path) -> None:
    (directory / "log-start-offset-checkpoint").write_bytes(b"0\n1\nsegs 3 1\n")
    script = "import sys; from seglog_format.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", script, "serve", "--port", "0", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = next(line for line in process.stderr if "listening" in line)
            with Client(int(said.rsplit(":", 1)[1])) as client:
                assert client.fetch("segs", 1, number=3).log_start_offset == 1
            process.send_signal(signal.SIGTERM)
            loaded = set(process.communicate(timeout=SECONDS)[0].split())
        finally:
            process.kill()
    assert "seglog_format.serve.api_fetch" in loaded
    assert not loaded & {*UNNEEDED, *BROUGHT_ALONG, *(f"seglog_format.{name}" for name in LATER)}


def test_who_needs_what_a_start_leaves_out_gets_it() -> None:
    script = "import seglog_format.serve, asyncio, typing_extensions; print(asyncio.run, typing_extensions.Protocol)"
    subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=SECONDS, check=True)


def test_partitions_that_are_not_in_use_are_not_served(directory: Path) -> None:
    with serving(directory) as served, served.client() as client:
        for number in (1, 2, 4):
            assert client.fetch("segs", 0, number=number).error_code is ErrorCode.unknown_topic_or_partition


def test_the_same_partition_in_two_directories_is_told(directory: Path, tmp_path: Path) -> None:
    shutil.copytree(directory / "segs-0", tmp_path / "other" / "segs-0")
    with serving(directory, tmp_path / "other" / "segs-0") as served:
        assert [text for text in served.findings if "the same partition" in text]


LOCAL = ("127.0.0.1", "127.0.0.2", "localhost", "::1", "[::1]", "::ffff:127.0.0.1")
EVERYWHERE = ("0.0.0.0", "", "::", "[::]")  # noqa: S104 - nobody listens there
OPEN = (*EVERYWHERE, "::ffff:0.0.0.0", "192.0.2.1", "fe80::1%1")


@pytest.mark.parametrize("host", [*LOCAL, *OPEN])
@pytest.mark.parametrize("writable", [False, True])
def test_an_address_that_others_can_reach_is_warned_of(
    capsys: pytest.CaptureFixture[str], host: str, *, writable: bool
) -> None:
    check_exposure(resolved(host), writable=writable, remote_writes_allowed=True)
    expected = "read and write everything" if writable else "can read everything"
    assert (expected in capsys.readouterr().err) is (host in OPEN)


@pytest.mark.parametrize("host", EVERYWHERE)
def test_nobody_else_may_write_unless_that_is_wanted(
    directory: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    before = sums(directory)
    command = ["serve", "--port", "0", "--end-after", "0", "--writable", "--host", host, str(directory)]
    assert run(command) == 2
    assert "--allow-remote-writes" in capsys.readouterr().err
    assert sums(directory) == before


def test_a_name_is_judged_by_where_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(UsageError, match=r"192\.0\.2\.1"):
        check_exposure(resolved("localhost"), writable=True, remote_writes_allowed=False)


def test_what_is_not_there_cannot_be_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--port", "0", str(tmp_path / "nowhere")]) == 2
    (tmp_path / "meta.properties").write_text("")
    assert run(["serve", "--port", "0", str(tmp_path)]) == 2
    assert "no partition directory to serve" in capsys.readouterr().err
