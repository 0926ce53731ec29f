"""The command line as a whole: help pages, examples, progress, interruption, colours."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path
from shutil import copyfile, copytree, rmtree
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner
from helpers.support import FIXTURES, bundled
from helpers.walking import each_of

from seglog_format.cli import output
from seglog_format.cli.main import COMMANDS, EXTRAS, FINDINGS, NOT_WRITTEN, PIPE_CLOSED, USAGE, run, seglog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 80
EXAMPLE = re.compile(r"^ +(.*\bseglog .*)$", re.MULTILINE)


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its full name."""
    context = click.Context(command, info_name=name.rsplit(maxsplit=1)[-1], parent=parent)
    yield name, command
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from commands(found, f"{name} {inner}", context)


ALL = dict(commands(seglog, "seglog"))


def help_of(name: str) -> str:
    done = CliRunner().invoke(seglog, [*name.split()[1:], "--help"], prog_name="seglog", env={"COLUMNS": str(COLUMNS)})
    assert done.exit_code == 0
    return str(done.output)


def examples(name: str) -> list[list[str]]:
    """Return the arguments of each seglog command among the examples of a help page."""
    page = help_of(name)
    after = (
        page[page.index("Example") :] if "Example" in page else page[page.index("Start with") :].partition("Options")[0]
    )
    parts = [part for line in EXAMPLE.findall(after) for part in re.split(r"[|;]", line)]
    words = [shlex.split(part.partition(">")[0]) for part in parts if part.split()[:1] == ["seglog"]]
    return [["absent" if word == "-" else word for word in one[1:]] for one in words]  # no standard input is read


@each_of("name", ALL)
def test_a_help_page_fits_eighty_columns_and_has_an_example_that_is_understood(name: str) -> None:
    page = help_of(name)
    assert [line for line in page.splitlines() if len(line) > COLUMNS] == []
    found = examples(name)
    assert found
    for words in found:
        command: click.Command = seglog
        context = click.Context(seglog, info_name="seglog")
        while isinstance(command, click.Group):
            _, inner, words = command.resolve_command(context, words)  # noqa: PLW2901 - what is left of them
            assert inner is not None
            command = inner
        try:
            command.make_context(command.name, list(words), parent=context)  # raises for what is no option or argument
        except click.BadParameter as error:
            assert "does not exist" in error.message  # noqa: PT017 - the disks of the examples are not here


NEEDS_MORE = re.compile(r"--remote|kcat \.\.\.|echo|seglog (?:serve|explorer|warm)\b|tier |spark |conform |fixtures ")
"""Examples that need a store, a client, a browser, a shell's own files or a compiler; tests of those run them."""


