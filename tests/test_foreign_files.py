"""Files of other formats and packed ones are named, logs under other names are read; no unread file gives 0."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
import zstandard
from helpers.made_partitions import entry
from helpers.support import vector
from helpers.walking import each_of

from seglog_format.cli.main import COMMANDS, DONE, FINDINGS, UNREADABLE, USAGE, run, seglog
from seglog_format.cli.options import PATH_OR_INPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOG = vector("V-06")
NAMED = "0" * 20
FOREIGN = {
    f"{NAMED}.kafka": (bytes(10), "Kafka 0.7"),
    f"{NAMED}.log.bz2": (bz2.compress(LOG), "compressed with bzip2"),
    f"{NAMED}.log.xz": (lzma.compress(LOG), "compressed with xz"),
    f"{NAMED}.log.lz4": (bytes.fromhex("04224d18") + bytes(20), "compressed with lz4"),
    "segments.tar.bz2": (bz2.compress(LOG), "compressed with bzip2: unpack it first: tar -xf"),
}
UNDER_ANOTHER_NAME = {
    f"{NAMED}.log": (gzip.compress(LOG), "compressed with gzip"),
    "0-1-v1.log": (b"\1" * 200, "Redpanda"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, text = FOREIGN[name]
    path = tmp_path / "orders-0" / name
    path.parent.mkdir()
    path.write_bytes(data)
    for command in ("dump", "inspect", "ls", "verify", "recover"):
        status = {"dump": UNREADABLE, "inspect": FINDINGS}.get(command, USAGE)
        assert run([command, str(path)]) == status, command
        assert text in capsys.readouterr().err, command
    for command in ("ls", "verify", "recover"):
        assert run([command, str(path.parent)]) == USAGE
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("command", ["dump", "inspect", "ls", "verify"])
@pytest.mark.parametrize("name", UNDER_ANOTHER_NAME)
def test_a_foreign_file_has_the_name_of_a_log(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, text = UNDER_ANOTHER_NAME[name]
    (tmp_path / name).write_bytes(data)
    assert run([command, str(tmp_path / name)]) == 1
    assert text in capsys.readouterr().err


def test_the_checkpoint_of_a_streams_task_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".checkpoint"
    path.write_text("0\n1\napp-store-changelog 0 1234\n")
    assert run(["dump", str(path)]) == 0
    assert "app-store-changelog 0 1234" in capsys.readouterr().out


@each_of("name", ["seg.bin", f"{NAMED}.log.bak", f"{NAMED}.log.1"])
def test_dump_reads_a_log_under_another_name(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_bytes(LOG)
    assert run(["dump", str(path)]) == 0
    assert f"end: 1 batch, 3 records, {len(LOG)} of {len(LOG)} bytes" in capsys.readouterr().out
    path.write_bytes(LOG + b"\xff" * 50)
    assert run(["dump", str(path)]) == FINDINGS
    capsys.readouterr()
    path.write_bytes(LOG[:-1] + bytes([LOG[-1] ^ 1]))
    assert run(["dump", str(path)]) == UNREADABLE
    assert "no known kind" in capsys.readouterr().err


READERS = {"dump": (), "ls": (), "verify": (), "find": ("v",)}
"""Commands that take a file, and what they need beside it."""


@each_of("name", ["seg.bin", f"{NAMED}.log.bak", f"{NAMED}.log.1", "-x", "notes.txt"])
def test_every_reader_reads_a_log_under_another_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first_offset = 10**10
    (tmp_path / name).write_bytes(entry(first_offset) + entry(first_offset + 1))
    for command, arguments in READERS.items():
        assert run([command, *arguments, str(tmp_path / name)]) == DONE, command
        assert ("no problems found" if command == "verify" else str(first_offset)) in capsys.readouterr().out


@each_of("content", [b"", b"bought milk\n", b"\xff" * 50, LOG[:-1] + bytes([LOG[-1] ^ 1])])
def test_no_reader_passes_a_file_of_another_kind(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for command, arguments in READERS.items():
        assert run([command, *arguments, str(path)]) == (UNREADABLE if command == "dump" else USAGE), command
        assert capsys.readouterr().err.count("of no known kind: neither its name nor its first bytes") == 1
    assert run(["dump", "--from", "1", str(path)]) == UNREADABLE


def test_a_log_due_for_removal_is_searched_if_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAMED}.log.deleted"
    path.write_bytes(entry(0))
    assert run(["find", "v", str(path)]) == DONE
    assert "vvvv" in capsys.readouterr().out


@each_of("name", ["cleaner-offset-checkpoint", "leader-epoch-checkpoint", "meta.properties", ".kafka_cleanshutdown"])
def test_text_of_a_known_name_is_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in ("0\n0\n", ""):
        (tmp_path / name).write_text(content)
        assert run(["dump", str(tmp_path / name)]) == DONE
    assert not capsys.readouterr().err


def test_a_refused_directory_with_renamed_logs_says_how_to_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "orders-0" / f"{NAMED}.log.bak"
    path.parent.mkdir()
    path.write_bytes(entry(0))
    assert run(["doctor", str(path.parent)]) == USAGE
    step = capsys.readouterr().err.partition("one that holds a log: ")[2]
    assert run(shlex.split(step)[1:]) == DONE


def given(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


INPUTS = {"dump": ("-",), "verify": ("--base-offset", "426", "-"), "find": ("v", "-")}


def test_standard_input_is_read_as_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = entry(426) + entry(427)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for command, arguments in INPUTS.items():
        given(monkeypatch, log)
        assert run([command, *arguments]) == DONE
        text = capsys.readouterr().out
        assert "seglog-" not in text
        assert "no problems found" in text or text.startswith("-")
        given(monkeypatch, log[:-1] + b"?")
        assert run([command, "--json", *arguments]) == (UNREADABLE if command == "find" else FINDINGS)
        shown = capsys.readouterr()
        assert '"file":"-"' in shown.out
        assert "seglog-" not in shown.out + shown.err
        given(monkeypatch, b"")
        assert run([command, *arguments]) == USAGE
        assert capsys.readouterr().err == "seglog: -: standard input is empty\n"
        given(monkeypatch, bz2.compress(log))
        assert run([command, *arguments]) != DONE
        if command != "find":
            assert "compressed with bzip2: unpack it first: bzip2 -dc | seglog dump -" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_packed_standard_input_is_named_by_inspect_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, bz2.compress(LOG))
    assert run(["inspect", "-"]) == USAGE
    assert "-: compressed with bzip2: unpack it first: bzip2 -dc | seglog dump -" in capsys.readouterr().err


FILE_READERS = {
    "diff": ("{}", "{}"),
    "dump": ("{}",),
    "find": ("v", "{}"),
    "index": ("{}",),
    "inspect": ("{}",),
    "lookup": ("{}", "426"),
    "ls": ("{}",),
    "recover": ("{}",),
    "verify": ("{}",),
}
"""Commands that take the file of a log."""
OF_HEADERS = {"index", "inspect", "lookup", "ls"}
"""Those that read the headers of entries, or one entry only."""
UNPACKED = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}


def test_every_command_that_takes_a_file_is_listed() -> None:
    context = click.Context(seglog)
    commands = {name: seglog.get_command(context, name) for name in FILE_READERS}
    assert all(each is not None for each in commands.values())
    read = {name for name in COMMANDS if _reads_input(seglog.get_command(context, name))}
    assert read | {"inspect"} == set(FILE_READERS)


def _reads_input(command: click.Command | None) -> bool:
    return command is not None and any(each.type is PATH_OR_INPUT for each in command.params)


@each_of("command", FILE_READERS)
def test_every_command_that_takes_a_file_reads_a_packed_one_and_standard_input(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log, kept = entry(426) + entry(427), tmp_path / "orders-0"
    kept.mkdir()
    name = f"{426:020}.log"
    path = kept / name
    path.write_bytes(log)
    arguments = FILE_READERS[command]
    status, plain = _ran(command, path, arguments, capsys)
    assert status == DONE
    for ending, pack in UNPACKED.items():
        packed = kept / f"{name}{ending}"
        packed.write_bytes(pack(log))
        assert _ran(command, packed, arguments, capsys) == (status, plain)
        for data in (log, pack(log)) if command != "index" else ():
            given(monkeypatch, data)
            assert _ran(command, "-", arguments, capsys)[0] == DONE
        packed.write_bytes(pack(log[:-1] + b"?"))
        for options in ((), ("--json",)):
            assert _ran(command, packed, (*options, *arguments), capsys)[0] != DONE or command in OF_HEADERS
    assert [each.name for each in tmp_path.iterdir()] == ["orders-0"]


def _ran(
    command: str, path: Path | str, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    status = run([command, *(each.format(path) for each in arguments)])
    shown = capsys.readouterr()
    assert "seglog-" not in shown.out + shown.err
    return status, re.sub(r"(?:\S*/)?(\d{20}\.log)(?:\.gz|\.zst)?", r"\1", shown.out)


@each_of("ending", UNPACKED)
def test_a_packed_file_that_cannot_be_unpacked_whole_is_never_passed(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    whole, path = UNPACKED[ending](entry(0) * 3000), tmp_path / f"{NAMED}.log{ending}"
    for data in (whole[:-1], whole[: len(whole) // 2], whole[:10], whole + b"?", whole[:20] + b"????" + whole[24:]):
        path.write_bytes(data)
        for command, arguments in FILE_READERS.items():
            assert run([command, *(each.format(path) for each in arguments)]) == UNREADABLE, command
            shown = capsys.readouterr()
            assert not shown.out
            assert f"{path}" in shown.err
            assert "what is before it: " in shown.err
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_packed_bytes_without_end_are_unpacked_as_far_as_a_log_can_be_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("seglog_format.storage.byte_source.MAX_LOG_SIZE", 1000)
    (tmp_path / f"{NAMED}.log.zst").write_bytes(zstandard.compress(bytes(10**8)))
    assert run(["dump", str(tmp_path / f"{NAMED}.log.zst")]) != DONE
    assert "expected at most 1,000 bytes, found 1,001 [SEG-LOG-010]" in capsys.readouterr().out


def test_indexes_of_a_packed_log_are_written_elsewhere_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAMED}.log.gz"
    path.write_bytes(gzip.compress(LOG))
    assert run(["index", "--rebuild", "--write", str(path)]) == USAGE
    assert f"{path}: only indexes beside a log are replaced" in capsys.readouterr().err
    assert run(["index", "--rebuild", "-o", str(tmp_path / "new"), str(path)]) == DONE
    assert (tmp_path / "new" / f"{NAMED}.timeindex").is_file()


def test_a_log_whose_own_bytes_are_packed_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{NAMED}.log"
    path.write_bytes(gzip.compress(LOG))
    assert run(["verify", str(path)]) == FINDINGS
    assert "compressed with gzip: unpack it first" in capsys.readouterr().err


@each_of("command", ["doctor", "export", "retain", "salvage"])
def test_a_command_about_directories_says_how_to_make_one_of_a_renamed_log(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a copy.bin").write_bytes(entry(7))
    options = {"export": ["--to", "table"], "salvage": ["-o", "new"]}.get(command, [])
    assert run([command, "a copy.bin", *options]) == USAGE
    step = capsys.readouterr().err.partition("for this log alone: ")[2].strip()
    assert step == f"mkdir my-topic-0; cp 'a copy.bin' my-topic-0/{7:020}.log"
    subprocess.run(step, shell=True, check=True)  # noqa: S602 - as a user would
    assert run([command, "my-topic-0", *options]) == DONE
    (tmp_path / "a copy.bin").write_bytes(gzip.compress(LOG))
    assert run([command, "a copy.bin", *options]) == USAGE
    assert "unpack it first: gzip -dc 'a copy.bin' | seglog dump -" in capsys.readouterr().err
    (tmp_path / f"{NAMED}.log.gz").write_bytes(gzip.compress(LOG))
    assert run([command, f"{NAMED}.log.gz", *options]) == USAGE
    step = capsys.readouterr().err.partition("for this log alone: ")[2].strip()
    assert step == f"mkdir my-topic-0; gzip -dc {NAMED}.log.gz > my-topic-0/{NAMED}.log"
    assert run([command, "-", *options]) == USAGE
    assert "standard input takes the place of a file, not of a directory" in capsys.readouterr().err


@each_of("name", ["meta.properties", f"{NAMED}.index", f"{7:020}.snapshot", "leader-epoch-checkpoint", f"{NAMED}.log"])
def test_no_step_makes_a_log_of_a_file_that_is_none(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, content in ((tmp_path / name, b"no log"), (tmp_path / f"{name}.gz", gzip.compress(b"no log"))):
        path.write_bytes(content)
        assert run(["doctor", str(path)]) == USAGE
        said = capsys.readouterr().err
        assert "a file, not a partition directory" in said
        assert ("for this log alone" in said) == path.name.endswith(".log.gz")


def test_the_base_offset_of_standard_input_is_what_rules_compare(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for base_offset, status, found in (("10000000000", DONE, "no problems"), ("10000000001", FINDINGS, "SEG-LOG-008")):
        given(monkeypatch, entry(10**10))
        assert run(["verify", "--base-offset", base_offset, "-"]) == status
        assert found in capsys.readouterr().out


@each_of("program", {"bzip2": bz2.compress, "xz": lzma.compress}.items())
def test_the_command_in_a_refusal_reads_the_file(
    program: tuple[str, Callable[[bytes], bytes]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, compress = program
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    path = tmp_path / "a log's copy.bin"
    path.write_bytes(compress(LOG))
    assert run(["dump", str(path)]) == UNREADABLE
    command = capsys.readouterr().err.partition("unpack it first: ")[2].strip()
    assert command == f"{name} -dc {shlex.quote(str(path))} | seglog dump -"
    own = f"{shlex.quote(sys.executable)} -m seglog_format.cli"
    script = command.replace("seglog dump", f"{own} dump")
    done = subprocess.run(script, shell=True, capture_output=True, check=True)  # noqa: S602 - as a user would
    assert b"end: 1 batch, 3 records" in done.stdout


ARCHIVE_READERS = {
    **{name: arguments for name, arguments in FILE_READERS.items() if name != "inspect"},
    "cluster": ("{}",),
    "doctor": ("{}",),
    "export": ("{}", "--to", "{0}-table"),
    "transactions": ("{}",),
}
WRITERS = {
    "anonymise": ("{}", "-o", "new"),
    "index": ("--rebuild", "--write", "{}"),
    "recover": ("--write", "{}"),
    "resurrect": ("{}", "-o", "new"),
    "retain": ("--write", "{}"),
    "salvage": ("{}", "-o", "new"),
    "serve": ("{}",),
}
"""Commands that change what they are given, or make something of it."""


def archived(path: Path, members: dict[str, bytes | tarfile.TarInfo], **options: int) -> bytes:
    """Return an archive of files, and of members that are none."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", **options) as tar:
        for name, content in members.items():
            member = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    path.write_bytes(packed.getvalue())
    return packed.getvalue()


