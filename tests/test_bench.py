"""The benchmark at a tiny size: that all find the same contents, not how long they take."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.kafka import kafka_at_hand

from proofs.kafka.oracle import Oracle
from seglog_format import LogConfig, PartitionWriter, new_record

np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).resolve().parent.parent
CLIENTS = REPOSITORY / "build" / "bench" / "peers" / "clients" / "built"
SETS = ("u100", "h100", "s100", "jlz4", "jzstd", "jsnappy", "jgzip", "m1u100", "m1lz4")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of the benchmarks can be imported."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))


def bench(target: Path, programs: list[str], works: list[str]) -> list[dict[str, object]]:
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "bench.py"), "--scale", "0.0002", "--rounds", "1"]
    command += ["--parts", "works", "--json", str(target), "--data", *SETS, "--programs", *programs, "--works", *works]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(target.read_text(encoding="utf-8"))
    assert set(report["missing"]) == {"kafkarrow"}
    return report["results"]


def test_the_reference_finds_what_was_written(tmp_path: Path) -> None:
    results = bench(tmp_path / "bench.json", ["ours"], ["visit"])
    reference = [row for row in results if row["contender"] == "seglog-format reference"]
    assert len(reference) == len(SETS)
    assert all(row["agrees"] for row in reference)


@pytest.mark.skipif(not CLIENTS.exists(), reason="Python's clients are not built: make bench builds them")
def test_clients_of_kafka_find_what_was_written(tmp_path: Path) -> None:
    results = bench(tmp_path / "bench.json", ["clients"], ["crc", "objects", "encode"])
    assert {row["contender"] for row in results} == {"aiokafka", "kafka-python"}
    assert all(row["agrees"] for row in results)


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("cut", [0, 1, 65_536, 70_000])
def test_parts_that_were_read_apart_come_to_the_same(cut: int) -> None:
    from contents import MODULUS, MULTIPLIER, Part

    words = np.random.default_rng(1).integers(0, 2**64, 70_000, np.uint64)
    number = 0
    for word in words.tolist():
        number = (number * MULTIPLIER + word) % MODULUS
    assert Part().then(words[:cut]).joined(Part().then(words[cut:])) == Part(number, len(words))


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("limit", "ratio_needed"),
    [(10.0, 2.5), (2.4, round(0.85 * 2.4, 3)), (1.95, round(0.85 * 1.95, 3)), (0.5, 2.5)],
    ids=["far", "near", "passed by noise", "no limit"],
)
def test_a_target_beyond_the_limit_becomes_a_part_of_it(limit: float, ratio_needed: float) -> None:
    from ratios import ratios

    rival = {"work": "visit", "data": "u100", "contender": "franz-go", "median": 1.0}
    ours = {"work": "columns", "data": "u100", "contender": "seglog-format", "median": 0.5}
    [row] = [row for row in ratios([rival, ours], {"logsPerSecond": {"crc": {"u100": limit}}}) if "ratio" in row]
    assert row["ratio"] == 2.0
    assert row.get("limited", row["atLeast"]) == ratio_needed
    assert row["met"] is (ratio_needed <= 2.0)


def run_on(processor: str, commit: str, ratio: float) -> dict[str, Any]:
    row = {"title": "columns", "data": "u100", "against": "Java", "atLeast": 1.0, "ratio": ratio, "met": True}
    machine = {"processor": processor, "cores": 2, "system": "Linux", "architecture": "x86_64"}
    made = {"command": "make bench", "commit": commit, "date": "2026-11-28", "dirty": False, "versions": {}}
    return {"made": {**made, "machine": machine}, "ratios": [row]}


@pytest.mark.usefixtures("scripts")
def test_runs_on_two_kinds_of_processor_stand_side_by_side() -> None:
    from ratios import other_processors

    from tools.docs import performance_page

    assert other_processors(None, "EPYC") == []
    first = run_on("Xeon", "aaaaaaaa", 1.25)
    assert other_processors(first, "Xeon") == []
    second = {**run_on("EPYC", "bbbbbbbb", 1.5), "otherProcessors": other_processors(first, "EPYC")}
    assert second["otherProcessors"] == [first]
    third = {**run_on("Xeon", "cccccccc", 2.25), "otherProcessors": other_processors(second, "Xeon")}
    assert [each["made"]["commit"] for each in third["otherProcessors"]] == ["bbbbbbbb"]
    shown = "\n".join(performance_page._ratios(third))
    for text in ("| columns | `u100` | at least 1.0 | Java | **2.25** |", "`bbbbbbbb`", "| Java | **1.50** |"):
        assert text in shown


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(("large", "is_met"), [(0.000069, True), (0.000071, False)])
def test_cold_lookups_may_grow_by_a_fifth_and_10_microseconds(large: float, *, is_met: bool) -> None:
    from ratios import ratios

    cold = {"work": "lookup-cold", "contender": "seglog-format, trusting indexes"}
    java = {"work": "lookup-cold", "contender": "Java, mapped", "data": "u100_8m", "median": 0.00001}
    ours = [{**cold, "data": "u100_8m", "median": 0.00005}, {**cold, "data": "u100_96m", "median": large}]
    rows = ratios([*ours, java], {})
    met = {(row["title"], row["data"]): row.get("met") for row in rows}
    assert met == {
        ("trusted lookup, cold", "u100_8m"): False,
        ("trusted lookup, cold", "u100_96m"): None,
        ("trusted lookup, cold, time", "u100_8m"): True,
        ("trusted lookup, cold, time", "u100_96m"): True,
        ("trusted lookup, cold, growth", "u100_96m"): is_met,
    }


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(("processor_seconds", "is_met"), [(0.76, True), (0.78, False)])
def test_a_goal_is_met_by_processor_time_and_its_own_rival(processor_seconds: float, *, is_met: bool) -> None:
    from ratios import ratios

    java = {"work": "recover", "data": "u100", "contender": "Java FileRecords", "median": 0.1, "processorSeconds": 1.0}
    ours = {**java, "contender": "seglog-format", "median": 9.0, "processorSeconds": processor_seconds}
    [row] = [row for row in ratios([java, ours], {}) if row["title"] == "recover and apply"]
    assert (row["against"], row["met"]) == ("Java FileRecords, by processor time", is_met)


@pytest.mark.usefixtures("scripts")
def test_a_command_that_fails_is_a_row_that_is_missed(tmp_path: Path) -> None:
    from datasets import DataSet
    from goals import Goals

    with PartitionWriter(tmp_path / "orders-0", LogConfig()) as writer:
        writer.append([new_record(value=b"%d" % number) for number in range(9)])
    log = tmp_path / "orders-0" / "00000000000000000000.log"
    goals = Goals({"u100_1g": DataSet("u100_1g", log, records=9, batches=1)}, rounds=1, scale=1)
    goals.home = tmp_path / "goals"
    for name in ("range salvage --from --to", "range dump --to"):
        time, memory = goals.measured(name)
        assert time["ratio"] > 0
        assert 0 < memory["ratio"] < 1
        assert not goals.home.exists()
    shutil.rmtree(log.parent)
    assert [row["met"] for row in goals.measured("range salvage --from --to")] == [False, False]


@pytest.mark.usefixtures("scripts")
def test_no_measured_export_goes_on_with_the_table_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import goals
    from datasets import DataSet

    found = []

    class Exported:
        seconds, peak = 1.0, 10**8

        def __init__(self, _: str, *arguments: object, cache: Path | None = None) -> None:
            assert cache is None
            if arguments:
                table = Path(str(arguments[arguments.index("--to") + 1]))
                found.append(table.exists())
                table.mkdir(exist_ok=True)

    measuring = goals.Goals({"u100_1g": DataSet("u100_1g", tmp_path / "a.log", records=9, batches=1)}, 3, 1)
    measuring.home = tmp_path / "goals"
    monkeypatch.setattr(goals, "Ran", Exported)
    time, _ = measuring.measured("range export --since")
    assert (found, time["ratio"]) == ([False, False, False], 3.333)


@pytest.mark.usefixtures("scripts")
def test_one_failure_loses_no_other_piece_and_a_run_can_go_on(tmp_path: Path) -> None:
    from pieces import Pieces

    def fails() -> None:
        msg = "no such peer"
        raise OSError(msg)

    said: list[str] = []
    pieces = Pieces(tmp_path / "pieces", {"scale": 1}, said.append)
    assert pieces.measured("good", lambda: [1.5]) == [1.5]
    assert pieces.measured("bad", fails) is None
    assert pieces.failed == {"bad": "OSError: no such peer"}
    again = Pieces(tmp_path / "pieces", {"scale": 1}, said.append, resume=True)
    assert again.measured("good", fails) == [1.5]
    assert again.measured("bad", lambda: 2) == 2
    assert Pieces(tmp_path / "pieces", {"scale": 0.1}, said.append, resume=True).measured("good", lambda: 3) == 3


@pytest.mark.usefixtures("scripts")
def test_a_peer_that_ends_is_told_of_and_known_to_have_ended() -> None:
    from pipe import PeerError, Process

    program = 'import sys; sys.stdin.readline(); print(\'{"version": "1"}\', flush=True); sys.stdin.readline()'
    with Process("short", [sys.executable, "-c", program], {}) as process:
        assert not process.has_ended
        with pytest.raises(PeerError, match="short does not answer"):
            process.run("scan")
        assert process.has_ended


@pytest.mark.usefixtures("scripts")
def test_a_rival_that_cannot_start_fails_its_piece_instead_of_being_slow() -> None:
    from wholes import process_seconds

    with pytest.raises(subprocess.CalledProcessError):
        process_seconds([sys.executable, "-c", "raise SystemExit(1)"])


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("size", [99, 100, 149, 150, 1_000])
def test_a_log_that_is_repeated_stays_within_the_size(tmp_path: Path, size: int) -> None:
    from datasets import DataSet
    from wholes import repeated

    batches = [bytes(8) + length.to_bytes(4, "big") + bytes(length) for length in (38, 88)]
    log = tmp_path / "two-batches.log"
    log.write_bytes(b"".join(batches))
    found = repeated(DataSet("two batches", log, records=2), size, tmp_path / "repeated-0").stat().st_size
    assert size - 50 < found <= size


@pytest.mark.usefixtures("scripts")
def test_appending_is_measured_beside_kafkas_classes(tmp_path: Path) -> None:
    import append
    from harness import measure

    with kafka_at_hand(), Oracle(append.RELEASE, project=append.APPENDS) as kafka:
        appending = append.Appending(append.Case(10, 3, 2 * append.SHARE_OF_LEADER), 1, tmp_path, kafka)
        found = append.result(appending, measure(list(appending.peers()), 1))
    assert set(found["peers"]) == {append.LEADER, append.FOLLOWER, append.SEGMENT, append.BROKER}
    assert len(found["ratios"]) == 4
    assert all(speed["appendsPerSecond"] > 0 for speed in found["peers"].values())


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("records", "batches"), [(2_500_000, 16_384), (90_000, 512), (7919 * 3, 7919), (100, 7), (3, 1)]
)
@pytest.mark.parametrize("passes", [3, 7])
def test_lookups_repeat_neither_an_offset_nor_a_batch(records: int, batches: int, passes: int) -> None:
    from session import LOOKUPS, looked_up

    found = [offset for number in range(passes) for offset in looked_up(records, batches, passes, number)]
    assert len(found) == passes * min(LOOKUPS, batches // passes)
    assert all(0 <= offset < records for offset in found)
    assert len({offset * batches // records for offset in found}) == len(found)
