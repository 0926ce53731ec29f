"""What groups commit outlives the server, in a directory of its own."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import serving
from helpers.support import bundled
from kio.schema.errors import ErrorCode

from proofs.serve.client import Client
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOIN, COMMIT, COMMITTED = 11, 8, 9
SECONDS = 60


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shutil.copytree(next(bundled("4.3.0/segs").glob("*-0")), tmp_path / "data" / "segs-0")
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    return tmp_path / "data"


@contextmanager
def process(*arguments: object, end: signal.Signals = signal.SIGTERM) -> Iterator[tuple[Client, list[str]]]:
    """Provide a server in a process of its own, a client of it, and what it says on standard error."""
    command = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        said: list[str] = []
        try:
            for line in running.stderr:
                said.append(line)
                if "listening on" in line:
                    break
            with Client(int(said[-1].rsplit(":", 1)[1])) as client:
                yield client, said
            running.send_signal(end)
            said += running.communicate(timeout=SECONDS)[1].splitlines()
        finally:
            running.kill()


def commit(client: Client, offset: int, *, group: str = "g", metadata: str | None = "m") -> ErrorCode:
    row = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": 7,
        "committed_metadata": metadata,
    }
    member_fields = {"group_id": group, "member_id": "", "generation_id_or_member_epoch": -1, "retention_time": -1}
    answer = client.ask(
        COMMIT, 7, **member_fields, group_instance_id=None, topics=[{"name": "segs", "partitions": [row]}]
    )
    found: ErrorCode = answer.topics[0].partitions[0].error_code
    return found


def committed(client: Client, group: str = "g") -> tuple[int, str, int]:
    topics = [{"name": "segs", "partition_indexes": [0]}]
    row: Any = client.ask(COMMITTED, 7, group_id=group, topics=topics, require_stable=False).topics[0].partitions[0]
    return row.committed_offset, row.metadata, row.committed_leader_epoch


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "seglog" / "serve"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_committed_is_there_after_a_restart(directory: Path, home: Path, end: signal.Signals) -> None:
    before = sorted(directory.rglob("*"))
    with process(directory, end=end) as (client, _):
        assert commit(client, 17) is ErrorCode.none
        assert commit(client, 19) is ErrorCode.none
        assert commit(client, 3, group="other", metadata="") is ErrorCode.none
    with process(directory) as (client, _):
        assert committed(client) == (19, "m", 7)
        assert committed(client, "other") == (3, "", 7)
        assert committed(client, "none")[0] == -1
    assert sorted(directory.rglob("*")) == before
    (state,) = home.iterdir()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_other_directories_have_other_state(directory: Path, home: Path, tmp_path: Path) -> None:
    shutil.copytree(directory, tmp_path / "other")
    with process(directory) as (client, _):
        assert commit(client, 17) is ErrorCode.none
    with process(tmp_path / "other") as (client, _):
        assert committed(client)[0] == -1
    with process(directory / ".." / "data") as (client, _):
        assert committed(client)[0] == 17
    assert len([*home.iterdir()]) == 2


def test_without_state_commits_are_kept_in_memory(directory: Path, home: Path) -> None:
    with process("--state", "none", directory) as (client, _):
        assert commit(client, 17) is ErrorCode.none
        assert committed(client)[0] == 17
    assert not home.exists()


@pytest.mark.parametrize("inside", ["data", "data/state", "data/segs-0", "data/segs-0/x"])
def test_state_is_never_where_logs_are(directory: Path, capsys: pytest.CaptureFixture[str], inside: str) -> None:
    before = sorted(directory.rglob("*"))
    for served in (directory, directory / "segs-0"):
        assert run(["serve", "--port", "0", "--state", str(directory.parent / inside), str(served)]) == 2
        assert "which is served" in capsys.readouterr().err
    assert sorted(directory.rglob("*")) == before


def test_two_servers_do_not_share_their_state(directory: Path, tmp_path: Path) -> None:
    with process("--state", tmp_path / "state", directory):
        second = [sys.executable, "-m", "seglog_format.cli", "serve", "--port", "0", "--end-after", "0"]
        result = subprocess.run(
            [*second, "--state", str(tmp_path / "state"), str(directory)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert result.returncode == 2
    assert "in use by another server" in result.stderr


DAMAGES = {
    "cut": lambda data: data[:-9],
    "a changed byte": lambda data: data.replace(b"17", b"71"),
    "empty": lambda _: b"",
    "garbage": lambda _: b"\xff" * 100,
    "deep": lambda _: b"[" * 100_000,
    "another version": lambda data: data.replace(b'"version": 1', b'"version": 9'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_state_is_told_of_and_set_aside(directory: Path, tmp_path: Path, damage: str) -> None:
    state = tmp_path / "state"
    with serving(directory, state=state_of(state)) as served, served.client() as client:
        assert commit(client, 17) is ErrorCode.none
    (state / "groups.jsonl").write_bytes(damaged := DAMAGES[damage]((state / "groups.jsonl").read_bytes()))
    reported: list[str] = []
    with serving(directory, state=state, reported=reported) as served, served.client() as client:
        assert committed(client)[0] == -1
        assert commit(client, 18) is ErrorCode.none
    assert len(reported) == 1
    (aside,) = state.glob("groups.jsonl.damaged-*")
    assert aside.read_bytes() == damaged
    with serving(directory, state=state) as served, served.client() as client:
        assert committed(client)[0] == 18


def state_of(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_commit_that_cannot_be_written_is_refused(directory: Path, tmp_path: Path) -> None:
    state = state_of(tmp_path / "state")
    reported: list[str] = []
    with serving(directory, state=state, reported=reported) as served, served.client() as client:
        assert commit(client, 17) is ErrorCode.none
        (state / "groups.jsonl.tmp").mkdir()
        assert commit(client, 18) is ErrorCode.coordinator_not_available
        assert commit(client, 19) is ErrorCode.coordinator_not_available
        (state / "groups.jsonl.tmp").rmdir()
        assert commit(client, 20) is ErrorCode.none
    assert len(reported) == 1
    last = (state / "groups.jsonl").read_bytes().splitlines()[-2]
    assert json.loads(last)["offsets"][0][2] == 20


def test_commits_of_many_clients_share_writes(directory: Path, tmp_path: Path) -> None:
    state = state_of(tmp_path / "state")

    def work(number: int) -> None:
        with served.client() as client:
            for offset in range(20):
                assert commit(client, offset, group=f"g{number}") is ErrorCode.none

    with serving(directory, state=state) as served:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with serving(directory, state=state) as served, served.client() as client:
        assert [committed(client, f"g{number}")[0] for number in range(8)] == [19] * 8


def test_random_groups_lock_out_no_honest_one(directory: Path) -> None:
    with serving(directory) as served, served.client() as client:
        for number in range(1100):
            assert commit(client, 1, group=f"random-{number}") is ErrorCode.none
        assert commit(client, 5, group="honest") is ErrorCode.none
        assert committed(client, "honest")[0] == 5


def test_members_that_are_silent_make_room_for_new_ones(directory: Path) -> None:
    member = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"m"}]}
    fields = {"session_timeout": 1_800_000, "rebalance_timeout": 1_800_000, **member}
    with serving(directory, limits={"members": 20}) as served:
        clients = [served.client() for _ in range(25)]
        for number, client in enumerate(clients):
            joined = client.ask(JOIN, 3, group_id=f"g{number}", member_id="", **fields)
            assert joined.error_code is ErrorCode.none
        for client in clients:
            client.close()