MEMBERS: dict[str, bytes | tarfile.TarInfo] = {
    f"var/data/orders-0/{426:020}.log": entry(426) + entry(427),
    "var/data/recovery-point-offset-checkpoint": b"0\n0\n",
}


@each_of("command", ARCHIVE_READERS)
def test_every_command_that_reads_a_directory_reads_an_archive_of_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive may have directories above the log directory, or only a partition, or its files alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    shapes = {"data": "var/data/", "orders-0": "var/data/orders-0/"}
    for name, left_out in shapes.items() if command not in {"cluster", "transactions"} else [("data", "var/data/")]:
        chosen = {each: data for each, data in MEMBERS.items() if each.startswith(left_out)}
        for above in (left_out, name + "/", ""):
            members = {each.replace(left_out, above): data for each, data in chosen.items()}
            for ending, pack in {".tar": bytes, ".tar.gz": gzip.compress, ".tgz": gzip.compress}.items():
                path = tmp_path / f"{name}{ending}"
                path.write_bytes(pack(archived(path, members)))
                plain = tmp_path / name
                for each, data in chosen.items():
                    file = plain / each.removeprefix(left_out)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(data)
                outputs = []
                for given_ in (path, plain):
                    status = run([command, *(each.format(given_) for each in ARCHIVE_READERS[command])])
                    shutil.rmtree(f"{given_}-table", ignore_errors=True)
                    shown = capsys.readouterr()
                    assert "seglog-" not in shown.out + shown.err
                    outputs.append((status, f"{shown.out}{shown.err}".replace(str(given_), "PATH")))
                assert outputs[0] == outputs[1]
                assert outputs[0][0] in {DONE, FINDINGS}
    assert not list((tmp_path / "temporary").iterdir())


