"""Anonymised directories have the structure of the original, and none of its content."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import random
import re
import secrets
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import bundled, bundled_cases
from helpers.walking import each_of

from seglog_format.checks.verify import verify
from seglog_format.cli.main import run
from seglog_format.codec.decode import checksum_is_valid, decode_unverified
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.generation.anonymise import QUORUM_FIELDS, anonymise
from seglog_format.generation.anonymous_entries import PUBLIC_NAMES, Pseudonyms
from seglog_format.generation.generate import generate
from seglog_format.generation.recipe_model import SeededRandom
from seglog_format.log.partition import open_partition
from seglog_format.model import CompressionCodec, Frame, RecordBatchHeader
from seglog_format.names import parse_partition_directory
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Copies = Callable[[tuple[str, str]], tuple[Path, Path]]

RUN = 6
"""Bytes of the original that may not follow each other in a copy."""

COORDINATORS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
KAFKAS = (*COORDINATORS, "__cluster_metadata", "__remote_log_metadata")

CASES = [
    name
    for number, name in enumerate(bundled_cases())
    if name.startswith(("0.8", "0.9", "4.4.0")) or "crash" in name or name == "0.10.2.2/mixed-segs" or number % 8 == 0
]
ORIGINALS = [(name, state) for name in CASES for state in (("after", "before") if "/crash-" in name else ("",))]
"""Bundled cases, and the log directories in each; they are unpacked when a test begins."""

ID = re.compile(r"[A-Za-z0-9_-]{22}")
WITH_IDS = ("meta.properties", "partition.metadata", "quorum-state")


def partitions(root: Path) -> list[Path]:
    return sorted(root / name for name in LOCAL.entries(root)[1] if "-" in name)


def frames(log: Path) -> Iterator[Frame]:
    try:
        yield from walk(log.read_bytes())
    except FormatError:
        return


def shape(frame: Frame) -> tuple[Any, ...]:
    """Return what stays of an entry."""
    header = frame.header
    changing = {"crc", "base_timestamp_ms", "max_timestamp_ms", "timestamp_ms"}
    if header.codec_id:
        changing |= {"batch_length", "message_size"}
    fields = {name: value for name, value in dataclasses.asdict(header).items() if name not in changing}
    return tuple(fields.items())


def parts(frame: Frame) -> list[tuple[bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]]:
    """Keys, values and headers of an entry whose checksum may be wrong; none if it cannot be read."""
    try:
        records = decode_unverified(frame, at=Location()).records
    except FormatError:
        return []
    return [(r.key, r.value, tuple((header.key, header.value) for header in r.headers)) for r in records]


def sizes(frame: Frame) -> list[Any]:
    found = []
    for key, value, headers in parts(frame):
        of_headers = [(len(name), None if content is None else len(content)) for name, content in headers]
        found.append((None if key is None else len(key), None if value is None else len(value), of_headers))
    return found


def is_kafkas(partition: Path) -> bool:
    return parse_partition_directory(partition.name).topic in KAFKAS


def runs(data: bytes) -> set[bytes]:
    return {data[start : start + RUN] for start in range(len(data) - RUN + 1)}


def content_runs(root: Path) -> set[bytes]:
    """Every six bytes of keys, values, headers and topics of the original; zeros, and Kafka's own names, aside."""
    found: set[bytes] = set()
    for partition in partitions(root):
        if is_kafkas(partition):
            continue
        found |= runs(parse_partition_directory(partition.name).topic.encode())
        for log in partition.glob("*.log"):
            for frame in frames(log):
                if frame.header.is_control:
                    continue
                for key, value, headers in parts(frame):
                    for data in (key, value, *(each for pair in headers for each in pair)):
                        found |= runs(data or b"")
    return {run for run in found if len(set(run)) > 2}


