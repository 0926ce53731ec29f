"""The explorer in a browser: it shows what the reference reads, finds what the reference finds, and asks nobody."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import random
import re
import shutil
import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import node_tools
from helpers.damage import Case, damaged_cases
from helpers.node_support import need_browser, need_node, serving
from helpers.support import REPOSITORY, bundled, bundled_cases

from seglog_format.checks import verify
from seglog_format.cli import explorer
from seglog_format.cli.explorer import ExplorerServer
from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, decode_offset_checkpoint
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError
from seglog_format.field_names import kafka_name
from seglog_format.inspection.entries import entry_blocks
from seglog_format.inspection.files import slots_block, snapshot_block
from seglog_format.lines.sources import SourceKind
from seglog_format.log.partition import open_partition
from seglog_format.requirements import Severity, requirements
from tools.docs import explorer_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from seglog_format.inspection import Block

    Ask: TypeAlias = Callable[..., Any]

SCRIPT = REPOSITORY / "tests" / "node" / "explorer.cjs"
OPENER = REPOSITORY / "tests" / "node" / "explorer_open.cjs"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
TEXT_NAMES = ("-checkpoint", "partition.metadata")
LARGEST_OPENED = 3_000_000
"""Bytes of a file that is opened in the browser; only preallocated indexes are larger."""
CASES_OPENED = ("0.8.2.2/", "0.10.2.2/", "4.3.0/")
"""Bundled cases whose every file is opened, beside those of crashes: each format is among them."""
SLOTS = {".index": (0, 8), ".timeindex": (0, 12), ".txnindex": (0, 34), ".snapshot": (10, 46)}
"""Where the first entry of a file stands, and bytes of each."""
INDEX_KINDS = {
    ".index": SourceKind.OFFSET_INDEX,
    ".timeindex": SourceKind.TIME_INDEX,
    ".txnindex": SourceKind.TRANSACTION_INDEX,
}
NOT_FOUND_THERE = {
    **{
        f"SEG-COD-{number:03}": "named where the batch is looked at: what is compressed is not expanded during the walk"
        for number in (2, 3, 4, 6, 9, 10, 14, 16, 21, 22, 23)
    },
    "SEG-IDX-010": "says what readers use, and is no finding",
    "SEG-TIX-009": "says what readers use, and is no finding",
}
"""Requirements that the explorer names without ever finding them broken."""
INSIDE_GZIP = ("bat-008-trailing-bytes-in-gzip", "msg-009-empty-wrapper")
"""Damaged cases that show only in what is decompressed."""


@pytest.fixture(scope="module")
def browser() -> str:
    return need_browser("the test of the explorer")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    explorer_page.write(root / "explorer")
    return root


@pytest.fixture(scope="module")
def origin(site: Path) -> Iterator[str]:
    with serving(site) as address:
        yield address


@pytest.fixture
def ask(browser: str, origin: str) -> Ask:
    """Provide what runs a scenario of the script; no error and no request to another host is allowed."""

    def run(scenario: str, question: object = None, *, seconds: float = 180) -> dict[str, Any]:
        text = json.dumps(question)
        answer: dict[str, Any] = json.loads(
            node_tools.node(SCRIPT, browser, origin, scenario, text=text, seconds=seconds)
        )
        assert answer["errors"] == []
        assert answer["elsewhere"] == []
        found: dict[str, Any] = answer["answer"]
        return found

    return run


def test_the_tables_are_what_the_schemas_say() -> None:
    committed = (REPOSITORY / explorer_page.TABLES).read_text(encoding="utf-8")
    assert committed == explorer_page.tables(), "make docs writes them anew"


def test_the_samples_are_bytes_of_the_fixtures() -> None:
    committed = (REPOSITORY / explorer_page.SAMPLE_FILES).read_text(encoding="utf-8")
    assert committed == explorer_page.samples(), "make docs writes them anew"


def test_every_rule_that_is_named_has_its_place_on_the_site() -> None:
    named = set(explorer_page.IDENTIFIER.findall(explorer_page.bundle()))
    assert named <= requirements().keys()
    for identifier in named:
        chapter = REPOSITORY / "spec" / f"{requirements()[identifier].chapter}.md"
        assert f"[{identifier}]:" in chapter.read_text(encoding="utf-8")


# Fields of the samples


def test_every_field_of_the_samples_is_that_of_the_reference(ask: Ask, tmp_path: Path) -> None:
    assert compare_samples(ask("samples"), tmp_path) > 3500


def compare_samples(found: dict[str, Any], tmp_path: Path) -> int:
    """Compare every field of every sample; the number of fields that were compared."""
    assert found.keys() == explorer_page.SAMPLES.keys()
    count = 0
    for name, sample in explorer_page.SAMPLES.items():
        for file, data in sample.contents().items():
            path = tmp_path / file
            path.write_bytes(data)
            shown = found[name][file]
            assert shown["size"] == len(data)
            count += compare(path, memoryview(data), shown)
    return count


def compare(path: Path, data: memoryview, shown: dict[str, Any]) -> int:
    """Compare what is shown of a file, row by row; the number of fields that were compared."""
    if path.suffix == ".log":
        wanted = [list(logs_fields(data, frame.position)) for frame in walk(data)]
        rows = [block for row in shown["rows"] for block in row]
        flat = [block for row in wanted for block in row]
    elif path.suffix in INDEX_KINDS:
        base = int(path.stem)
        block, _ = slots_block(INDEX_KINDS[path.suffix], data, base_offset=base, first=0, count=None)
        rows, flat = [block for row in shown["rows"] for block in row], [fields(block)]
    elif path.suffix == ".snapshot":
        rows, flat = shown["rows"][0], [fields(snapshot_block(data))]
    else:
        return compare_text(path, bytes(data), shown)
    rows = [[row for row in block if row[0] != "tail"] for block in rows]
    assert rows == flat
    return sum(len(block) for block in flat)


def logs_fields(data: memoryview, position: int) -> Iterator[list[list[Any]]]:
    """Yield the blocks of an entry: what is stored, and what its codec makes of that."""
    blocks, _ = entry_blocks(data, name="", start=position, count=1)
    yield from map(fields, blocks)


def fields(block: Block) -> list[list[Any]]:
    """Name, start, end and value of every field that is no group."""
    return [
        [kafka_name(one.name), block.position + one.start, block.position + one.end, text(one.name, one.value)]
        for one in block.fields
        if not one.is_group and one.name != "tail"
    ]


def text(name: str, value: object) -> str | None:
    if name == "records" and isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return None if value is None else str(value)


def compare_text(path: Path, data: bytes, shown: dict[str, Any]) -> int:
    values = [row[3] for row in shown["rows"][0][0]]
    decoded: Iterable[Iterable[object]]
    if path.name == "leader-epoch-checkpoint":
        decoded = decode_leader_epoch_checkpoint(data).entries
    else:
        decoded = decode_offset_checkpoint(data).entries
    rows = [str(value) for entry in decoded for value in entry]
    assert values == ["0", str(shown["length"]), *rows]
    return len(rows)


# Findings


def known_there() -> set[str]:
    """Return the requirements that the explorer's own modules name."""
    sources = [path for path in explorer_page.SOURCES.glob("*.js") if path.name != "tables.js"]
    return {one for path in sources for one in explorer_page.IDENTIFIER.findall(path.read_text(encoding="utf-8"))}


