"""What the explorer decompresses by itself is what the codecs' libraries make of the same bytes."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from itertools import islice
from typing import TYPE_CHECKING, Any

import lz4.frame
import pytest
import zstandard
from helpers import node_tools
from helpers.damage import damaged_cases
from helpers.node_support import need_node
from helpers.support import REPOSITORY, bundled, bundled_cases

from seglog_format.codec.compression import compress, decompress
from seglog_format.codec.framing import walk
from seglog_format.errors import Location
from seglog_format.model import CompressionCodec, RecordBatchHeader
from seglog_format.schema.fixed_fields import RECORD_BATCH_HEADER_SIZE
from tools.docs import explorer_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SCRIPT = REPOSITORY / "tests" / "node" / "explorer_codecs.cjs"
LIMIT = 1 << 20
"""Bytes that the script lets come out."""
SIZES = (0, 1, 5, 100, 1_000, 5_000, 70_000, 300_000)
MAX_BATCHES = 20
"""Entries of a log that are looked at."""
LEVELS = (-5, 1, 3, 9, 19)
WORDS = [b"warehouse", b"\xff\x00", b"Zo\xc3\xab", b'{"id":', b"a", b"amount"]


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the explorer's modules where Node.js takes them for what they are."""
    need_node("decompressing without a browser")
    directory = tmp_path_factory.mktemp("modules")
    for path in explorer_page.SOURCES.glob("*.js"):
        shutil.copy(path, directory)
    (directory / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    return directory


def answers(modules: Path, questions: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return a digest of what comes out of each codec, or the rule that its bytes break."""
    text = json.dumps([{"codec": codec, "hex": data.hex()} for codec, data in questions])
    found: list[str] = json.loads(node_tools.node(SCRIPT, str(modules), text=text))
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def contents(dice: random.Random) -> Iterator[bytes]:
    """Bytes that compress badly, well, and in between."""
    for size in SIZES:
        yield dice.randbytes(size)
        yield bytes(size)
        yield b"".join(dice.choice(WORDS) for _ in range(size // 4))
        yield bytes(dice.choice(b"abcdefgh ") for _ in range(size))


def lz4_frame(data: bytes, dice: random.Random) -> bytes:
    flags = {name: dice.random() < 0.5 for name in ("content_checksum", "block_checksum", "store_size")}
    level, size = dice.choice((0, 9)), dice.choice((4, 5, 6, 7))
    return bytes(lz4.frame.compress(data, block_linked=False, block_size=size, compression_level=level, **flags))


def zstd_frame(data: bytes, dice: random.Random) -> bytes:
    settings: dict[str, Any] = {
        name: dice.random() < 0.5 for name in ("write_checksum", "write_content_size", "write_dict_id")
    }
    return zstandard.ZstdCompressor(level=dice.choice(LEVELS), **settings).compress(data)


def test_content_comes_out_as_it_went_in(modules: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)  # noqa: S311 - a seed that a failure names
    questions, wanted = [], []
    for data in contents(dice):
        questions += [(codec.label, bytes(compress(codec, data, magic=2))) for codec in list(CompressionCodec)[1:]]
        questions += [
            ("lz4", lz4_frame(data, dice)),
            ("zstd", zstd_frame(data, dice)),
            ("zstd", zstd_frame(data, dice)),
        ]
        wanted += [digest(data)] * 7
    assert answers(modules, questions) == wanted, f"seed {seed}"


def test_several_frames_come_out_one_after_the_other(modules: Path) -> None:
    dice = random.Random(1)  # noqa: S311 - the same each time
    skippable = bytes.fromhex("5f2a4d18 03000000") + b"abc"
    data = zstd_frame(b"first", dice) + skippable + zstd_frame(b"second" * 999, dice)
    assert answers(modules, [("zstd", data)]) == [digest(b"first" + b"second" * 999)]


def stored_batches() -> Iterator[tuple[str, bytes, bytes]]:
    """Yield codec, stored and decompressed records of batches that brokers wrote."""
    for name in bundled_cases():
        for log in bundled(name).rglob("*.log") if "crash" not in name else ():
            for frame in islice(walk(log.read_bytes()), MAX_BATCHES):
                header = frame.header
                if isinstance(header, RecordBatchHeader) and header.codec_id:
                    stored = bytes(frame.data[RECORD_BATCH_HEADER_SIZE:])
                    content = decompress(header.codec_id, stored, magic=header.magic, at=Location(name))
                    yield CompressionCodec(header.codec_id).label, stored, bytes(content)


def test_batches_of_brokers_come_out_as_the_reference_reads_them(modules: Path) -> None:
    batches = list(stored_batches())
    assert {codec for codec, _, _ in batches} == {"gzip", "snappy", "lz4", "zstd"}
    found = answers(modules, [(codec, stored) for codec, stored, _ in batches])
    assert found == [digest(content) for _, _, content in batches]


def test_damage_is_called_by_the_rule_that_it_breaks(modules: Path, tmp_path: Path) -> None:
    """But for checksums, which the explorer leaves to the command line."""
    wanted, questions = {}, []
    for case in damaged_cases():
        path = case.build(tmp_path / case.name) if case.violates[0].startswith("SEG-COD") else None
        if path is None or path.suffix != ".log":
            continue
        frame = next(iter(walk(path.read_bytes())))
        if isinstance(frame.header, RecordBatchHeader) and frame.header.codec_id in range(1, 5):
            wanted[case.name] = case.violates[0]
            stored = bytes(frame.data[RECORD_BATCH_HEADER_SIZE:])
            questions.append((CompressionCodec(frame.header.codec_id).label, stored))
    found = dict(zip(wanted, answers(modules, questions), strict=True))
    unseen = {name: found[name] for name, rule in wanted.items() if found[name] != rule}
    assert len(wanted) > 12
    assert {wanted[name] for name in unseen} <= {
        "SEG-COD-007",  # header checksums
        "SEG-COD-011",  # what follows the end is passed over
        "SEG-COD-012",  # block checksums
        "SEG-COD-018",
        "SEG-COD-019",
    }, unseen


@pytest.mark.parametrize("codec", list(CompressionCodec)[1:])
def test_no_damage_throws_or_takes_long(codec: CompressionCodec, modules: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)  # noqa: S311 - a seed that a failure names
    questions = []
    for data in (b"", b"a" * 500, b"".join(dice.choice(WORDS) for _ in range(400))):
        whole = bytes(compress(codec, data, magic=2))
        questions += [(codec.label, whole[:size]) for size in range(len(whole))]
        for _ in range(300):
            changed = bytearray(whole)
            for _ in range(dice.randrange(1, 4)):
                changed[dice.randrange(len(changed))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            questions.append((codec.label, bytes(changed)))
    wrong = [
        (question[1].hex(), answer)
        for question, answer in zip(questions, answers(modules, questions), strict=True)
        if not (len(answer) == 64 or explorer_page.IDENTIFIER.fullmatch(answer))
    ]
    assert wrong == [], f"seed {seed}"


def test_no_more_comes_out_than_is_allowed(modules: Path) -> None:
    data = bytes(LIMIT + 1)
    bombs = [(codec.label, bytes(compress(codec, data, magic=2))) for codec in list(CompressionCodec)[1:]]
    assert answers(modules, bombs) == ["SEG-COD-016"] * 4
