"""What a broker does not accept in a log directory: named by every command that looks at it, as brokers act.

`fixtures/witnesses/broker_starts.json` has what stock brokers of 3.9.1 and 4.4.0 did with each change.
"""

from __future__ import annotations

import json
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.batches import sealed
from helpers.support import FIXTURES, authentic
from helpers.walking import each_of

from seglog_format.cli.main import run
from seglog_format.cluster.cluster import Cluster
from seglog_format.codec.framing import walk
from seglog_format.doctor import starts
from seglog_format.doctor.statements import Kind
from seglog_format.log.directory import LogDirectories, LogDirectory
from seglog_format.log.listing import list_log_directory
from seglog_format.recovery.start_problems import StartEffect, start_problems, topic_id_read

if TYPE_CHECKING:
    from collections.abc import Callable

WITNESS: Final[dict[str, Any]] = json.loads((FIXTURES / "witnesses" / "broker_starts.json").read_text(encoding="utf-8"))
PARTITION: Final = "txn-open-0"
METADATA: Final = "__cluster_metadata-0"


def directory(name: str) -> Callable[[Path], None]:
    def add(logs: Path) -> None:
        (logs / name).mkdir()
        (logs / name / "kept").write_bytes(b"x")

    return add


def topic_id(data: bytes | None) -> Callable[[Path], None]:
    def change(logs: Path) -> None:
        path = logs / PARTITION / "partition.metadata"
        path.unlink() if data is None else path.write_bytes(data)

    return change


def later(snapshot: int | None) -> Callable[[Path], None]:
    """Have the metadata log begin at 200, with a snapshot at an offset."""

    def change(logs: Path) -> None:
        for path in [*(logs / METADATA).glob("*.checkpoint"), *(logs / METADATA).glob(f"{0:020}.*")]:
            path.unlink(missing_ok=True)
        (logs / METADATA / f"{200:020}.log").touch()
        if snapshot is not None:
            (logs / METADATA / f"{snapshot:020}-0000000001.checkpoint").touch()

    return change


CHANGES: Final[dict[str, Callable[[Path], None]]] = {
    "nothing changed": lambda _logs: None,
    "directory lost+found": directory("lost+found"),
    "empty directory lost+found": lambda logs: (logs / "lost+found").mkdir(),
    "directory without a number": directory("backup"),
    "directory with a number that is none": directory("orders-x"),
    "hidden directory": directory(".snapshot"),
    "directory without a topic": directory("-0"),
    "directory with a suffix": directory("orders-0.bak"),
    "file in the root": lambda logs: (logs / "notes.txt").write_bytes(b"x") and None,
    "partition.metadata missing": topic_id(None),
    "partition.metadata empty": topic_id(b""),
    "partition.metadata cut short": topic_id(b"version: 0\n"),
    "partition.metadata unreadable": topic_id(b"hello"),
    "metadata log from a later offset": later(None),
    "metadata log from its snapshot": later(200),
    "metadata log from above its snapshot": later(150),
    "metadata log from below its snapshot": later(250),
}
"""By the name of the case in the witness."""
BY_SEVERAL: Final = {
    "partition.metadata of another topic",
    "partition missing",
    "partition in two directories",
    "another cluster id",
    "meta.properties missing in one of two",
}
"""Cases that need the metadata log or the other log directories of a broker; `cluster` and `verify` report them."""
ACCEPTED: Final = {"hidden directory with a dash", "directory with an illegal topic"}
"""Names that can be parsed: a broker takes the directories for partitions of topics that it does not know."""
UNCHANGED: Final = {"metadata log from 0 without snapshots"}
COMMANDS: Final = ("verify", "recover", "cluster")


def made(root: Path, change: Callable[[Path], None]) -> Path:
    for case in ("root", "cluster-metadata", "txn-open"):
        shutil.copytree(authentic(f"4.3.0/{case}"), root, dirs_exist_ok=True)
    change(root)
    return root


def test_every_case_of_the_witness_is_tried() -> None:
    for found in WITNESS["brokers"].values():
        assert found.keys() == CHANGES.keys() | BY_SEVERAL | ACCEPTED | UNCHANGED