@pytest.fixture
def as_in_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working directory with all that the examples name; what they take from `/` is below it."""
    segments, offsets, cluster = (bundled(f"4.3.0/{name}") for name in ("segs", "consumer-offsets", "cluster-metadata"))
    (partition,) = (path.parent for path in segments.rglob("00000000000000000102.log"))
    (groups,) = (path.parent for path in offsets.rglob("*.log"))
    (metadata,) = (path.parent for path in cluster.rglob("*.log"))
    first = "00000000000000000000.log"
    for name in ("my-topic-0", "my-topic-1", "topic-0", "data/orders-0", "var/lib/kafka/data/orders-0",
                 "var/lib/kafka/data/my-topic-0", "var/lib/kafka/data-1/orders-0", "var/lib/kafka/data-2/orders-1",
                 "backup/orders-0", "backup/my-topic-0"):  # fmt: skip
        copytree(partition, tmp_path / name)
    for name in ("disks/broker-1", "disks/broker-2", "var/lib/kafka/data"):
        copytree(metadata, tmp_path / name / "__cluster_metadata-0")
    copytree(groups, tmp_path / "__consumer_offsets-7")
    copytree(groups, tmp_path / "copied")
    for name in (first, "before.log", "after.log"):
        copyfile(partition / first, tmp_path / name)
    (tmp_path / f"{first}.gz").write_bytes(gzip.compress((partition / first).read_bytes()))
    copyfile(FIXTURES / "recipes" / "codecs.toml", tmp_path / "recipe.toml")
    (tmp_path / "server.properties").write_text("log.retention.hours=12\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def example_lines() -> Iterator[str]:
    """Yield each line with a command among the examples of help pages, but for those that need more than files."""
    for name in ALL:
        lines = EXAMPLE.findall(help_of(name).partition("Example")[2])
        yield from (line for line in lines if not NEEDS_MORE.search(line))


def test_the_examples_do_what_they_say(as_in_the_examples: Path) -> None:
    failed = {line: errors for line in example_lines() if (errors := ran(line, as_in_the_examples))}
    assert failed == {}
    assert len(list(example_lines())) > 50


def ran(line: str, root: Path) -> str:
    """Run the commands of a line up to the first of another program; return what went wrong."""
    given = None
    for part in re.split(r"[|;]", line.partition(">")[0]):
        program, *words = (re.sub(r"^/", f"{root}/", word) for word in shlex.split(part))
        if program != "seglog":
            break
        if "-o" in words:
            rmtree(words[words.index("-o") + 1], ignore_errors=True)
        arguments = [name for word in words for name in (sorted(map(str, root.glob(word))) if "*" in word else [word])]
        done = CliRunner().invoke(seglog, arguments, input=given, prog_name="seglog")
        if done.exit_code or done.exception:
            return f"{done.exit_code}: {done.exception!r} {done.stderr}"
        given = done.stdout
    return ""


# What is not there


@each_of(
    ("line", "meant"),
    [
        ("lookup my-topic-0 2026-11-21", "for a time: --timestamp"),
        ("find --from 2026-11-21 x my-topic-0", "for a time: --since; a time: --until"),
        ("dump --to 2026-11-21 my-topic-0", "for a time: --since; a time: --until"),
        ("inspect --offset 2026-11-21 x.log", "for the offset of a time: seglog lookup PATH --timestamp TIME"),
        ("salvage --redact key-35 my-topic-0 -o new", "for a key: --redact-key"),
        (
            "transactions my-topic-0",
            "not a log directory; name the log directory that it is in: .",
        ),
    ],
)
def test_a_refusal_names_the_next_step(
    line: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-topic-0").mkdir()
    (tmp_path / "my-topic-0" / f"{0:020}.log").touch()
    (tmp_path / "x.log").touch()
    assert run(line.split()) == USAGE
    assert meant in capsys.readouterr().err


@pytest.mark.parametrize("command", ["recover", "index", "salvage -o copy"])
def test_a_log_directory_without_a_partition_is_reported(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    run([*command.split(), "data"])
    assert capsys.readouterr() == ("", "seglog: data: a log directory without a partition; there is nothing to do\n")


@pytest.mark.parametrize(("module", "extra"), [("pyarrow.parquet", "fast"), ("pyspark", "spark"), ("kio", "serve")])
def test_the_extra_of_a_missing_module_is_named(
    module: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("seglog_format.cli.main"), "import_module", lacking(module))
    assert run(["export", "--help"]) == USAGE
    needed = f"seglog: this needs {module.partition('.')[0]}: pip install 'seglog-format[{extra}]'\n"
    assert capsys.readouterr().err == needed


def test_the_extras_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    needed = {
        (extra, name)
        for extra in set(EXTRAS.values())
        for line in declared[extra]
        if (name := re.split(r"[\[<>=]", line)[0]) != "seglog-format"
    }
    packages = packages_distributions()
    named = {module: needed & {(extra, name) for name in packages[module]} for module, extra in EXTRAS.items()}
    assert [module for module, found in named.items() if not found] == []
    assert needed - set().union(*named.values()) == {("tier", "pyarrow")}, "in two extras, and named with the other"
    assert set(declared) - set(EXTRAS.values()) == {"dev", "docs", "fuzz"}


@pytest.mark.parametrize(
    ("line", "module"),
    [("serve data", "kio"), ("spark stats data", "pyspark"), ("export data --to x", "pyarrow")],
)
def test_a_command_names_its_missing_extra(line: str, module: str, tmp_path: Path) -> None:
    (tmp_path / "data" / "orders-0").mkdir(parents=True)
    (tmp_path / "data" / "orders-0" / "00000000000000000000.log").touch()
    program = f"import sys; sys.modules[{module!r}] = None; from seglog_format.cli.main import run; sys.exit(run())"
    command = [sys.executable, "-c", program, *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    needed = f"seglog: this needs {module}: pip install 'seglog-format[{EXTRAS[module]}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (USAGE, "", needed)


def statuses(lines: list[list[str]], extras: set[str]) -> list[int]:
    """Run commands in a process that has no optional module but those of some extras; return the exit statuses."""
    lacking = [module for module, extra in EXTRAS.items() if extra not in extras]
    program = f"""