def _special(kind: bytes, target: str = "", **fields: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo("orders-0/x")
    member.type, member.linkname = kind, target
    for name, value in fields.items():
        setattr(member, name, value)
    return member


def _claiming(kind: bytes, size: int) -> bytes:
    """Return the header of a member that claims a size."""
    return _special(kind, size=size).tobuf(tarfile.GNU_FORMAT)


def _hostile() -> dict[str, bytes]:
    """Return archives that are not unpacked, by what is wrong with them."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as scratch:
        whole = archived(Path(scratch) / "a", MEMBERS)
        for name in ("../x", "a/../../x", "/x", "orders-0/../../x"):
            found[name] = archived(Path(scratch) / "a", {**MEMBERS, name: b"x"})
        kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"Q")
        for kind in kinds:
            found[f"kind {kind!r}"] = archived(Path(scratch) / "a", {**MEMBERS, "x": _special(kind, "/etc/passwd")})
    end = len(whole) - len(whole.removesuffix(b"\0").rstrip(b"\0"))
    content = whole[: len(whole) - end // 512 * 512]
    found["duplicate names"] = content + whole
    found["a file for a directory"] = content + _claiming(tarfile.REGTYPE, 0).replace(
        b"orders-0/x", b"var\0\0\0\0\0\0\0", 1
    )
    found["no end"] = content
    found["half a header"] = content + whole[:200]
    found["bytes after its end"] = whole + b"x"
    found["half a file"] = whole[:700]
    found["a header that is none"] = content + b"\1" * 512 + whole
    found["a member without end"] = content + _claiming(tarfile.REGTYPE, 1 << 40)
    found["a member of negative size"] = content + _claiming(tarfile.REGTYPE, -512) + bytes(1024)
    found["a name without end"] = content + _claiming(tarfile.GNUTYPE_LONGNAME, 1 << 33)
    found["a comment without end"] = content + _claiming(tarfile.XHDTYPE, 1 << 33)
    found["a comment of negative size"] = content + _claiming(tarfile.XHDTYPE, -512)
    found["comments of comments"] = content + _claiming(tarfile.XHDTYPE, 512).ljust(1024, b"\0") * 5000
    found["settings for all"] = content + b"".join(
        _claiming(tarfile.XGLTYPE, 512) + f"9 a{n:02}=bb\n".encode().ljust(512, b"\0") for n in range(50)
    )
    sparse = bytearray(_claiming(tarfile.GNUTYPE_SPARSE, 0))
    sparse[483:495] = b"77777777777\0"
    sparse[148:156] = b" " * 8
    sparse[148:156] = b"%06o\0 " % sum(sparse)
    found["a sparse file without end"] = content + bytes(sparse) + bytes(1024)
    found["more members than are unpacked"] = _claiming(tarfile.DIRTYPE, 0) * 1001 + bytes(1024)
    found["nothing"] = b""
    return found


def test_an_archive_that_is_not_unpacked_whole_is_never_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("seglog_format.cli.options.MAX_ARCHIVE_MEMBERS", 1000)
    (tmp_path / "temporary").mkdir()
    hostile = _hostile()
    for what, data in hostile.items():
        for ending, pack in {".tar": bytes, ".tar.gz": gzip.compress}.items():
            path = tmp_path / f"data{ending}"
            path.write_bytes(pack(data))
            assert (what, run(["verify", str(path)])) == (what, UNREADABLE)
            shown = capsys.readouterr()
            assert not shown.out
            assert f"unpack it first: tar -xf {path}" in shown.err or not data, what
            path.unlink()
        assert [each.name for each in tmp_path.iterdir()] == ["temporary"], what
        assert not list((tmp_path / "temporary").iterdir()), what


def test_a_damaged_archive_ends_no_command_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = tmp_path / "data.tar"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        whole = archived(path, {f"{'d' * 120}/{name}": data for name, data in MEMBERS.items()}, format=form)
        dice = random.Random(form)  # noqa: S311 - a test
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(dice.randint(1, 4)):
                data[dice.randrange(len(data) // 2)] = dice.choice((0, 1, 0x37, 0x80, 0xFF, dice.randrange(256)))
            path.write_bytes(data[: dice.choice((len(data), dice.randrange(len(data))))])
            assert run(["verify", str(path)]) in {DONE, FINDINGS, UNREADABLE, USAGE}
    assert {each.name for each in tmp_path.iterdir()} == {"data.tar", "temporary"}
    assert not list((tmp_path / "temporary").iterdir())


@each_of("command", WRITERS)
def test_a_command_that_writes_refuses_an_archive(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    archived(tmp_path / "data.tar", MEMBERS)
    assert run([command, *(each.format("data.tar") for each in WRITERS[command])]) == USAGE
    shown = capsys.readouterr()
    assert not shown.out
    assert re.fullmatch(r"seglog: data.tar: [^\n]*\n", shown.err)
    assert [each.name for each in tmp_path.iterdir()] == ["data.tar"]