@pytest.mark.parametrize("release", WITNESS["brokers"])
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.req("SEG-LDR-001", "SEG-LDR-008", "SEG-PDR-029")
def test_effects_are_those_of_brokers(name: str, release: str, tmp_path: Path) -> None:
    found = [each.effect for each in start_problems(list_log_directory(made(tmp_path, CHANGES[name])))]
    broker = WITNESS["brokers"][release][name]
    is_stray = any(added.endswith("-stray") for added in broker["added"])
    assert found == [StartEffect.REFUSES] * (not broker["starts"]) + [StartEffect.STRAY] * is_stray


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [name for name, change in CHANGES.items() if change is not CHANGES["nothing changed"]])
@pytest.mark.req("SEG-LDR-001", "SEG-LDR-008", "SEG-PDR-029")
def test_commands_name_what_a_broker_refuses(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = made(tmp_path, CHANGES[name])
    problems = list(start_problems(list_log_directory(logs)))
    status = run([command, str(logs)])
    captured = capsys.readouterr()
    said = captured.out + captured.err
    for problem in problems:
        assert status == 1
        assert problem.error.requirements[0] in said
        assert command == "verify" or problem.effect.value in said


STARTED: Final[dict[str, Any]] = json.loads(
    (FIXTURES / "witnesses" / "started_directories.json").read_text(encoding="utf-8")
)["brokers"]
ROOT_FILES: Final = {
    "recovery points": "recovery-point-offset-checkpoint",
    "log start offsets": "log-start-offset-checkpoint",
    "meta.properties": "meta.properties",
}


@each_of("kind", ROOT_FILES)
def test_a_broker_ends_on_root_files_that_it_cannot_read(kind: str, tmp_path: Path) -> None:
    """An empty checkpoint has no entries; the other texts were given to brokers."""
    texts = {"": None} if kind != "meta.properties" else {}
    texts |= {text: end for kinds in STARTED.values() for text, end in kinds[kind].items()}
    for number, (text, end) in enumerate(texts.items()):
        change = text.format(topic=PARTITION[:-2])
        path = made(tmp_path / str(number), lambda _logs: None)
        (path / ROOT_FILES[kind]).write_text(change, encoding="utf-8")
        found = {(each.effect, each.error.location.path) for each in start_problems(list_log_directory(path))}
        assert found == ({(StartEffect.REFUSES, str(path / ROOT_FILES[kind]))} if end else set())
        (path / METADATA).rename(tmp_path / f"{number}-metadata")
        effects = {each.effect for each in start_problems(list_log_directory(path))}
        assert effects <= {StartEffect.GIVEN_UP}


GIVEN_UP: Final[dict[str, Any]] = json.loads(
    (FIXTURES / "witnesses" / "given_up_directories.json").read_text(encoding="utf-8")
)


@each_of("case", [f"{release} {name}" for release, names in GIVEN_UP["brokers"].items() for name in names])
def test_a_root_file_that_cannot_be_read_takes_its_directory_or_the_broker(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other log directory has the metadata log, or this one; both have partitions."""
    release, _, name = case.partition(" ")
    seen = GIVEN_UP["brokers"][release][name]
    logs = [made(tmp_path / each, lambda _logs: None) for each in ("first", "second")]
    shutil.rmtree(logs[1] / METADATA)
    (logs[1] / PARTITION).rename(logs[1] / "orders-1")
    file = name.split(",")[0]
    (logs["without" in name] / file).write_text(GIVEN_UP["text"])
    run(["doctor", "--json", *map(str, logs)])
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {
        each["what"].split(":")[0] for each in said if Path(each["file"]).name == file and each["kind"] == "no start"
    }
    if not seen["starts"]:
        assert found == {StartEffect.REFUSES.value}
    else:
        assert found == ({StartEffect.GIVEN_UP.value} if seen["givenUp"] else set())


@each_of("release", STARTED)
def test_directories_that_the_metadata_log_does_not_have_become_stray(release: str, tmp_path: Path) -> None:
    for number, (given, is_stray) in enumerate(STARTED[release]["directory of no topic"].items()):
        name = given.removesuffix(" with files").replace("p000", PARTITION[:-2])
        logs = made(tmp_path / str(number), lambda _logs: None)
        (logs / name).mkdir()
        if given.endswith(" with files"):
            shutil.copytree(logs / PARTITION, logs / name, dirs_exist_ok=True)
        directory = LogDirectory(list_log_directory(logs))
        said = [*starts.about_directory(directory), *starts.about_directories(Cluster(LogDirectories([directory])))]
        found = [each.what.startswith(StartEffect.STRAY.value) for each in said if name in each.where.path]
        assert (given, found) == (given, [True] if is_stray else [])


PROPERTIES: Final[dict[str, Any]] = json.loads(
    (FIXTURES / "witnesses" / "meta_properties.json").read_text(encoding="utf-8")
)
TRIMMED: Final = "version with a space after it"
"""Nodes of 3.9.1 and 4.4.0 cut off the space; the rule, which is older, has numbers without it."""


@each_of("release", PROPERTIES["releases"])
@pytest.mark.req("SEG-LDR-005")
def test_meta_properties_end_a_start_where_they_end_that_of_a_node(release: str, tmp_path: Path) -> None:
    neighbour = PROPERTIES["neighbour"]
    for number, (name, text) in enumerate(PROPERTIES["texts"].items()):
        answers = PROPERTIES["answers"][release]
        for way, end in answers["version no number" if name == TRIMMED else name].items():
            texts = {"only": (text,), "first": (text, neighbour), "second": (neighbour, text)}[way]
            paths = [tmp_path / f"{number}-{way}-{each}" for each in range(len(texts))]
            for path, given in zip(paths, texts, strict=True):
                path.mkdir()
                (path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
                if given is not None:
                    (path / "meta.properties").write_text(given)
            (paths[0] / METADATA).mkdir()
            directories = [LogDirectory(list_log_directory(path)) for path in paths]
            said = [each for one in directories for each in starts.about_directory(one)]
            said += starts.about_directories(Cluster(LogDirectories(directories)))
            assert len({(each.what, each.where) for each in said}) == len(said), "a statement is made twice"
            found = {each.what.startswith(StartEffect.GIVEN_UP.value) for each in said if each.kind is Kind.START}
            assert (name, way, found) == (name, way, set() if end is None else {end == "given up"})


TOPIC_IDS: Final[dict[str, Any]] = json.loads(
    (FIXTURES / "witnesses" / "partition_metadata.json").read_text(encoding="utf-8")
)


@pytest.mark.req("SEG-CKP-009")
@each_of("release", TOPIC_IDS["answers"])
def test_the_topic_id_is_that_which_a_broker_reads(release: str, tmp_path: Path) -> None:
    """Another word before the colon is no reason for it not to start."""
    for number, (name, text) in enumerate(TOPIC_IDS["texts"].items()):
        logs = made(tmp_path / str(number), topic_id(text.encode("latin-1")))
        found = topic_id_read(logs / PARTITION)
        refused = {each.effect for each in start_problems(list_log_directory(logs))}
        expected = TOPIC_IDS["answers"][release][name].get("topicId")
        assert (name, found, refused) == (name, expected, set() if expected else {StartEffect.REFUSES})
    (logs / PARTITION / "partition.metadata").unlink()
    (logs / PARTITION / "partition.metadata").mkdir()
    assert topic_id_read(logs / PARTITION) is None


@pytest.mark.req("SEG-PDR-029")
@pytest.mark.parametrize("command", ["ls", "verify", "cluster"])
def test_a_metadata_log_is_never_tiered(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = made(tmp_path, later(None))
    assert run([command, str(logs)]) == 1
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert "tiered" not in said
    assert "0 to 199" in said


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.req("SEG-LDR-008")
def test_only_a_kraft_cluster_needs_the_file(version: int, tmp_path: Path) -> None:
    logs = made(tmp_path, topic_id(None))
    shutil.rmtree(logs / METADATA)
    number = "broker.id=1" if version == 0 else "node.id=1"
    (logs / "meta.properties").write_text(f"version={version}\n{number}\ncluster.id=x\n")
    assert len(list(start_problems(list_log_directory(logs)))) == version


def test_a_plan_of_recovery_has_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = made(tmp_path, topic_id(None))
    assert run(["recover", "--json", str(logs)]) == 1
    *_, line = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["type"], line["effect"]) == ("start", StartEffect.STRAY.value)


OLDER: Final[dict[str, Any]] = json.loads(
    (FIXTURES / "witnesses" / "older_directories.json").read_text(encoding="utf-8")
)
LEVELS: Final = {"3.3-IV0": 4, "3.3-IV2": 6, "3.3-IV3": 7}
"""The level of `metadata.version` by its name."""
STARTING: Final = {"kraft": "4.4.0", "zookeeper": "3.9.1"}
"""The release that starts in each mode; that of 3.9 may have a ZooKeeper."""


def of_age(root: Path, age: str) -> Path:
    for case in ("root", "plain"):
        shutil.copytree(authentic(f"{age}/{case}"), root, dirs_exist_ok=True)
    return root


def of_level(root: Path, level: str) -> Path:
    """Return a log directory of 3.4.1 with another level of `metadata.version` in its metadata log."""
    for case in ("root", "cluster-metadata"):
        shutil.copytree(authentic(f"3.4.1/{case}"), root, dirs_exist_ok=True)
    old, new = (b"\x11metadata.version\x00" + bytes([each]) for each in (8, LEVELS[level]))
    for path in (root / METADATA).glob("*0*.*"):
        if path.suffix in {".log", ".checkpoint"}:
            data = path.read_bytes()
            entries = [bytes(each.data).replace(old, new) for each in walk(data)]
            path.write_bytes(b"".join(map(sealed, entries)))
    return root


AGES: Final[dict[str, Callable[[Path], Path]]] = {
    f"{mode} {name}": partial(
        of_level if mode == "levels" else of_age, **{"level" if mode == "levels" else "age": name}
    )
    for mode in ("kraft", "zookeeper", "levels")
    for name in (OLDER[mode] if mode == "levels" else OLDER[mode][STARTING[mode]])
}
"""Log directories that an earlier age made, each with how a broker of `STARTING` was started on it."""


@each_of("made_by", AGES)
def test_what_brokers_make_of_directories_of_an_earlier_age(
    made_by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory that an earlier age made, and that a broker refuses or empties, is said to be so."""
    mode, _, name = made_by.partition(" ")
    found = OLDER[mode][name] if mode == "levels" else OLDER[mode][STARTING[mode]][name]
    path = AGES[made_by](tmp_path / "data")
    version = STARTING.get(mode, "4.4.0")[:3]
    status = run(["doctor", "--json", "--version", version, str(path)])
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    if mode == "levels":  # settings of its topics are refused as well
        said = [each for each in said if "metadata.version" in each["what"]]
    kinds = ["no start"] * (not found["starts"]) + ["loss"] * any(each.endswith("-stray") for each in found["added"])
    assert (made_by, [each["kind"] for each in said]) == (made_by, kinds)
    assert mode == "levels" or status == (1 if kinds else 0)
    for each in said:
        assert f"Kafka {version}" in each["what"]
        node = tmp_path / "node"
        words = [str(node) if word == "NODE" else word for word in shlex.split(each["next"])[1:]]
        assert run(words) in {0, 1}
        assert (node / "meta.properties").exists()


def test_a_broker_serves_the_message_formats_of_earlier_ages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So nothing is said of them."""
    for release, ages in OLDER["formats"].items():
        for age, records in ages.items():
            assert records > 0
            logs = made(tmp_path / f"{release}-{age}", lambda _logs: None)
            kept = (logs / PARTITION / "partition.metadata").read_bytes()
            shutil.rmtree(logs / PARTITION)
            shutil.copytree(authentic(f"{age}/plain") / "plain-0", logs / PARTITION)
            (logs / PARTITION / "partition.metadata").write_bytes(kept)
            run(["doctor", "--json", "--version", release[:3], str(logs)])
            said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            rules = {rule for each in said if PARTITION in each["file"] for rule in each["requirements"]}
            assert rules <= {"SEG-CKP-009"}  # its topic is of another cluster