def own_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> set[bytes]:
    """Every six bytes of texts, bytes and ids in records of Kafka's own topics, and of the ids in files beside logs."""
    files = [path for path in root.rglob("*") if path.name in WITH_IDS]
    texts = {found for path in files for found in ID.findall(path.read_text(encoding="utf-8"))}
    for partition in filter(is_kafkas, partitions(root)):
        run(["dump", "--json", "--decode", str(partition)])
        for line in map(json.loads, capsys.readouterr().out.splitlines()):
            texts |= set(strings(line.get("decoded")))
    found = {part for text in texts for part in runs(text.encode()) if len(set(part)) > 2}
    for text in texts:
        if ID.fullmatch(text):
            found |= runs(base64.urlsafe_b64decode(text + "=="))
        elif len(text) % 4 == 0 and re.fullmatch(r"[A-Za-z0-9+/]+=*", text):
            found |= runs(base64.b64decode(text))
    return {part for part in found if len(set(part)) > 3 or part.isalnum()}  # numbers in messages stay


def strings(value: object) -> Iterator[str]:
    """Yield every text in JSON but the names of fields."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(each)


def opened(root: Path) -> Iterator[bytes]:
    """Every file of a copy with the name of its directory, and what its compressed batches hold."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        yield path.relative_to(root).parent.as_posix().encode()
        yield path.read_bytes().strip(b"\0")
        for frame in frames(path) if path.suffix == ".log" else ():
            if frame.header.codec_id:
                yield from (data for key, value, _ in parts(frame) for data in (key, value) if data)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Return a function that gives an original and its copy, which is made when it is first asked for."""

    @cache
    def copied(named: tuple[str, str]) -> tuple[Path, Path]:
        original, target = bundled(named[0]) / named[1], tmp_path_factory.mktemp("copy") / "copy"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(secrets, "token_bytes", SeededRandom(7, "key").data)  # so no copy has letters of the original
            patch.setattr(secrets, "randbelow", random.Random(7).randrange)  # noqa: S311 - findings about junk stay the same
            anonymise(original, target)
        return original, target

    return copied


def pairs(copied: tuple[Path, Path]) -> list[tuple[Path, Path]]:
    """Return the partition directories of an original and of its copy; the order of names differs."""
    old, new = partitions(copied[0]), partitions(copied[1])
    assert len(old) == len(new)

    def files(partition: Path) -> tuple[int, list[tuple[str, int]]]:
        stored = sorted((path.name, path.stat().st_size) for path in partition.iterdir() if ".log" not in path.name)
        return len(partition.name), stored

    assert Counter(str(files(each)) for each in old) == Counter(str(files(each)) for each in new)
    return list(zip(sorted(old, key=files), sorted(new, key=files), strict=True)) if len(old) == 1 else []


@each_of("original", ORIGINALS, ids="/".join)
def test_damage_and_structure_stay(original: tuple[str, str], copies: Copies) -> None:
    copied = copies(original)
    old, new = copied
    assert {finding.requirement for finding in verify(old)} == {finding.requirement for finding in verify(new)}
    for partition, copy in pairs(copied):
        for log in sorted(partition.glob("*.log*")):
            before, after = list(frames(log)), list(frames(copy / log.name))
            assert [shape(frame) for frame in before] == [shape(frame) for frame in after]
            sound = [number for number, frame in enumerate(before) if checksum_is_valid(frame)]
            assert [sizes(before[number]) for number in sound] == [sizes(after[number]) for number in sound]
            assert sound == [number for number, frame in enumerate(after) if checksum_is_valid(frame)]


@each_of("original", ORIGINALS, ids="/".join)
def test_no_content_stays(original: tuple[str, str], copies: Copies, capsys: pytest.CaptureFixture[str]) -> None:
    copied = copies(original)
    content = content_runs(copied[0]) | own_runs(copied[0], capsys)
    for name in (*PUBLIC_NAMES, *QUORUM_FIELDS):
        content -= runs(name.encode())
    for data in opened(copied[1]):
        assert not content & runs(data)


@each_of("original", ORIGINALS, ids="/".join)
def test_equal_keys_stay_equal(original: tuple[str, str], copies: Copies) -> None:
    copied = copies(original)
    for partition, copy in pairs(copied):
        if is_kafkas(partition):
            continue
        kinds = []
        for directory in (partition, copy):
            with open_partition(directory) as stored:
                try:
                    keys = [record.key for record in stored.records()]
                except FormatError:
                    continue
            kinds.append([keys.index(key) for key in keys])
        assert len(kinds) < 2 or kinds[0] == kinds[1]


@each_of("original", ORIGINALS, ids="/".join)
def test_records_of_kafkas_topics_keep_their_form(
    original: tuple[str, str], copies: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = copies(original)
    for partition, copy in pairs(copied):
        if not is_kafkas(partition):
            continue
        forms = []
        for directory in (partition, copy):
            run(["dump", "--json", "--decode", str(directory)])
            lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            forms.append([form(line.get("decoded")) for line in lines if line["type"] == "record"])
        assert forms[0] == forms[1]


def form(value: object) -> object:
    """Return the structure of JSON, with the kind of each value and the sizes of texts."""
    if isinstance(value, dict):
        return {name: form(each) for name, each in value.items() if name != "embedded"}
    if isinstance(value, list):
        return [form(each) for each in value]
    return len(value.encode()) if isinstance(value, str) else type(value).__name__


# Replacements


def test_short_bytes_never_collide() -> None:
    made = Pseudonyms()
    assert len({made.noise(bytes([byte])) for byte in range(256)}) == 256
    assert len({made.noise(number.to_bytes(2, "big")) for number in range(65536)}) == 65536
    for size in range(40):
        data = bytes(range(size))
        assert len(made.noise(data)) == size
        assert made.noise(data) == made.noise(data)
    assert made.noise(b"") == b""
    assert Pseudonyms().noise(b"alice") != made.noise(b"alice")


def test_names_differ_and_keep_their_size() -> None:
    made = Pseudonyms()
    names = [f"topic-{number}" for number in range(500)] + ["ü", "__consumer_offsets"]
    replaced = [made.name(name) for name in names]
    assert len(set(replaced)) == len(names)
    assert [len(name.encode()) for name in names] == [len(name.encode()) for name in replaced]
    assert replaced[-1] == "__consumer_offsets"


def test_short_names_differ(tmp_path: Path) -> None:
    topics = [{"name": name, "step": [{"records": 1}]} for name in "abcdefghijklmnopqrstuvwxyz0123456789"]
    generate({"topic": topics}, tmp_path / "old")
    assert anonymise(tmp_path / "old", tmp_path / "new").partitions == 36
    assert len({path.name for path in partitions(tmp_path / "new")}) == 36


def test_times_and_ids() -> None:
    made = Pseudonyms()
    assert [made.time(0), made.time(-1)] == [0, -1]
    assert made.time(1_700_000_000_000) - made.time(1_600_000_000_000) == 100_000_000_000
    reserved = ["A" * 22, "A" * 21 + "Q", "A" * 21 + "g"]  # MIGRATING, UNASSIGNED, LOST
    assert [made.uuid(text) for text in reserved] == reserved
    some = made.uuid("abcdefghijklmnopqrstuw")
    assert len(some) == 22
    assert some == made.identifier("abcdefghijklmnopqrstuw") != "abcdefghijklmnopqrstuw"


# Damage


def test_what_cannot_be_read_becomes_random_and_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = b"my own secret value"
    step = {"records": 40, "batch": 10, "value": {"text": secret.decode()}, "key": {"kind": "null"}}
    faults = ["crc@batch:1", "junk-tail:200"]
    made = generate({"topic": [{"name": "mine", "step": [step], "faults": faults}]}, tmp_path / "old")
    log = made.partitions[0].path / f"{0:020}.log"
    with log.open("ab") as file:
        file.write(secret)
    (tmp_path / "old" / "private-notes.txt").write_bytes(secret)
    (made.partitions[0].path / "leader-epoch-checkpoint").write_bytes(secret)
    before = {path: path.read_bytes() for path in (tmp_path / "old").rglob("*") if path.is_file()}
    assert run(["anonymise", str(tmp_path / "old"), "-o", str(tmp_path / "new"), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    problems = [(line["problem"], line["isMissing"]) for line in lines if line["type"] == "notUnderstood"]
    assert [missing for _, missing in problems] == [True, False, False, False]
    assert "the tail" not in str(problems)
    assert all(secret[:RUN] not in data for data in opened(tmp_path / "new"))
    assert {path: path.read_bytes() for path in (tmp_path / "old").rglob("*") if path.is_file()} == before
    kinds = [{finding.requirement for finding in verify(tmp_path / name)} for name in ("old", "new")]
    assert kinds[0] == kinds[1] != set()


@each_of("name", ["leader-epoch-checkpoint", f"{0:020}.index", f"{0:020}.timeindex"])
def test_a_file_that_is_too_large_is_left_out(name: str, tmp_path: Path) -> None:
    source = tmp_path / "orders-0"
    source.mkdir()
    (source / f"{0:020}.log").touch()
    with (source / name).open("wb") as file:
        file.truncate(65 * 2**20)
    made = anonymise(source, tmp_path / "new")
    (left,) = made.not_understood
    assert (left.path, left.is_missing, made.files) == (name, True, 1)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_positions_follow_compressed_batches(magic: int, codec: CompressionCodec, tmp_path: Path) -> None:
    if magic < 2 and codec is CompressionCodec.ZSTD:
        return
    step = {"records": 400, "magic": magic, "codec": codec.label, "value": {"kind": "text", "size": [0, 300]}}
    topic = {"settings": {"index.interval.bytes": 200, "segment.bytes": 20000}, "step": [step]}
    generate({"topic": [topic]}, tmp_path / "old")
    assert anonymise(tmp_path / "old", tmp_path / "new").not_understood == ()
    assert list(verify(tmp_path / "new")) == []
    (copy,) = partitions(tmp_path / "new")
    with open_partition(copy) as stored:
        records = list(stored.records())
    assert [record.offset for record in records] == list(range(400))
    assert all(len(frame.data) for log in copy.glob("*.log") for frame in frames(log))


def test_hostile_bytes_end_in_an_answer(tmp_path: Path) -> None:
    made = generate({"topic": [{"step": [{"records": 3, "headers": {"count": 1}}]}]}, tmp_path / "old")
    (log,) = made.partitions[0].path.glob("*.log")
    data = log.read_bytes()
    (frame, *_) = walk(data)
    assert isinstance(frame.header, RecordBatchHeader)
    for position in range(0, len(data), 3):
        log.write_bytes(data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :])
        anonymise(tmp_path / "old", tmp_path / "copies" / str(position))


@pytest.mark.parametrize("depth", [300, 900, 30_000])
def test_nested_json_ends_in_an_answer(depth: int, tmp_path: Path) -> None:
    made = generate({"topic": [{"name": "__cluster_metadata"}]}, tmp_path / "old")
    data = b'{"data_version":0,"x":' + b"[" * depth + b"]" * depth + b"}"
    (made.partitions[0].path / "quorum-state").write_bytes(data)
    problems = [one.problem for one in anonymise(tmp_path / "old", tmp_path / "new").not_understood]
    assert problems in ([], ["the file cannot be read: SEG-LDR-006"])
    (copy,) = (tmp_path / "new").rglob("quorum-state")
    assert copy.stat().st_size == len(data) or not problems


SECRET = b"the quick brown fox jumps over my lazy dog, "
TORN = [(".log", start) for start in (0, 8, 20, 27, 43, 45, 51, 53, 57, 61)]
TORN += [(name, start) for name in (".timeindex", ".index", ".txnindex", ".snapshot") for start in range(13)]
TORN += [(name, 0) for name in ("leader-epoch-checkpoint", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown")]


@pytest.mark.parametrize("separator", [b" ", b"\n"])
@each_of(("name", "start"), TORN)
def test_text_of_another_file_is_not_copied(name: str, start: int, separator: bytes, tmp_path: Path) -> None:
    producers = {"kind": "transactional", "abort": 0.9}
    settings = {"index.interval.bytes": 100}
    topic = {"settings": settings, "step": [{"records": 40, "batch": 10, "producers": producers}]}
    generate({"topic": [topic]}, tmp_path / "old")
    path = next(path for path in sorted((tmp_path / "old").rglob("*")) if path.name.endswith(name))
    data = bytearray(path.read_bytes())
    if name == ".log":
        start += [frame.position for frame in walk(bytes(data))][1]
    secret = (SECRET.replace(b" ", separator) * 12)[: 512 if name == ".log" else 200]
    data[start : start + len(secret)] = secret
    path.write_bytes(data)
    anonymise(tmp_path / "old", tmp_path / "new")
    assert not any(runs(each) & runs(secret) for each in opened(tmp_path / "new"))


# What is read, and where is written


def stored(root: Path) -> dict[Path, tuple[int, int, bytes]]:
    """Return kind, time and content of everything below a directory."""
    return {
        path: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (root, *root.rglob("*"))
    }


def test_only_what_is_in_the_directory_is_read(tmp_path: Path) -> None:
    outside, old = tmp_path / "outside", tmp_path / "old"
    generate({"topic": [{"name": "foreign"}]}, outside)
    generate({"topic": [{"name": "mine", "step": [{"records": 9}]}]}, old)
    (old / "mine-1").symlink_to(old / "mine-0")
    (old / "foreign-0").symlink_to(outside / "foreign-0")
    (old / "mine-2").symlink_to(old)
    (old / "meta.properties").symlink_to(outside / ".kafka_cleanshutdown")
    partition = old / "mine-0"
    (partition / f"{7:020}.log").symlink_to(outside / "foreign-0" / f"{0:020}.log")
    (partition / f"{7:020}.index").symlink_to(tmp_path / "nowhere")
    (partition / f"{8:020}.log").symlink_to(partition / f"{0:020}.log")
    (partition / "inner").mkdir()
    os.mkfifo(partition / f"{9:020}.log")
    before = stored(outside) | stored(old)
    made = anonymise(old, tmp_path / "new")
    assert stored(outside) | stored(old) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old", "outside"]
    assert made.partitions == len(partitions(tmp_path / "new")) == 2
    assert not any(path.is_symlink() for path in (tmp_path / "new").rglob("*"))
    for copy in partitions(tmp_path / "new"):
        assert [log.name for log in sorted(copy.glob("*.log"))] == [f"{0:020}.log", f"{8:020}.log"]
    assert Counter((bool(one.path), one.problem) for one in made.not_understood) == {
        (False, "a link that leads out of the directory"): 3,
        (True, "a link that leads out of the directory"): 2,
        (True, "a link that leads nowhere"): 2,
        (True, "neither a regular file nor a directory"): 2,
        (True, "a directory inside that of a partition"): 2,
    }


def test_a_partition_may_have_another_name(tmp_path: Path) -> None:
    (partition,) = generate({"topic": [{"step": [{"records": 9}]}]}, tmp_path / "old").partitions
    partition.path.rename(tmp_path / "kept")
    assert anonymise(tmp_path / "kept", tmp_path / "new").partitions == 1
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(
        path.name for path in (tmp_path / "kept").iterdir()
    )


def test_other_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_bytes(SECRET)
    with pytest.raises(UsageError, match="neither a log directory nor a partition directory"):
        anonymise(tmp_path / "home", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_into_the_original(tmp_path: Path) -> None:
    generate({"topic": [{}]}, tmp_path / "old")
    with pytest.raises(UsageError, match="lies inside"):
        anonymise(tmp_path / "old", tmp_path / "old" / "new")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    with pytest.raises(UsageError, match="lies inside"):
        anonymise(tmp_path / "old", tmp_path / "link" / "new")
    with pytest.raises(UsageError, match="not an empty directory"):
        anonymise(tmp_path / "old", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not an empty directory"):
        anonymise(tmp_path / "old", tmp_path / "file")
    assert run(["anonymise", str(tmp_path / "none"), "-o", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