import json, sys
sys.modules.update(dict.fromkeys({lacking!r}))
from seglog_format.cli.main import run
print(json.dumps([run(words) for words in {lines!r}]), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found: list[int] = json.loads(done.stderr.splitlines()[-1])
    return found


def test_every_help_page_is_there_without_extras() -> None:
    lines = [[*name.split()[1:], "--help"] for name in ALL]
    assert statuses(lines, set()) == [0] * len(lines)


WITH_EXTRAS = {
    "": ["ls", "dump", "verify", "lookup --offset 140", "find key-35", "doctor", "retain", "recover"],
    "fast": [f"export --to {each} --format {each}" for each in ("parquet", "arrow", "csv", "jsonl")],
    "fast decode": ["export --to decoded --value json"],
    "fast iceberg": ["export --to iceberg --format iceberg"],
}
"""What has to work where some extras are installed, and no other."""


@pytest.mark.usefixtures("as_in_the_examples")
@each_of("extras", WITH_EXTRAS)
def test_a_command_needs_no_extra_but_its_own(extras: str) -> None:
    lines = [[*line.split(), "my-topic-0"] for line in WITH_EXTRAS[extras]]
    found = statuses(lines, set(extras.split()))
    assert {shlex.join(line): status for line, status in zip(lines, found, strict=True) if status > FINDINGS} == {}


def test_a_missing_module_of_no_extra_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("seglog_format.cli.main"), "import_module", lacking("seglog_format.nothing"))
    with pytest.raises(ModuleNotFoundError):
        run(["export", "--help"])


def lacking(module: str) -> Callable[[str], None]:
    def lack(name: str) -> None:
        raise ModuleNotFoundError(name, name=module)

    return lack


# Progress


class Terminal(io.StringIO):
    """A standard error that is a terminal, with what was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)


class Streams:
    """The module `sys` with another standard error."""

    def __init__(self, stderr: Terminal) -> None:
        self.stderr = stderr

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Provide what is written to a standard error that is a terminal."""
    stream = Terminal()
    monkeypatch.setattr(output, "sys", Streams(stream))
    return stream.written


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_estimates_only_when_it_can(terminal: list[str]) -> None:
    clock = Clock()
    shown = output.Progress("Verifying", 1000, clock=clock)
    shown.update(1)
    assert terminal == []
    clock.now = 1.0
    shown.update(1)
    assert terminal[-1] == "\r\x1b[KVerifying [                    ]   0%"
    clock.now = 30.0
    shown.update(250)
    assert terminal[-1] == "\r\x1b[KVerifying [#####               ]  25%  1 min 30 s left"
    shown.hide()
    shown.hide()
    assert terminal[-1] == "\r\x1b[K"
    assert len(terminal) == 3
    clock.now = 1e9
    shown.update(30)
    assert "left" not in terminal[-1]
    shown.update(5000)
    assert "100%" in shown.text(clock.now)


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_durations(seconds: float, text: str) -> None:
    assert output.duration_text(seconds) == text


def test_the_line_is_erased_before_output(capsys: pytest.CaptureFixture[str], terminal: list[str]) -> None:
    from seglog_format.cli.output import write_text

    with output.progress("Reading", 10) as advance:
        output._running[0]._begun -= 1
        output._running[0]._drawn -= 1
        advance(5)
        assert "Reading" in terminal[-1]
        write_text("a line")
        assert terminal[-1] == output.ERASE
    assert capsys.readouterr().out == "a line\n"
    assert output.interrupted_text() == "interrupted"


