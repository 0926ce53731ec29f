"""The command line: what it prints where, how it exits, and that nothing in a file can steer a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tomllib
from cProfile import Profile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from helpers.made_partitions import entry
from helpers.support import REPOSITORY, bundled, vector

from seglog_format.cli import ls, output
from seglog_format.cli.main import COMMANDS, VERSION, run, seglog
from seglog_format.log.entry_table import EntryTable
from seglog_format.log.partition import open_partition

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = "00000000000000000000.log"

UNKNOWN_ID, MISSPELT_ID = (f"SEG-{rest}" for rest in ("IDX-999", "IXD-004"))
"""Put together here, because an id that no chapter defines may stand nowhere."""
FINE, FINDINGS, USAGE, UNREADABLE, NOT_WRITTEN = range(5)
SEGLOG = [sys.executable, "-m", "seglog_format.cli"]


class Seglog:
    """Runs a command within the test's process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *args: object, status: int = FINE) -> str:
        out, _ = self.both(*args, status=status)
        return out

    def both(self, *args: object, status: int = FINE) -> tuple[str, str]:
        found = run([str(arg) for arg in args])
        out, err = self.capsys.readouterr()
        assert found == status, err
        return out, err

    def lines(self, *args: object, status: int = FINE) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*args, "--json", status=status).splitlines()]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Seglog:
    return Seglog(capsys)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Provide a log file with one good batch, in a partition directory."""
    path = tmp_path / "my-topic-0" / LOG
    path.parent.mkdir()
    path.write_bytes(vector("V-06"))
    return path


@pytest.fixture
def damaged(log: Path) -> Path:
    data = bytearray(vector("V-06"))
    data[-1] ^= 1
    log.write_bytes(bytes(data) + vector("V-20"))
    return log


@pytest.fixture(scope="module")
def segments() -> Path:
    return bundled("4.3.0/segs") / "segs-0"


@pytest.fixture(scope="module")
def crashed() -> Path:
    """Provide the log directory of a killed broker, in which a bit was flipped afterwards."""
    return bundled("2.8.2/crash-flip") / "before"


# The frame: version, help, errors, streams


def test_version_is_that_of_the_package(cli: Seglog) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cli("--version") == f"seglog {project['version']}\n" == f"seglog {VERSION}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_version_and_help_import_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from seglog_format.cli.main import run
run({arguments})
heavy = {{"construct", "rich", "lz4", "zstandard", "cramjam", "crcmod", "numpy", "importlib.metadata"}}
print(sorted(heavy & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_help_names_every_command(cli: Seglog) -> None:
    out = cli("--help")
    for name, text in COMMANDS.items():
        assert name in out
        assert text in " ".join(out.split())
    assert "seglog ls /var/lib/kafka/data" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(cli: Seglog, name: str) -> None:
    out = cli(name, "--help")
    assert f"seglog {name} " in out.split("Examples:")[1]
    assert ("--json" in out) == (name not in {"completion", "explorer"})  # a script, a page


def test_commands_work_under_clicks_own_runner(log: Path) -> None:
    result = CliRunner().invoke(seglog, ["dump", "--json", str(log)])
    assert result.exit_code == FINE
    assert json.loads(result.stdout.splitlines()[1])["baseOffset"] == 10


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["dump"],
        ["dump", "--no-such-option", "x"],
        ["dump", "--bytes", "latin1", "x"],
        ["dump", "--limit", "1x", "x"],
        ["lookup", "x"],
        ["lookup", "x", "1", "--timestamp", "2"],
        ["lookup", "x", "--timestamp", "yesterday"],
        ["explain", UNKNOWN_ID],
        ["schema", "NoSuchStructure"],
        ["inspect", "x", "--offset", "1", "--batch", "1"],
    ],
)
def test_wrong_usage(cli: Seglog, arguments: list[str]) -> None:
    out, err = cli.both(*arguments, status=USAGE)
    assert out == ""
    assert "Error" in err or err.startswith("seglog: ")


@pytest.mark.parametrize("name", ["ls", "dump", "inspect", "verify", "recover", "retain"])
def test_path_that_does_not_exist_is_wrong_usage(cli: Seglog, name: str, tmp_path: Path) -> None:
    out, err = cli.both(name, tmp_path / "missing", status=USAGE)
    assert (out, err.count("\n")) == ("", 1)
    assert "no such file or directory" in err.lower()


@pytest.mark.parametrize("arguments", [["lookup", "{}", "1"], ["diff", "{}", "{}"]])
def test_path_that_does_not_exist_for_commands_with_more(cli: Seglog, arguments: list[str], tmp_path: Path) -> None:
    cli.both(*(part.format(tmp_path / "missing") for part in arguments), status=USAGE)


def test_path_that_cannot_be_followed_is_unreadable(cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    _, err = cli.both("dump", tmp_path / "loop", status=UNREADABLE)
    assert err.startswith("seglog: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission_is_unreadable(cli: Seglog, log: Path) -> None:
    log.chmod(0)
    for arguments in (["dump", log], ["verify", log], ["ls", log], ["inspect", log]):
        cli.both(*arguments, status=UNREADABLE)


def test_file_that_cannot_be_opened_is_unreadable(cli: Seglog, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: object, *args: int, **options: int) -> int:
        if str(path) == str(log):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    for name in ("dump", "ls", "inspect"):
        _, err = cli.both(name, log, status=UNREADABLE)
        assert "Permission denied" in err


def test_module_can_be_run(log: Path) -> None:
    found = subprocess.run([*SEGLOG, "dump", "--json", str(log)], capture_output=True, text=True, check=True)
    assert len(found.stdout.splitlines()) == 6
    assert found.stderr == ""


def test_closed_pipe_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(vector("V-06") * 2000)
    with subprocess.Popen(
        [*SEGLOG, "dump", "--json", "--no-records", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith(b'{"type":"file"')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_output_that_cannot_show_a_character_escapes_it(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("über", encoding="utf-8")
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    found = subprocess.run([*SEGLOG, "dump", str(tmp_path)], capture_output=True, check=True, env=ascii_only)
    assert b"\\xfcber" in found.stdout


def on_a_terminal(*args: object, **environment: str) -> str:
    """Return what a command writes to a terminal that is both standard output and standard error."""
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [*SEGLOG, *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(terminal)
    shown = b""
    try:
        while select.select([control], [], [], 60)[0]:
            part = os.read(control, 4096)
            if not part:
                break
            shown += part
    except OSError:
        pass  # how a terminal says that nobody writes to it any more
    process.wait()
    os.close(control)
    return shown.decode()


def test_colour_on_a_terminal_only_and_not_against_no_color(damaged: Path, cli: Seglog) -> None:
    assert "\x1b[31merror" in on_a_terminal("verify", damaged)
    assert "\x1b" not in on_a_terminal("verify", damaged, NO_COLOR="1")
    assert "\x1b" not in cli("verify", damaged, status=FINDINGS)


def test_bytes_in_colour_on_a_terminal(log: Path, cli: Seglog) -> None:
    assert "\x1b[" in on_a_terminal("inspect", log)
    assert "\x1b[3" not in on_a_terminal("inspect", log, NO_COLOR="1")
    assert "\x1b" not in cli("inspect", log)


def evil_batch() -> bytes:
    """V-06 with an escape sequence in the place of the last key and value."""
    import google_crc32c

    batch = bytearray(vector("V-06"))
    assert batch.endswith(b"k\x04vv\x00")
    batch[-5:-1] = b"\x1b\x04\x9b\x07"
    batch[17:21] = google_crc32c.value(bytes(batch[21:])).to_bytes(4)
    return bytes(batch)


@pytest.mark.req("SEG-PDR-027")
@pytest.mark.parametrize("name", ["dump", "inspect", "verify", "ls", "recover", "retain"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_nothing_in_a_file_or_its_name_steers_the_terminal(
    cli: Seglog, tmp_path: Path, name: str, options: list[str]
) -> None:
    directory = tmp_path / "a\x1b[31m\u202e-0"
    directory.mkdir()
    (directory / LOG).write_bytes(evil_batch())
    (directory / "leader-epoch-checkpoint").write_bytes(b"\x1b]0;owned\x07\n")
    path = directory / LOG if name == "inspect" else directory
    status = run([name, str(path), *options])
    out, err = cli.capsys.readouterr()
    assert status in (FINE, FINDINGS)
    for text in (out, err):
        assert not any(not character.isprintable() for character in text.replace("\n", ""))


def test_name_that_is_no_text(cli: Seglog, tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/top\xffic-0"))
    directory.mkdir()
    (directory / LOG).write_bytes(vector("V-06"))
    for name in ("dump", "ls", "verify", "recover", "retain"):
        for options in ([], ["--json"]):
            run([name, str(directory), *options])
            out, err = cli.capsys.readouterr()
            (out + err).encode()  # no lone surrogate is left
    _, err = cli.both("dump", tmp_path / "\udcff", status=USAGE)
    assert "\\udcff" in err


# dump


def test_dump_prints_text(cli: Seglog, log: Path) -> None:
    assert cli("dump", log).splitlines() == [
        f"{LOG}: 87 bytes",
        "  @0: offsets 10 to 12, 87 bytes, 3 records, magic 2, none, CreateTime 1970-01-01T00:00:01.005Z, crc 2a41a989",
        "    10  1970-01-01T00:00:01.000Z  null = a",
        "    11  1970-01-01T00:00:01.005Z  k = null",
        "    12  1970-01-01T00:00:01.003Z  k = vv",
        "  end: 1 batch, 3 records, 87 of 87 bytes",
    ]


def test_dump_prints_every_kind_of_file(cli: Seglog) -> None:
    out = cli("dump", bundled("4.3.0/txn"))
    for words in ("offset index: ", "time index: ", "transaction index: ", "producer snapshot: ", "ABORT", "topic_id"):
        assert words in out


def test_dump_of_a_damaged_log_is_a_finding(cli: Seglog, damaged: Path) -> None:
    assert "DAMAGED" in cli("dump", damaged, status=FINDINGS)
    lines = cli.lines("dump", damaged, status=FINDINGS)
    assert [line["isValid"] for line in lines if line["type"] == "batch"] == [False, True]


def test_dump_with_options(cli: Seglog, log: Path) -> None:
    assert [line["type"] for line in cli.lines("dump", log, "--no-records")] == ["file", "batch", "logEnd"]
    batch, record = cli.lines("dump", log, "--from", 12, "--bytes", "hex", "--raw")
    assert (batch["baseOffset"], record["value"], record["offsetDelta"]) == (10, "7676", 2)
    *_, record, _ = cli.lines("dump", log, "--digest-over", 1)
    assert record["value"]["bytes"] == 2
    assert f"{LOG}:" in cli("dump", log, "--to", 11)


def test_dump_refuses_beyond_the_limit(cli: Seglog, log: Path) -> None:
    log.write_bytes(vector("V-09"))
    assert "refused: " in cli("dump", log, "--limit", "10", status=UNREADABLE)
    assert "refused: " not in cli("dump", log, "--limit", "1k")


def test_dump_decodes_kafkas_own_topics(cli: Seglog) -> None:
    out = cli("dump", "--decode", bundled("4.3.0/consumer-offsets"))
    assert '"type":"offsetCommit"' in out
    assert "LEADER_CHANGE" in cli("dump", "--decode", bundled("4.3.0/cluster-metadata"), "--to", 1)


@pytest.mark.parametrize(("wrong", "meant"), [("verfy", "verify"), ("lok", "lookup"), ("dmup", "dump")])
def test_a_misspelt_command_is_answered_with_the_right_one(cli: Seglog, wrong: str, meant: str) -> None:
    _, err = cli.both(wrong, "my-topic-0", status=USAGE)
    assert err.count(f"Did you mean '{meant}'?") == 1
    assert "Did you mean" not in cli.both("zzzz", status=USAGE)[1]


@pytest.mark.parametrize(
    ("width", "gone"), [(130, []), (120, ["last time"]), (80, ["last time", "first time"]), (20, ["magic", "index"])]
)
def test_a_list_of_segments_fits_the_terminal(width: int, gone: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    row = ["102", "156", "11.5 KiB", "9", "2026-11-21T01:41:22.570Z", "2026-11-21T01:41:23.381Z", "2", "none", "2/2"]
    heading, line, *rest = output.table(ls.SEGMENT_COLUMNS, [[*row, "ok"]], ls.OPTIONAL_COLUMNS)
    assert len(line) <= max(width, 60)
    assert not [name for name in gone if name in heading or name not in rest[0]]
    monkeypatch.setattr(output, "terminal_width", lambda: None)
    assert all(cell in output.table(ls.SEGMENT_COLUMNS, [[*row, "ok"]])[1] for cell in row)


# inspect


def test_inspect_prints_a_row_for_each_field(cli: Seglog, log: Path) -> None:
    first, _, batch, *rows = cli("inspect", log).splitlines()
    assert first == f"bytes 0 to 87 of {LOG}"
    assert batch.split() == ["0", "87", "batch", "@0", "offsets", "10", "to", "12"]
    assert any(" 2a 41 a9 89 " in row and " crc " in row and " 0x2a41a989  right " in row for row in rows)


def test_inspect_file_with_position(cli: Seglog, log: Path) -> None:
    log.write_bytes(vector("V-06") + vector("V-20"))
    for address in ([f"{log}:87"], [log, "--position", 87], [log, "--offset", 100], [log, "--batch", 1]):
        assert "bytes 87 to 148" in cli("inspect", *address)
    cli.both("inspect", f"{log}:87", "--position", 87, status=USAGE)
    assert len(cli.lines("inspect", log, "--all")) > len(cli.lines("inspect", log))


def test_inspect_of_damage_is_a_finding(cli: Seglog, damaged: Path) -> None:
    assert "WRONG" in cli("inspect", damaged, status=FINDINGS)


@pytest.mark.parametrize("form", ["hex", "base64", "raw"])
def test_inspect_standard_input(cli: Seglog, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    import base64

    data = vector("V-08")
    content = {"hex": data.hex().encode(), "base64": base64.b64encode(data), "raw": data}[form]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "entries found at 0" in cli("inspect", "-")


def test_inspect_writes_a_page(cli: Seglog, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    out, err = cli.both("inspect", log, "--html", page)
    assert out == ""
    assert "wrote" in err
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


# verify


def test_verify_of_a_sound_directory(cli: Seglog, segments: Path) -> None:
    assert cli("verify", segments) == "no problems found (38 files, 75 batches checked)\n"
    assert cli("verify", "--json", segments) == ""


def test_verify_takes_several_paths(cli: Seglog, segments: Path, crashed: Path) -> None:
    several, one = cli("verify", segments, crashed, segments, status=FINDINGS), cli("verify", crashed, status=FINDINGS)
    assert several.splitlines()[:-1] == one.splitlines()[:-1]
    assert several.splitlines()[-1] == "1 error, 2 notes (95 files, 244 batches checked)"
    indexes = sorted(segments.glob("*.*index"))
    assert cli("verify", *indexes) == f"no problems found ({len(indexes)} files, 0 batches checked)\n"


def test_an_empty_directory_is_not_verified(cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    assert cli("verify", tmp_path / "orders-0", status=FINDINGS).endswith("nothing was checked: there is no file\n")


def test_verify_names_file_position_and_requirement(cli: Seglog, crashed: Path) -> None:
    findings = cli.lines("verify", crashed, status=FINDINGS)
    (error,) = [finding for finding in findings if finding["severity"] == "error"]
    assert error["file"] == "crash-flip-0/00000000000000000270.log"
    assert (error["requirement"], error["field"], error["type"]) == ("SEG-BAT-003", "crc", "finding")
    assert error.keys() >= {"position", "expected", "found", "message"}
    *findings, summary = cli("verify", crashed, status=FINDINGS).splitlines()
    assert findings[0].startswith(f"error: {error['file']}:{error['position']}: crc: expected")
    assert summary == "1 error, 2 notes (19 files, 94 batches checked)"


def test_verify_severity_hides_but_counts(cli: Seglog, crashed: Path) -> None:
    assert {one["severity"] for one in cli.lines("verify", crashed, "--severity", "error", status=FINDINGS)} == {
        "error"
    }
    *findings, summary = cli("verify", crashed, "--severity", "error", status=FINDINGS).splitlines()
    assert (len(findings), summary) == (1, "1 error, 2 notes (19 files, 94 batches checked)")


def test_warnings_and_notes_are_no_reason_to_fail(cli: Seglog, log: Path) -> None:
    log.write_bytes(vector("V-06") + bytes(100))
    assert {finding["severity"] for finding in cli.lines("verify", log)} <= {"warning", "note"}


# lookup


def test_lookup_answers_as_a_scan_does(cli: Seglog, segments: Path) -> None:
    with open_partition(segments) as partition:
        positions = {
            record.offset: (batch.position, segment.paths.log.name)
            for segment in partition.segments
            for batch in segment.batches()
            for record in batch.records
        }
    for offset in range(0, 450, 37):
        (answer,) = cli.lines("lookup", segments, offset)
        assert answer["found"]
        assert answer["record"]["offset"] == offset
        assert (answer["position"], answer["file"].rpartition("/")[2]) == positions[offset]


def test_lookup_explains_every_step(cli: Seglog, segments: Path) -> None:
    *steps, answer = cli.lines("lookup", "--explain", segments, "--offset", 140)
    assert [step["step"] for step in steps] == ["files", "index", "proof", "walk", "batch", "drop"]
    named = [identifier for step in steps for identifier in step["requirements"]]
    assert named == ["SEG-LKP-001", "SEG-IDX-008", "SEG-IDX-006", "SEG-LKP-002", "SEG-BAT-003", "SEG-LKP-003"]
    assert "102 is the greatest that is not above 140" in steps[0]["text"]
    assert answer["record"]["offset"] == 140
    text = cli("lookup", "--explain", segments, 140).splitlines()
    assert text[0].startswith("files ")
    assert text[-1].startswith("offset 140 at segs-0/00000000000000000102.log:7879 ")


@pytest.fixture
def one_segment(segments: Path, tmp_path: Path) -> Path:
    target = tmp_path / "segs-0"
    target.mkdir()
    for path in segments.glob("00000000000000000102.*"):
        shutil.copy(path, target)
    return target


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda index: index.unlink(), "there is no offset index"),
        (lambda index: index.write_bytes(b""), "has no entry"),
        (lambda index: index.write_bytes((20).to_bytes(4) + (5000).to_bytes(4)), "no entry starts at position 5000"),
        (lambda index: index.write_bytes((5).to_bytes(4) + (7879).to_bytes(4)), "offset 107 ends before"),
    ],
)
def test_lookup_does_not_believe_an_index(
    cli: Seglog, one_segment: Path, change: Callable[[Path], object], words: str
) -> None:
    change(one_segment / "00000000000000000102.index")
    *steps, answer = cli.lines("lookup", "--explain", one_segment, 140)
    assert any(words in step["text"] for step in steps)
    assert (answer["record"]["offset"], answer["position"]) == (140, 7879)


def test_lookup_with_trusted_indexes_answers_the_same(cli: Seglog, segments: Path) -> None:
    for offset in (0, 47, 48, 140, 449):
        wanted = cli.lines("lookup", segments, offset)
        assert cli.lines("lookup", "--trust-indexes", segments, offset) == wanted
    wanted = cli.lines("lookup", segments, "--timestamp", 0)
    assert cli.lines("lookup", "--trust-indexes", segments, "--timestamp", 0) == wanted


def test_lookup_with_trusted_indexes_proves_nothing(
    cli: Seglog, segments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, grow = list[int](), EntryTable.grow

    def noted(table: EntryTable, *words: Any) -> None:  # noqa: ANN401 - as they are
        starts.append(table.position)
        grow(table, *words)

    monkeypatch.setattr(EntryTable, "grow", noted)
    *steps, answer = cli.lines("lookup", "--explain", "--trust-indexes", segments, 140)
    assert answer["found"]
    assert {*starts} == {5155}, "the walk does not begin at the start of the segment"
    assert [step["step"] for step in steps[:4]] == ["files", "index", "trust", "walk"]
    assert "trusted, not proven" in steps[2]["text"]


def test_lookup_does_not_trust_an_index_that_points_anywhere(cli: Seglog, one_segment: Path) -> None:
    index = one_segment / "00000000000000000102.index"
    data = bytearray(index.read_bytes())
    for position in range(4, len(data), 8):
        data[position : position + 4] = (int.from_bytes(data[position : position + 4], "big") + 1).to_bytes(4, "big")
    index.write_bytes(data)
    *steps, answer = cli.lines("lookup", "--explain", "--trust-indexes", one_segment, 140)
    assert answer["found"]
    (explained,) = (step["text"] for step in steps if step["step"] == "trust")
    assert explained.endswith("start at position 0")


def test_lookup_of_what_compaction_took(cli: Seglog) -> None:
    *steps, answer = cli.lines("lookup", "--explain", bundled("4.3.0/compact") / "compact-0", 3)
    assert "there is no record 3 any more" in steps[-1]["text"]
    assert answer["record"]["offset"] == 390


def test_lookup_at_and_beyond_the_ends(cli: Seglog, segments: Path) -> None:
    assert "log end offset" in cli("lookup", segments, 450, status=FINDINGS)
    for offset in (-1, 451):
        assert "is not from 0 to 450" in cli("lookup", segments, offset, status=FINDINGS)
        (answer,) = cli.lines("lookup", segments, offset, status=FINDINGS)
        assert (answer["found"], answer["offset"]) == (False, offset)


def test_lookup_of_timestamps(cli: Seglog, segments: Path) -> None:
    records = [line for line in cli.lines("dump", segments) if line["type"] == "record"]
    wanted = records[200]["timestamp"]
    first = next(record["offset"] for record in records if record["timestamp"] >= wanted)
    *steps, answer = cli.lines("lookup", "--explain", segments, "--timestamp", wanted)
    assert answer["record"]["offset"] == first
    assert "SEG-LKP-008" in {identifier for step in steps for identifier in step["requirements"]}
    latest = max(record["timestamp"] for record in records)
    assert cli.lines("lookup", segments, "--timestamp", "2999-01-01", status=FINDINGS)[0]["found"] is False
    assert cli.lines("lookup", segments, "--timestamp", -1)[0]["offset"] == 450
    assert cli.lines("lookup", segments, "--timestamp", -2)[0]["offset"] == 0
    assert cli.lines("lookup", segments, "--timestamp", -3)[0]["record"]["timestamp"] == latest
    assert cli.lines("lookup", segments, "--timestamp", "1970-01-01T00:00:00")[0]["offset"] == 0


def test_lookup_in_one_file(cli: Seglog, segments: Path) -> None:
    (answer,) = cli.lines("lookup", segments / "00000000000000000102.log", 120)
    assert answer["record"]["offset"] == 120
    cli("lookup", segments / "00000000000000000102.log", 10, status=FINDINGS)


def test_lookup_tells_its_steps_before_damage(cli: Seglog, crashed: Path) -> None:
    _, err = cli.both("lookup", "--explain", crashed, 350, status=UNREADABLE)
    assert "SEG-BAT-003" in err


def test_lookup_in_a_directory_of_many(cli: Seglog, tmp_path: Path) -> None:
    for name in ("a-0", "b-0"):
        (tmp_path / name).mkdir()
    _, err = cli.both("lookup", tmp_path, 0, status=USAGE)
    assert "name one of its 2 partitions, such as a-0, b-0" in err


# ls


def test_ls_of_a_partition(cli: Seglog, segments: Path) -> None:
    lines = cli.lines("ls", segments)
    assert [line["baseOffset"] for line in lines] == [0, 48, 102, 156, 210, 264, 318, 372, 426]
    assert [line["nextOffset"] for line in lines] == [48, 102, 156, 210, 264, 318, 372, 426, 450]
    assert sum(line["batches"] for line in lines) == 75
    assert lines[0]["offsetIndex"] == {"entries": 2, "trailingZeroEntries": 0, "isOdd": False}
    head, *rows, totals = cli("ls", segments).splitlines()
    assert head.split()[:4] == ["base", "offset", "next", "offset"]
    assert len(rows) == 9
    assert totals.startswith("9 segments, offsets 0 to 450, 75 batches")
    assert "tail bytes" in cli("ls", "--long", segments)


def test_ls_agrees_with_dump(cli: Seglog) -> None:
    directory = bundled("4.3.0/txn") / "txn-0"
    batches = [line for line in cli.lines("dump", directory) if line["type"] == "batch"]
    for line in cli.lines("ls", directory):
        own = [batch for batch in batches if batch["file"] == line["file"]]
        assert line["batches"] == len(own)
        assert line["lastTimestamp"] == max(batch["maxTimestamp"] for batch in own)
        assert set(line["codecs"]) == {batch["codec"] for batch in own}


def test_ls_of_a_log_directory(cli: Seglog, crashed: Path) -> None:
    (line,) = cli.lines("ls", "--long", crashed)
    assert (line["directory"], line["segments"], line["recoveryPoint"]) == ("crash-flip-0", 3, 200)
    assert line["magics"] == [2]
    *_, totals, state = cli("ls", crashed).splitlines()
    assert totals.startswith("1 partition, 3 segments")
    assert state == "no clean shutdown"


def test_ls_of_several_paths(cli: Seglog, crashed: Path, segments: Path) -> None:
    lines = cli.lines("ls", crashed, segments)
    assert [(line["type"], line["path"]) for line in lines] == [
        ("partition", str(crashed)),
        *(("segment", str(segments)) for _ in range(9)),
    ]
    shown = cli("ls", crashed, segments).splitlines()
    assert [shown[0], shown[shown.index("") + 1]] == [f"{crashed}:", f"{segments}:"]
    assert cli("ls", segments).splitlines() == shown[shown.index("") + 2 :]
    out, _ = cli.both("ls", segments, crashed / "absent", status=USAGE)
    assert out == ""


def test_ls_of_one_file_and_what_follows_its_entries(cli: Seglog, log: Path) -> None:
    log.write_bytes(vector("V-06") + bytes(30))
    assert [(line["state"], line["tailBytes"]) for line in cli.lines("ls", log)] == [("30 zero bytes", 30)]
    log.write_bytes(vector("V-06") + b"\xff" * 30)
    (line,) = cli.lines("ls", log, status=1)
    assert (line["state"], line["tailBytes"]) == ("damaged at 95 [SEG-LOG-003]", 30)


def test_ls_of_a_directory_without_segments(cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    assert cli("ls", tmp_path / "orders-0").splitlines()[-1] == "no segments"


def test_ls_of_ten_times_the_segments_takes_ten_times_the_calls(cli: Seglog, tmp_path: Path) -> None:
    calls = []
    for count in (50, 500):
        (many := tmp_path / f"many-{count}").mkdir()
        for number, ending in product(range(count), (".log", ".index", ".timeindex")):
            (many / f"{number * 5:020d}{ending}").write_bytes(entry(number * 5, 5) if ending == ".log" else bytes(12))
        with Profile() as profile:
            assert len(cli.lines("ls", many)) == count
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 12 * calls[0]


# recover


def test_recover_tells_both_plans(cli: Seglog, crashed: Path) -> None:
    (line,) = cli.lines("recover", crashed, status=FINDINGS)
    assert line["plan"]["scanned"] == [128, 270]
    assert line["fullScan"]["scanned"] == [0, 128, 270]
    assert (line["plan"]["cuts"][0]["baseOffset"], line["plan"]["logEndOffset"]) == (270, 347)
    out = cli("recover", crashed, status=FINDINGS)
    assert "as a broker starts" in out
    assert "SEG-BAT-003" in out


def test_recover_with_nothing_to_do(cli: Seglog, segments: Path, log: Path) -> None:
    assert cli.lines("recover", segments)[0]["plan"]["cuts"] == []
    assert "nothing" in cli("recover", log)


def test_recover_passes_over_directories_marked_for_deletion(cli: Seglog, segments: Path, tmp_path: Path) -> None:
    names = [f"t-0.{'0' * 32}-{state}" for state in ("delete", "future")]
    for name in names:
        shutil.copytree(segments, tmp_path / "logs" / name)
    assert [line["directory"] for line in cli.lines("recover", tmp_path / "logs")] == names[1:]


def test_recover_of_one_file(cli: Seglog, damaged: Path) -> None:
    (line,) = cli.lines("recover", damaged, status=FINDINGS)
    assert line["fullScan"]["cuts"][0]["position"] == 0


def test_recover_changes_nothing(cli: Seglog, crashed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in crashed.rglob("*")}
    cli("recover", crashed, status=FINDINGS)
    assert {path: path.stat().st_mtime_ns for path in crashed.rglob("*")} == before


# diff


def test_diff_of_the_same(cli: Seglog, segments: Path) -> None:
    assert cli("diff", segments, segments) == "segs-0: 450 records the same, 0 differences\n"


def test_diff_does_not_mind_batches_and_codecs(cli: Seglog, tmp_path: Path) -> None:
    for name, vector_name in (("a.log", "V-06"), ("b.log", "V-12")):
        (tmp_path / name).write_bytes(vector(vector_name))
    assert cli.lines("diff", tmp_path / "a.log", tmp_path / "b.log")[-1]["equal"] == 3


def test_diff_tells_what_differs(cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(vector("V-06"))
    (tmp_path / "b.log").write_bytes(vector("V-07"))
    first, *_, last = cli.lines("diff", tmp_path / "a.log", tmp_path / "b.log", status=FINDINGS)
    assert (first["offset"], first["kind"], first["fields"]) == (10, "changed", ["timestamp"])
    assert last["different"] == 3
    out = cli("diff", tmp_path / "a.log", tmp_path / "b.log", "--count", 1, status=FINDINGS)
    assert out.splitlines() == [
        "a.log offset 10: timestamp differ",
        "  < timestamp 1970-01-01T00:00:01.000Z",
        "  > timestamp 1970-01-01T00:00:07.777Z",
        "a.log: 0 records the same, 3 differences at 10 to 12",
    ]


def test_diff_tells_what_only_one_has(cli: Seglog, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(vector("V-08"))
    (tmp_path / "b.log").write_bytes(vector("V-06"))
    lines = cli.lines("diff", tmp_path / "a.log", tmp_path / "b.log", status=FINDINGS)
    assert [line.get("kind") for line in lines] == ["changed", "only second", "only second", None]


def test_diff_of_log_directories(cli: Seglog, tmp_path: Path) -> None:
    for side, names in (("one", ("a-0", "b-0")), ("other", ("a-0",))):
        for name in names:
            (tmp_path / side / name).mkdir(parents=True)
            (tmp_path / side / name / LOG).write_bytes(vector("V-06"))
    lines = cli.lines("diff", tmp_path / "one", tmp_path / "other", status=FINDINGS)
    assert [(line["name"], line["equal"], bool(line["problems"])) for line in lines] == [
        ("a-0", 3, False),
        ("b-0", 0, True),
    ]
    cli.both("diff", tmp_path / "one", tmp_path / "other" / "a-0", status=USAGE)


def test_diff_names_damage(cli: Seglog, damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "b.log").write_bytes(vector("V-06"))
    *_, last = cli.lines("diff", damaged, tmp_path / "b.log", status=UNREADABLE)
    assert "SEG-BAT-003" in last["problems"][0]
    assert last["notComparedFrom"] == 0


# explain


@pytest.mark.parametrize("identifier", ["SEG-IDX-004", "seg-idx-004", "idx-4", "IDX004"])
def test_explain_prints_a_requirement(cli: Seglog, identifier: str) -> None:
    out = cli("explain", identifier)
    assert out.startswith("SEG-IDX-004: MUST (error when broken)\n")
    assert "strictly increasing relative offset" in out
    assert "spec/40-offset-index.md" in out
    assert cli("explain", "SEG-BAT-014").startswith("SEG-BAT-014: MAY (note when used)\n")


def test_explain_tells_what_holds_a_requirement(cli: Seglog) -> None:
    shown = {line[2:11].strip(): line[12:] for line in cli("explain", "SEG-COD-016").splitlines() if line[2:3].strip()}
    assert shown["chapter"] == "spec/34-compression.md"
    (found,) = cli.lines("explain", "SEG-COD-016")
    for key in ("tests", "faults", "cases"):
        assert shown[key] == found[key][0]
    assert "bombs/gzip-8-mib" in found["cases"]
    verdicts = found["verdicts"]
    assert shown["verdicts"].startswith(f"{verdicts['passing']} of {verdicts['asked']} implementations")
    assert verdicts["asked"] == verdicts["passing"] + len(verdicts["failing"])
    (found,) = cli.lines("explain", "SEG-IDX-004")
    assert found["fields"] == ["OffsetIndexEntry.relative_offset"]
    assert found["code"] == ["seglog_format/checks/side_files.py:offsets_increase"]
    assert found["damaged"] == ["damaged/idx-004-same-offset"]


def test_explain_knows_every_requirement(cli: Seglog) -> None:
    lists = {"fields", "code", "tests", "faults", "fixtures", "damaged", "cases", "verdicts"}
    for one in cli.lines("explain"):
        assert one.keys() >= lists, one["id"]
        assert one["check"] == "none" or one["tests"], one["id"]


def test_explain_lists_an_area_or_everything(cli: Seglog) -> None:
    area = cli.lines("explain", "SEG-IDX")
    everything = cli.lines("explain")
    assert {one["id"][:7] for one in area} == {"SEG-IDX"}
    assert len(everything) > len(area) > 5
    assert everything[0].keys() >= {"id", "level", "binds", "since", "chapter", "text"}
    assert len(cli("explain", "SEG-IDX").splitlines()) == len(area)


MEANT = {UNKNOWN_ID: "SEG-IDX has SEG-IDX-001 to", MISSPELT_ID: "or SEG-IDX-004?", "x-1": "the areas are SEG-APP,"}


@pytest.mark.parametrize("identifier", MEANT)
def test_explain_suggests_what_was_meant(cli: Seglog, identifier: str) -> None:
    _, err = cli.both("explain", identifier, status=USAGE)
    assert MEANT[identifier] in err


# schema


def test_schema_as_json_and_as_tables(cli: Seglog) -> None:
    structures = {line["structure"]: line for line in cli.lines("schema")}
    header = structures["RecordBatchHeader"]
    assert (header["size"], header["chapter"]) == (61, 30)
    assert [field["offset"] for field in header["fields"]] == [0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57]
    assert structures["OffsetIndexEntry"]["size"] == 8
    assert structures["Record"]["size"] is None
    assert all(field["doc"] for line in structures.values() for field in line["fields"])
    table = cli("schema", "recordbatchheader")
    assert "| 17 | 4 | uint32 | `crc` |" in table
    assert "OffsetIndexEntry" not in table


def test_schema_as_a_picture_that_needs_nothing_from_elsewhere(cli: Seglog) -> None:
    picture = cli("schema", "--format", "svg")
    root = ET.fromstring(picture)  # noqa: S314 - our own
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "baseOffset" in texts
    titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("crc: uint32.") and "SEG-BAT-003" in title for title in titles)
    assert picture.count("http") == 1  # the name space
    assert "<script" not in picture


def test_schema_for_kaitai_struct(cli: Seglog) -> None:
    yaml = pytest.importorskip("yaml")
    declared = yaml.safe_load(cli("schema", "--format", "ksy"))
    sizes = {"s1": 1, "s2": 2, "s4": 4, "s8": 8, "u4": 4}
    header = declared["types"]["record_batch_header"]["seq"]
    assert sum(sizes[field["type"]] for field in header) == 61
    used = {field["type"] for one in declared["types"].values() for field in one.get("seq", ()) if "type" in field}
    numbers = {name for name in used if name[0] in "su" and name[1].isdigit()}
    assert used - numbers <= set(declared["types"])


def test_completion_of_the_shell() -> None:
    environment = os.environ | {"_SEGLOG_COMPLETE": "bash_complete", "COMP_WORDS": "seglog ver", "COMP_CWORD": "1"}
    found = subprocess.run(SEGLOG, capture_output=True, text=True, check=False, env=environment)
    assert "verify" in found.stdout


def broker_of(directory: Path, node: int) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "meta.properties").write_text(f"version=0\ncluster.id=c\nbroker.id={node}\n")


@pytest.mark.req("SEG-LDR-002")
@pytest.mark.parametrize(
    ("nodes", "count"),
    [((None, None), 1), ((1, 1), 1), ((1, None), 1), ((1, 2), 0)],
    ids=["unnamed", "one", "half", "two"],
)
def test_a_partition_in_two_directories_of_one_broker(
    cli: Seglog, nodes: tuple[int | None, int | None], count: int, tmp_path: Path
) -> None:
    roots = tmp_path / "a", tmp_path / "b"
    for root, node in zip(roots, nodes, strict=True):
        for name in ("t-0", f"u-1.{'a' * 32}-future"):
            (root / name).mkdir(parents=True)
            (root / name / f"{10:020d}.log").write_bytes(vector("V-06"))
        if node is not None:
            broker_of(root, node)
    out, _ = cli.both("verify", "--json", *roots, status=1 if count else 0)
    found = [json.loads(line) for line in out.splitlines()]
    repeated = [line for line in found if line["requirement"] == "SEG-LDR-002"]
    assert [(line["file"], line["found"]) for line in repeated] == [
        (str(roots[1] / "t-0"), f"it is also in {roots[0] / 't-0'}")
    ] * count
    assert "SEG-LDR-002" not in cli("verify", roots[0], roots[0])