def opened(directory: Path) -> list[Path]:
    """Return the files of a directory that are opened together."""
    return [
        path
        for path in sorted(directory.iterdir())
        if (path.suffix in SUFFIXES or path.name.endswith(TEXT_NAMES)) and 0 < path.stat().st_size < LARGEST_OPENED
    ]


def of_reference(path: Path) -> dict[str, set[tuple[str, int]]]:
    """Return requirement and place of every error and warning of the rules that the explorer knows, by file."""
    known = known_there() - NOT_FOUND_THERE.keys()
    directory = path if path.is_dir() else path.parent
    found: dict[str, set[tuple[str, int]]] = {}
    for finding in verify(path):
        if finding.requirement in known and finding.severity is not Severity.NOTE:
            name = Path(finding.location.path).name
            entry_position = entry_position_of(directory / name, finding.location.position)
            found.setdefault(name, set()).add((finding.requirement, entry_position))
    return found


def of_explorer(path: Path, found: list[list[Any]]) -> set[tuple[str, int]]:
    return {(identifier, entry_position_of(path, at)) for identifier, severity, at in found if severity != "note"}


def entry_position_of(path: Path, position: int) -> int:
    """Start of the entry that a position lies in: both tell of an entry, but not always of the same byte in it."""
    if path.suffix == ".log":
        return max((start for start in entry_starts(path) if start <= position), default=0)
    if path.name.endswith(TEXT_NAMES):
        return 0
    first, size = SLOTS.get(path.suffix, (0, 1))
    return position if position < first else position - (position - first) % size


