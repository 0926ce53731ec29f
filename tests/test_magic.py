"""The magic file for file(1): what it says of every bundled file of every broker version, and of what is none."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from helpers.support import FIXTURES, REPOSITORY, vector
from helpers.walking import each_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = REPOSITORY / "docs" / "reference" / "kafka.magic"
LARGEST = 2**20
CODECS = ("", ", gzip", ", snappy", ", lz4", ", zstd")
CODEC_BITS = 7
UNNAMED = (".index", ".timeindex", ".txnindex")
"""Files of bare numbers, which nothing but their name tells."""
KINDS = {
    *("Kafka log", "Kafka producer snapshot", "Kafka partition.metadata", "Kafka meta.properties"),
    *("Kafka offset checkpoint", "Kafka leader epoch checkpoint", "Kafka checkpoint without entries"),
    *("JSON text data", "data", "empty"),
}
EMPTY_CHECKPOINT = b"0\n0\n"


def said(paths: list[Path], *options: str) -> list[str]:
    """Return what file(1) says of some files."""
    command = ["file", "--brief", "--magic-file", str(MAGIC), *options, "--files-from", "-"]
    names = "".join(f"{path}\n" for path in paths)
    done = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    if shutil.which("file") is None:
        pytest.skip("the test of the magic file needs the program `file`")


def bundled_files() -> Iterator[tuple[str, str, bytes]]:
    """Archive, name and content of each bundled file, without all but the first mebibyte of large ones."""
    for archive in sorted(FIXTURES.glob("kafka-*/*/files.tar.gz")):
        with tarfile.open(archive) as members:
            for member in members:
                if member.isfile() and (file := members.extractfile(member)) is not None:
                    where = f"{archive.parent.parent.name}/{archive.parent.name}/{member.name}"
                    yield where, member.name.rpartition("/")[2], file.read(LARGEST)


def expected(name: str, data: bytes) -> str:
    """Return what the page about the magic file promises."""
    plain = name.removesuffix(".deleted")
    if not data:
        return "empty"
    if plain.endswith((".log", ".checkpoint")):
        return log_text(data)
    if plain.endswith(UNNAMED):
        return "data"
    if plain.endswith(".snapshot"):
        return "Kafka producer snapshot"
    return text_file(name, data.decode())


def log_text(data: bytes) -> str:
    size, magic = int.from_bytes(data[8:12]), data[16]
    if size == 0:
        return "data"
    offset = int.from_bytes(data[:8])
    if magic < 2:
        return f"Kafka log, messages (magic {magic}), offset {offset}{CODECS[data[17] & CODEC_BITS]}"
    attributes = int.from_bytes(data[21:23])
    more = ", transactional" if attributes & 16 else ""
    more += ", control batch first" if attributes & 32 else ""
    return f"Kafka log, record batches (magic 2), base offset {offset}{CODECS[attributes & CODEC_BITS]}{more}"


def text_file(name: str, text: str) -> str:
    if text.startswith("{"):
        return "JSON text data"
    if name == "partition.metadata":
        return f"Kafka partition.metadata, topic id {text.rsplit(maxsplit=1)[-1]}"
    if name == "meta.properties":
        found = re.search(r"^(?:broker|node)\.id=\d+", text, re.MULTILINE)
        assert found is not None
        return f"Kafka meta.properties, {found[0]}"
    if text.encode() == EMPTY_CHECKPOINT:
        return "Kafka checkpoint without entries"
    return f"Kafka {'leader epoch' if name.startswith('leader') else 'offset'} checkpoint"


def test_every_bundled_file_is_called_what_it_is(tmp_path: Path) -> None:
    wanted, paths = [], []
    for number, (where, name, data) in enumerate(bundled_files()):
        paths.append(tmp_path / f"{number}")
        paths[-1].write_bytes(data)
        wanted.append((where, expected(name, data)))
    found = list(zip((where for where, _ in wanted), said(paths), strict=True))
    assert [one for one, due in zip(found, wanted, strict=True) if one != due] == []
    kinds = Counter(text.partition(",")[0] for _, text in found)
    assert kinds.keys() >= KINDS


@each_of("name", [f"V-{number:02}" for number in range(1, 20)])
def test_every_vector_of_an_entry_is_called_a_log(name: str, tmp_path: Path) -> None:
    path = tmp_path / "entry"
    path.write_bytes(vector(name))
    assert said([path]) == [log_text(vector(name))]


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 100,
        b"\0\1abcd\0\0\0\0more",
        vector("V-06")[:16] + b"\3" + vector("V-06")[17:],
        vector("V-06")[:8] + b"\0\0\0\x30" + vector("V-06")[12:],
        b"0\n1\nno number here\n",
        b"# a comment\nid=1\n",
    ],
    ids=["zeros", "snapshot of a wrong size", "magic 3", "length 48", "no checkpoint", "other properties"],
)
def test_what_is_none_is_not_called_kafka(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    assert not said([path])[0].startswith("Kafka")


def test_no_other_file_of_this_repository_is_called_kafka() -> None:
    directories = ("docs", "seglog_format", "tests", "spec", "reports")
    paths = [path for name in directories for path in sorted((REPOSITORY / name).rglob("*")) if path.is_file()]
    assert [text for text in said(paths) if "Kafka" in text and text.startswith("Kafka")] == []