def test_ctrl_c_says_how_far_the_work_was(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("seglog_format.checks.verify", stop)
    (partition,) = (path.parent for path in bundled("4.3.0/one").rglob("00000000000000000000.log"))
    assert run(["verify", str(partition)]) == 130
    assert capsys.readouterr().err.lstrip() == "seglog: interrupted; verifying was 0% done after 0 s\n"


@pytest.mark.parametrize(
    ("arguments", "label", "last"),
    [
        (["verify", "LOG"], "Verifying [", "no problems found ("),
        (["diff", "LOG", "LOG"], "Comparing [", "one-0: "),
        (["anonymise", "LOG", "-o", "made"], "Copying [", "6 files in 1 partition"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_progress_is_drawn_on_a_terminal_that_shows_the_output(
    arguments: list[str], label: str, last: str, tmp_path: Path
) -> None:
    (partition,) = (path.parent for path in bundled("4.3.0/one").rglob("00000000000000000000.log"))
    words = [str(partition) if word == "LOG" else word for word in arguments]
    script = (
        "import sys; from seglog_format.cli import output; output.FIRST_SECONDS = output.REDRAW_SECONDS = 0.0\n"
        f"from seglog_format.cli.main import run; sys.exit(run({words!r}))"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", script], stdout=theirs, stderr=theirs, cwd=tmp_path) as process:
        assert process.wait(60) == 0
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert label in shown
    assert shown.rpartition(output.ERASE)[2].strip().startswith(last)


# Colours, and what else commands take


@pytest.mark.parametrize(
    ("arguments", "has_colour"),
    [
        (["--color", "always", "ls"], True),
        (["ls", "--color=always"], True),
        (["ls", "--color=never"], False),
        (["ls"], False),
    ],
)
def test_every_command_takes_the_choice_of_colours(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, has_colour: bool
) -> None:
    monkeypatch.setenv(output.CHOICE, "auto")
    output.has_colour.cache_clear()
    (partition,) = (path.parent for path in bundled("4.3.0/one").rglob("00000000000000000000.log"))
    assert run([*arguments, str(partition)]) == 0
    assert ("\x1b[" in capsys.readouterr().out) == has_colour
    output.has_colour.cache_clear()


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": ""}, False), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
@pytest.mark.parametrize(("command", "code"), [("ls", b"\x1b[1m"), ("inspect", b"\x1b[3")])
def test_colour_in_a_pipe_if_the_environment_wants_it(
    command: str, code: bytes, environment: dict[str, str], *, is_coloured: bool
) -> None:
    (log,) = bundled("4.3.0/one").rglob("00000000000000000000.log")
    program = [sys.executable, "-m", "seglog_format.cli", command, str(log)]
    found = subprocess.run(program, capture_output=True, check=True, env=os.environ | environment)
    assert (code in found.stdout) == is_coloured


PRINTING = {
    "anonymise": "DIRECTORY -o NEW",
    "cluster": "ROOT",
    "completion": "bash",
    "diff": "DIRECTORY DIRECTORY",
    "doctor": "ROOT",
    "dump": "DIRECTORY",
    "explain": "SEG-IDX-004",
    "export": "DIRECTORY --to NEW --format jsonl",
    "find": "key DIRECTORY",
    "fixtures": "list --family 26",
    "conform": "list --family 26",
    "generate": "--list",
    "index": "DIRECTORY",
    "inspect": "LOG",
    "lookup": "DIRECTORY 0",
    "ls": "DIRECTORY",
    "recover": "DIRECTORY",
    "retain": "DIRECTORY",
    "salvage": "DIRECTORY -o NEW",
    "schema": "",
    "transactions": "ROOT",
    "verify": "DIRECTORY",
}
"""Arguments with which a command prints something. Those that are not here print their help page."""
CLOSED = {
    ">&-": (NOT_WRITTEN, "Bad file descriptor"),
    ">&- 2>&-": (NOT_WRITTEN, ""),
    ">/dev/full": (NOT_WRITTEN, "No space left on device"),
    "# a pipe": (PIPE_CLOSED, ""),
}
"""Status and message for each standard output that takes nothing. Of a pipe without a reader the status alone tells."""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("closed", CLOSED)
@each_of("name", ["--version", "--help", *COMMANDS], share=4)
def test_every_command_says_that_its_output_is_closed(name: str, closed: str, tmp_path: Path) -> None:
    log = next(bundled("4.3.0/txn-open").rglob("00000000000000000000.log"))
    paths = {"LOG": log, "DIRECTORY": log.parent, "ROOT": log.parent.parent, "NEW": tmp_path / f"{name}{len(closed)}"}
    given = PRINTING.get(name, "--help" if name in COMMANDS else "").split()
    words = [sys.executable, "-m", "seglog_format.cli", name, *(str(paths.get(word, word)) for word in given)]
    reading, writing = os.pipe()
    os.close(reading)
    call = ["/bin/sh", "-c", f"{shlex.join(words)} {closed}"]
    found = subprocess.run(call, stdout=writing, stderr=subprocess.PIPE, check=False, cwd=tmp_path, text=True)
    os.close(writing)
    status, message = CLOSED[closed]
    *before, last = found.stderr.splitlines() or [""]
    assert (found.returncode, last) == (status, message and f"seglog: {message}")
    assert all(line.startswith("seglog: ") for line in before)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_SEGLOG_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_generate_lists_what_a_recipe_can_have(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from seglog_format.generation.recipe_model import FAULT

    assert run(["generate", "--list"]) == 0
    text = capsys.readouterr().out
    forms = text.partition("faults of a topic\n")[2].split()
    assert all(FAULT.fullmatch(form.replace("[:N]", "").replace("N", "1")) for form in forms)
    assert {"crc@batch:N", "truncate@byte:N", "stale-index", "zero-index-tail[:N]"} <= set(forms)
    assert "name        'generated'\n" in text
    assert "codec         'none'  # none, gzip, snappy, lz4, zstd\n" in text
    assert re.search(r"size +\[4, 12\]\n", text.partition("[topic.step.key]\n")[2].partition("[topic")[0])
    recipe = tmp_path / "recipe.toml"
    keys = re.findall(r"^  (\w+) +(.+)$", text.partition("[[topic.step]]\n")[2].partition("\n[")[0], re.MULTILINE)
    lines = [f"{key} = {value}" for key, value in keys if not value.startswith("(")]
    recipe.write_text("\n".join(["[[topic]]", 'name = "t"', "[[topic.step]]", *lines]), encoding="utf-8")
    assert run(["generate", str(recipe), "-o", str(tmp_path / "made")]) == 0
    assert run(["generate"]) == 2


def test_serve_creates_topics_in_an_empty_directory_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("kio")
    root, state = tmp_path / "logs", ["--state", "none", "--port", "0", "--end-after", "0"]
    asked = ["serve", "--create", "orders:2", *state, str(root)]
    assert run(asked) == 2
    assert not root.exists()
    for _ in range(2):
        assert run([*asked, "--writable"]) == 0
        assert "1 topic, 2 partitions, open for writing" in capsys.readouterr().err
    assert sorted(path.name for path in root.iterdir() if path.is_dir()) == ["orders-0", "orders-1"]
    assert run(["serve", "--writable", "--create", "more", *state, str(root)]) == 2
    assert run(["serve", "--writable", "--create", "../x", *state, str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()


def test_one_file_for_both_outputs_has_their_lines_in_order() -> None:
    """Standard output waits in a buffer where it is no terminal, and what is said of it would come before it."""
    command = [sys.executable, "-m", "seglog_format.cli", "doctor", str(bundled("2.8.2/crash-flip") / "before")]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    printed = subprocess.run(
        command, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    ).stdout.splitlines()
    said = [number for number, line in enumerate(printed) if line.startswith("seglog: ")]
    assert said == list(range(len(printed) - len(said), len(printed)))
    assert said
