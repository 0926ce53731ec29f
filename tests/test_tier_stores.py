"""Tiers in object stores: S3 by a server on this machine, also one that fails now and then, and none at all."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tier_cases import TierCase, tier_case
from helpers.walking import each_of

from proofs.kafka.served import digest_of
from seglog_format import open_partition, open_tier
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.storage import object_store
from seglog_format.storage.object_store import ATTEMPTS

failing_store = pytest.importorskip("helpers.failing_store")
pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from helpers.failing_store import FailingStore

    from proofs.kafka.served import Isolation

BUCKET = "tier-test"
SECRET = "not-a-secret/of-anyone"  # noqa: S105 - of the server here
ORDERS = "orders-0"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[FailingStore, int]]:
    with failing_store.serving() as found:
        yield found


@pytest.fixture
def store(server: tuple[FailingStore, int]) -> Iterator[FailingStore]:
    """Return the server, which fails at nothing unless a test says so."""
    yield server[0]
    server[0].reset()


@pytest.fixture(scope="module")
def settings(server: tuple[FailingStore, int]) -> dict[str, str]:
    """Return settings of a client of the server, whose bucket holds a tier."""
    found = settings_for(server[1])
    files = fs.S3FileSystem(**found, allow_bucket_creation=True)
    files.create_dir(BUCKET)
    fs.copy_files(str(case().store), f"{BUCKET}/tier", fs.LocalFileSystem(), files)
    return found


def settings_for(port: int) -> dict[str, str]:
    keys = {"access_key": "someone", "secret_key": SECRET}
    return {**keys, "region": "us-east-1", "scheme": "http", "endpoint_override": f"127.0.0.1:{port}"}


def case() -> TierCase:
    return tier_case("aiven-both")


def orders() -> dict[str, Any]:
    return next(each for each in case().partitions() if each["topic"] == "orders")


ADDRESS = f"s3://{BUCKET}/tier"


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_tier_in_s3_is_read_as_the_broker_did(
    store: FailingStore, settings: dict[str, str], isolation: Isolation
) -> None:
    remote = open_tier(ADDRESS, keys=case().keys, settings=settings)
    with open_partition(case().local / ORDERS, remote=remote) as log:
        expected = orders()[isolation]
        assert digest_of(log.records(isolation=isolation)) == (expected["records"], expected["sha256"])
    assert store.failures == 0


def test_a_store_that_fails_every_tenth_request_is_read_all_the_same(
    store: FailingStore, settings: dict[str, str]
) -> None:
    store.every = 10
    before = store.requests
    remote = open_tier(ADDRESS, keys=case().keys, settings=settings)
    for partition in case().partitions():
        with open_partition(case().path(partition), remote=remote) as log:
            expected = partition["read_committed"]
            assert digest_of(log.records(isolation="read_committed")) == (expected["records"], expected["sha256"])
    assert store.failures > 0
    assert store.requests - before > 20


def test_requests_are_made_again_a_few_times_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the code here, below which a library may have tried again by itself."""
    monkeypatch.setattr(object_store, "FIRST_PAUSE", 0)
    plain, calls, failures = object_store.LocalObjects.read, [0], [0]

    def failing(every: int) -> Callable[..., bytes]:
        def read(objects: object_store.LocalObjects, path: str, start: int, size: int) -> bytes:
            calls[0] += 1
            if calls[0] % every == 0:
                failures[0] += 1
                msg = f"{path}: reset"
                raise UsageError(msg) from ConnectionResetError()
            return plain(objects, path, start, size)

        return read

    keys = [argument for id_, path in case().keys.items() for argument in ("--key", f"{id_}={path}")]
    command = ["tier", "fetch", "--topic", "orders", *keys, str(case().store)]
    monkeypatch.setattr(object_store.LocalObjects, "read", failing(10))
    assert run([*command, str(tmp_path / "fetched")]) in {0, 1}
    assert failures[0] > 0
    assert run(["verify", str(tmp_path / "fetched")]) == 0
    monkeypatch.setattr(object_store.LocalObjects, "read", failing(1))
    calls[0] = 0
    capsys.readouterr()
    assert run([*command, str(tmp_path / "nothing")]) == 3
    assert one_line(capsys).endswith(": reset")
    assert calls[0] % ATTEMPTS == 0
    assert not (tmp_path / "nothing").exists()


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line on standard error, which says nothing of keys."""
    found = capsys.readouterr().err
    assert found.count("\n") == 1, found
    assert SECRET not in found
    return found.strip()


@pytest.fixture
def options(settings: dict[str, str], tmp_path: Path) -> Callable[..., list[str]]:
    """Options of a command that name a store by a file of settings."""

    def named(**changed: str) -> list[str]:
        file = tmp_path / "settings"
        file.write_text("".join(f"{name}={text}\n" for name, text in (settings | changed).items()))
        return ["--settings", str(file)]

    return named


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("what", ["fetch", "dump", "serve"], ids=str)
def test_without_a_network_a_command_says_so_in_one_line_and_writes_nothing(
    what: str,
    options: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_store, "ATTEMPTS", 1)  # the library below tries several times by itself
    given = options(endpoint_override=f"127.0.0.1:{closed_port()}")
    local, target = str(case().local / ORDERS), tmp_path / "fetched"
    command = {
        "fetch": ["tier", "fetch", ADDRESS, str(target)],
        "serve": ["serve", "--port", "0", "--end-after", "0", "--state", "none", local, "--remote", ADDRESS],
    }.get(what, [what, local, "--remote", ADDRESS])
    assert run([*command, *given]) == 3
    assert f"seglog: {ADDRESS}: " in one_line(capsys)
    assert not target.exists()


SILENT = """
import sys
from types import SimpleNamespace
from seglog_format.cli.main import run
from seglog_format.storage import object_store
object_store.MAX_SILENCE, object_store.SILENCE_SECONDS, object_store.PATIENCE = 1, 1, 0
sys.exit(run(sys.argv[1:]))
"""
"""A command that waits for a store more briefly than it would."""


@each_of("scheme", ["s3", "gs"])
def test_a_store_that_accepts_connections_and_says_nothing_ends_a_command_in_one_line(
    scheme: str, options: Callable[..., list[str]]
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        command = ["dump", str(case().local / ORDERS), "--remote", ADDRESS, *options(endpoint_override=endpoint)]
        if scheme == "gs":
            command = ["tier", "ls", f"gs://anonymous@tier/t?scheme=http&endpoint_override={endpoint}"]
        done = subprocess.run(
            [sys.executable, "-c", SILENT, *command], capture_output=True, text=True, timeout=30, check=False
        )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"seglog: {ADDRESS}: " if scheme == "s3" else "seglog: gs://tier/t")
    assert done.stderr.count("\n") == 1


def test_any_error_of_a_library_below_is_one_line_with_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_selector: object) -> None:
        msg = "Unknown error: no token\nSee the log for details"
        raise pa.ArrowException(msg)

    files = SimpleNamespace(type_name="s3", get_file_info=failing)
    monkeypatch.setattr(object_store, "file_system_at", lambda *_: (files, "t"))
    with pytest.raises(UsageError, match=r"^seglog: abfs://b/t: Unknown error: no token$"):
        object_store.Store("abfs://a@b/t", {}).listed()


def test_without_a_key_a_command_names_it_and_writes_nothing(
    store: FailingStore, options: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert store.failures == 0
    given = [*options(), "--key", f"key2={case().keys['key2']}"]
    assert run(["tier", "fetch", "--topic", "orders", ADDRESS, str(tmp_path / "fetched"), *given]) == 2
    assert "no private key key1: name its file by --key key1=FILE, or put it into SEGLOG_TIER_KEY_KEY1" in one_line(
        capsys
    )
    assert run(["lookup", str(case().local / ORDERS), "--offset", "100", "--remote", ADDRESS, *given]) == 2
    assert "no private key key1" in one_line(capsys)
    assert not (tmp_path / "fetched").exists()


def test_a_lookup_fetches_a_manifest_a_slice_of_the_indexes_and_its_chunks(
    store: FailingStore, options: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [argument for id_, path in case().keys.items() for argument in ("--key", f"{id_}={path}")]
    del store
    command = ["lookup", "--json", str(case().local / ORDERS), "--offset", "400", "--remote", ADDRESS]
    assert run([*command, *options(), *keys]) == 0
    answer = json.loads(capsys.readouterr().out)
    remote = open_tier(case().store, keys=case().keys)
    with open_partition(case().local / ORDERS, remote=remote) as log:
        segment = log.segment_for(400)
        objects = remote.tier.files
        manifest = objects.size(segment.path.removeprefix(f"{case().store}/").removesuffix(".log") + ".rsm-manifest")
        indexes = objects.size(segment.path.removeprefix(f"{case().store}/").removesuffix(".log") + ".indexes")
        stored = objects.size(segment.path.removeprefix(f"{case().store}/"))
    # One of the two chunks of the segment, the offset index and the manifest: nothing of other segments.
    assert answer["fetched"]["bytes"] < manifest + indexes + 0.7 * stored
    assert answer["fetched"]["requests"] == 3