@functools.cache
def entry_starts(path: Path) -> list[int]:
    walked = walk(path.read_bytes())
    starts = []
    with contextlib.suppress(FormatError):
        starts.extend(frame.position for frame in walked)
    return [*starts, walked.position]


def test_findings_in_bundled_files_are_those_of_the_reference(ask: Ask) -> None:
    cases = [name for name in bundled_cases() if name.startswith(CASES_OPENED) or "crash" in name]
    directories = {
        f"{name}: {log.parent.relative_to(bundled(name))}": log.parent
        for name in cases
        for log in bundled(name).rglob("*.log")
    }
    groups = {name: opened(directory) for name, directory in directories.items()}
    groups = {name: paths for name, paths in groups.items() if paths}
    answers = ask("findings", {name: [str(path) for path in paths] for name, paths in groups.items()}, seconds=500)
    count = 0
    for name, paths in groups.items():
        wanted = of_reference(directories[name])
        for path in paths:
            found = of_explorer(path, answers[name][path.name])
            assert found == wanted.get(path.name, set()), f"{name}: {path.name}"
            count += len(found)
    assert len(groups) > 50
    assert count > 50


def damaged_files(tmp_path: Path) -> Iterator[tuple[Case, Path]]:
    """Damaged files of kinds that the explorer opens, each with what stands beside it."""
    known = known_there() - NOT_FOUND_THERE.keys()
    for case in damaged_cases():
        is_seen = case.violates[0] in known and case.name not in INSIDE_GZIP
        path = case.build(tmp_path / case.name) if is_seen else None
        if path is not None and path.is_file() and (path.suffix in SUFFIXES or path.name.endswith(TEXT_NAMES)):
            yield case, path


def test_damage_is_found_where_the_reference_finds_it(ask: Ask, tmp_path: Path) -> None:
    cases = list(damaged_files(tmp_path))
    groups = {case.name: [str(one) for one in opened(path.parent) if one.stem == path.stem] for case, path in cases}
    answers = ask("findings", groups)
    differences = {}
    for case, path in cases:
        found, wanted = of_explorer(path, answers[case.name][path.name]), of_reference(path).get(path.name, set())
        if found != wanted:
            differences[case.name] = found, wanted
        named = {identifier for identifier, *_ in answers[case.name][path.name]}
        if not set(case.violates) <= named:
            differences[case.name] = named, set(case.violates)
    assert differences == {}, "\n".join(map(repr, differences.items()))
    broken = {identifier for case, _ in cases for identifier in case.violates}
    assert known_there() - broken - NOT_FOUND_THERE.keys() == {"SEG-MSG-009"}, "each rule but that inside gzip"


NAMES = {
    "log": f"{0:020}.log",
    "offset-index": f"{0:020}.index",
    "time-index": f"{0:020}.timeindex",
    "transaction-index": f"{0:020}.txnindex",
    "producer-snapshot": f"{0:020}.snapshot",
    "offset-checkpoint": "replication-offset-checkpoint",
    "leader-epochs": "leader-epoch-checkpoint",
    "partition-metadata": "partition.metadata",
}


def hostile_files(changes: random.Random) -> Iterator[dict[str, str]]:
    """Small files of every kind, whole, cut, and with bytes changed."""
    inputs = json.loads((REPOSITORY / "fixtures" / "hostile" / "inputs.json").read_text(encoding="utf-8"))
    for one in inputs:
        if one["kind"] not in NAMES:
            continue
        data = bytes.fromhex(one["hex"])
        yield {"name": NAMES[one["kind"]], "hex": data.hex()}
        for _ in range(60):
            changed = bytearray(data[: changes.randrange(len(data) + 1)] if changes.random() < 0.3 else data)
            for _ in range(changes.randrange(1, 4) if changed else 0):
                changed[changes.randrange(len(changed))] = changes.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, changes.randrange(256))
                )
            yield {"name": NAMES[one["kind"]], "hex": changed.hex()}


def test_hostile_files_are_shown_and_nothing_is_thrown(tmp_path: Path) -> None:
    need_node("opening files without a browser")
    for path in explorer_page.SOURCES.glob("*.js"):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    seed = random.SystemRandom().randrange(1 << 32)
    files = list(hostile_files(random.Random(seed)))  # noqa: S311 - a seed that a failure names
    answers = json.loads(node_tools.node(OPENER, str(tmp_path), text=json.dumps(files)))
    wrong = [(file, answer) for file, answer in zip(files, answers, strict=True) if answer]
    assert wrong == [], f"seed {seed}"
    assert len({file["name"] for file in files}) == len(NAMES)


# Lookups


def test_lookups_lead_where_the_reference_goes(ask: Ask) -> None:
    directories = {name: next(bundled(name).rglob("*.log")).parent for name in ("4.3.0/segs-fine", "4.3.0/txn")}
    questions, wanted = {}, {}
    for name, directory in directories.items():
        log = sorted(directory.glob("*.log"))[1]
        frames = list(walk(log.read_bytes()))
        last = frames[-1].header.last_offset
        offsets = list(range(int(log.stem), last + 2, 3))
        timestamps = [frame.header.max_timestamp_ms + step for frame in frames[::3] for step in (-1, 0, 1)]
        questions[name] = {
            "paths": [str(log.with_suffix(suffix)) for suffix in (".log", ".index", ".timeindex")],
            "offsets": offsets,
            "timestamps": timestamps,
        }
        with open_partition(directory) as partition:
            segment = partition.segment_for(int(log.stem))
            positions = [segment.position_of(offset) for offset in offsets]
        younger = [[one.position for one in frames if one.header.max_timestamp_ms >= limit] for limit in timestamps]
        wanted[name] = {
            "offsets": ["" if position is None else str(position) for position in positions],
            "timestamps": [str(found[0]) if found else "" for found in younger],
        }
    assert ask("lookups", questions) == wanted


# The page


def test_a_file_of_something_else_is_called_so(ask: Ask) -> None:
    answer = ask("foreign", str(REPOSITORY / "README.md"))
    assert answer["state"].endswith("this is not one of Kafka's files: no entry of a log begins here")
    assert answer["findings"] == 0


def test_a_directory_offers_its_partitions(ask: Ask, tmp_path: Path) -> None:
    for case in ("4.3.0/one", "4.3.0/segs"):
        (log, *_) = sorted(bundled(case).rglob("*.log"))
        shutil.copytree(log.parent, tmp_path / "data" / log.parent.name)
    (tmp_path / "data" / "notes.txt").write_text("nothing", encoding="utf-8")
    answer = ask("directory", str(tmp_path / "data"))
    assert answer["offered"] == ["one-0", "segs-0"]
    assert "00000000000000000000.log" in answer["first"]
    logs = {path.name for path in (tmp_path / "data" / "segs-0").glob("*.log")}
    assert logs <= set(answer["last"])
    assert answer["axe"] == []


def test_links_lead_to_file_position_and_field(ask: Ask) -> None:
    (small,) = bundled("4.3.0/one").rglob("00000000000000000000.log")
    (large,) = bundled("4.3.0/segs").rglob("00000000000000000102.log")
    answer = ask("links", {"segment": [], "small": [str(small)], "large": [str(large)]})
    assert answer.pop("opened") == 0
    assert {name: (one["name"], one["same"], one["holds"]) for name, one in answer.items()} == {
        "segment": ("crc", True, False),
        "small": ("crc", True, True),
        "large": ("crc", True, False),
    }
    assert answer["large"]["file"] == large.name


@pytest.mark.parametrize("case", ["4.3.0/one", "4.3.0/codec-zstd", "4.3.0/codec-lz4", "0.8.2.2/codec-snappy"])
def test_the_command_hands_files_to_the_page(case: str, browser: str) -> None:
    (log, *_) = sorted(bundled(case).rglob("*.log"))
    answer = ask_the_command(browser, "given", {f"p/{log.name}": log})
    shown = answer["files"][log.name]
    assert shown["size"] == log.stat().st_size
    assert compare(log, memoryview(log.read_bytes()), shown) > 10


def test_the_command_opens_the_samples_of_the_site(browser: str, tmp_path: Path) -> None:
    assert compare_samples(ask_the_command(browser, "servedSamples", {}), tmp_path) > 3500


def test_the_command_ends_when_no_page_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "START_SECONDS", 0.2)
    with ExplorerServer({}, 0, rest_seconds=0.2) as server:
        begin = time.monotonic()
        server.serve_until_closed()
    assert 0.1 < time.monotonic() - begin < 10


def ask_the_command(browser: str, scenario: str, files: dict[str, Path]) -> dict[str, Any]:
    """Run a scenario on the page that the command serves."""
    server = ExplorerServer(files, 0, rest_seconds=20)
    thread = threading.Thread(target=server.serve_until_closed)
    with server:
        thread.start()
        text = node_tools.node(SCRIPT, browser, f"http://{server.host}", scenario, text=json.dumps(server.address))
        server._ends_at = 0.0
        thread.join(30)
    assert not thread.is_alive()
    answer = json.loads(text)
    assert (answer["errors"], answer["elsewhere"]) == ([], [])
    found: dict[str, Any] = answer["answer"]
    return found


def test_the_server_answers_its_own_page_only(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    with ExplorerServer({"p/a.log": tmp_path / "secret"}, 0, 60) as server:
        root = server.address.removesuffix("explorer/index.html").removeprefix(f"http://{server.host}")
        found = server.answer(f"{root}explorer/files/p/a.log")
        assert found is not None
        assert found.file == tmp_path / "secret"
        for path in ("main.js", "index.html", "../../pyproject.toml", "files/p/b.log", "%2e%2e/README.md", "x.py"):
            known = server.answer(f"{root}explorer/{path}")
            assert (known is not None) == (path in {"main.js", "index.html"}), path
        assert server.answer("/explorer/index.html") is None
        assert server.answer(f"{root}spec/30-record-batch/index.html") is not None
        assert server.answer(f"{root}spec/..%2f..%2fREADME/index.html") is None
        thread = threading.Thread(target=server.serve_until_closed, daemon=True)
        thread.start()
        for host, status in ((server.host, 200), ("evil.test", 404)):
            connection = http.client.HTTPConnection(server.host, timeout=10)
            connection.request("GET", f"{root}explorer/files/p/a.log", headers={"Host": host})
            answer = connection.getresponse()
            assert (answer.status, b"secret" in answer.read()) == (status, status == 200)
            connection.close()
        server._ends_at = 0.0
        thread.join(10)


def test_pointing_following_findings_colours_and_widths(ask: Ask) -> None:
    answer = ask("look", {"screenshot": os.environ.get("SEGLOG_SCREENSHOT", "")})
    assert answer["axe"] == {view: [] for view in answer["axe"]}
    assert answer["fieldOfByte"] == "magic"
    assert re.fullmatch(r"[0-9a-f]{8}", answer["bytesOfField"])
    assert "CRC-32C" in answer["detail"]
    assert answer["rule"] == "../spec/30-record-batch/index.html#seg-bat-003"
    assert (answer["arrows"], answer["lost"]) == (44, 0)
    assert answer["chosenArrow"] == "1"
    assert answer["followed"].startswith("4–5")  # noqa: RUF001 - as it is written there
    assert [item.split()[:4] for item in answer["damaged"]] == [["error", "SEG-BAT-003", "at", "14,722"]]
    assert answer["damagedLinks"] == ["../spec/30-record-batch/index.html#seg-bat-003"]
    assert answer["keptField"] == "crc"
    assert answer["themeChanges"]
    assert answer["darkBackground"] == "rgb(21, 24, 28)"
    assert answer["narrow"][0] <= answer["narrow"][1]
    assert answer["narrowBytes"] == 8


LARGE = 50 << 20


def test_a_log_of_50_mb_stays_responsive(ask: Ask, tmp_path: Path) -> None:
    first = next(iter(walk((bundled("4.3.0/segs-fine") / "segs-fine-0" / f"{0:020}.log").read_bytes())))
    batch, count = bytearray(first.data), 2
    log, index = tmp_path / f"{0:020}.log", tmp_path / f"{0:020}.index"
    number = LARGE // len(batch)
    with log.open("wb") as file:
        for one in range(number):  # the base offset is outside the checksum
            struct.pack_into(">q", batch, 0, one * count)
            file.write(batch)
    slots = [(one * count, one * len(batch)) for one in range(1, number, 40)]
    index.write_bytes(b"".join(struct.pack(">ii", *slot) for slot in slots))
    answer = ask("large", {"paths": [str(log), str(index)]}, seconds=170)
    assert f"{number:,} entries" in answer["state"]
    assert "every checksum is right" in answer["state"]
    assert f"{(number - 1) * len(batch):,}" in answer["last"]
    assert answer["drawn"] < 100
    assert answer["windowSize"] < 2 << 20
    assert answer["longest"] < 1500
    assert answer["seconds"] < 60


def test_it_runs_from_a_disk(ask: Ask, site: Path) -> None:
    answer = ask("disk", {"url": (site / "explorer" / "index.html").as_uri()})
    assert "46 entries" in answer["state"]
