"""gzip and zstd by functions of C libraries: the content of the reference, and nothing where that is in doubt."""

from __future__ import annotations

import gzip
import random
import sys
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

import zstandard
from helpers.scans import segment_directory
from hypothesis import given
from hypothesis import strategies as st

from proofs.fuzz.codec_targets import by_reference, decompressed, libraries
from proofs.fuzz.judging import LIMIT, SMALL_LIMIT
from seglog_format import open_partition
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.compression import compress
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import chunks, run
from seglog_format.columnar.chunks import MAX_DEFLATION, SLOTS, Decoders
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GZIP, ZSTD = CompressionCodec.GZIP, CompressionCodec.ZSTD
CODECS = (GZIP, ZSTD)
OPTIONS = {GZIP: 1, ZSTD: 0}
CONTENTS = (b"", b"x", b"segment " * 40, random.Random(1).randbytes(700), bytes(70_000))  # noqa: S311 - the same each time


def streams(codec: CompressionCodec, content: bytes) -> Iterator[bytes]:
    """Yield the content as clients write it, and in the other ways that kernels take."""
    yield compress(codec, content, magic=2)
    if codec is ZSTD:
        for has_size in (False, True):
            for has_checksum in (False, True):
                compressor = zstandard.ZstdCompressor(write_content_size=has_size, write_checksum=has_checksum)
                yield compressor.compress(content)
                streaming = compressor.compressobj(len(content) if has_size else -1)
                yield streaming.compress(content) + streaming.flush()
    else:
        for level in (0, 1, 9):
            yield gzip.compress(content, level, mtime=0)


@pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 2**32, reason="other wheels need not show their functions")
def test_the_wheels_that_are_installed_show_their_functions() -> None:
    assert all(Decoders().slots)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("content", CONTENTS, ids=len)
@pytest.mark.req("SEG-COD-001")
def test_content_comes_without_the_interpreter(codec: CompressionCodec, content: bytes) -> None:
    for stored in streams(codec, content):
        assert decompressed(stored, codec, used=5, room=LIMIT) == content == by_reference(stored, codec)


@pytest.mark.parametrize("codec", CODECS)
def test_streams_cut_anywhere_and_with_any_byte_changed_have_no_other_content_than_the_reference_finds(
    codec: CompressionCodec,
) -> None:
    dice = random.Random(3)  # noqa: S311 - the same each time
    for stored in streams(codec, b"segment " * 9 + dice.randbytes(40)):
        for cut in range(len(stored)):
            libraries(stored[:cut], OPTIONS[codec])
        for flipped_byte in range(len(stored)):
            for changed in (stored[flipped_byte] ^ 1 << dice.randrange(8), 0, 0xFF):
                libraries(stored[:flipped_byte] + bytes([changed]) + stored[flipped_byte + 1 :], OPTIONS[codec])
        libraries(stored + b"\0", OPTIONS[codec])
        libraries(stored + stored, OPTIONS[codec])


@given(st.sampled_from(CODECS), st.binary(max_size=400), st.integers(1, 60), st.booleans())
def test_any_content(codec: CompressionCodec, part: bytes, times: int, is_limited: bool) -> None:  # noqa: FBT001 - drawn
    for stored in streams(codec, part * times):
        libraries(stored, OPTIONS[codec] | 2 * is_limited)


@pytest.mark.parametrize("codec", CODECS)
def test_no_more_than_the_limit_is_decompressed(codec: CompressionCodec) -> None:
    for stored in streams(codec, bytes(SMALL_LIMIT + 1)):
        assert decompressed(stored, codec, limit=SMALL_LIMIT) is None


def test_a_size_that_deflate_cannot_reach_gets_no_memory() -> None:
    stored = gzip.compress(b"x" * 50, mtime=0)
    most = MAX_DEFLATION * (len(stored) - 18)
    for size in (most + 1, 2**30, 2**32 - 1):
        assert decompressed(stored[:-4] + size.to_bytes(4, "little"), GZIP, room=LIMIT) is None


# Without the functions


def test_a_module_that_is_not_there_or_shows_nothing_has_no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("no_such_module_anywhere", "isal.no_such_module", "isal.igzip", "json", "sys"):
        monkeypatch.setattr(chunks, "ZSTD_MODULE", module)
        monkeypatch.setattr(chunks, "GZIP_MODULE", module)
        assert chunks.zstd_library.__wrapped__() is None
        assert chunks.gzip_library.__wrapped__() is None


@pytest.mark.parametrize("versions", [{"zstandard": "0.24", "isal": "1.10"}, {}])
def test_a_version_that_is_not_known_is_not_called(versions: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "KNOWN_VERSIONS", versions)
    assert chunks.zstd_library.__wrapped__() is None
    assert chunks.gzip_library.__wrapped__() is None


def test_without_the_package_there_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(chunks, "version", missing)
    assert chunks.zstd_library.__wrapped__() is None


class OtherLayout:
    """Instead of a library: one whose streams have something else where the output is told."""

    def isal_inflate_init(self, stream: Any) -> None:
        """Nothing to do."""

    def isal_inflate_stateless(self, stream: Any) -> int:  # noqa: ARG002 - called as the library's is
        """Report that all went well."""
        return 0


def test_streams_laid_out_in_another_way_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_library", lambda *_: OtherLayout())
    assert chunks.gzip_library.__wrapped__() is None


@pytest.fixture
def _without_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("zstd_library", "gzip_library"):
        monkeypatch.setattr(chunks, library, lambda: None)


@pytest.mark.usefixtures("_without_functions")
@pytest.mark.parametrize("codec", CODECS)
def test_entries_are_decompressed_by_the_interfaces_of_python_then(
    codec: CompressionCodec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Decoders().slots == [0] * SLOTS
    asked: list[int] = []
    decompressed = run.Run._decompress

    def counted(self: run.Run) -> Any:
        asked.append(self.position)
        return decompressed(self)

    monkeypatch.setattr(run.Run, "_decompress", counted)
    values = [b"value" * number for number in range(9)]
    records = [new_record(value=value, timestamp_ms=5) for value in values]
    data = b"".join(encode_batch(build_batch(records, base_offset=at, codec=codec)) for at in range(0, 90, 9))
    with open_partition(segment_directory(tmp_path / "other-0", data)) as partition:
        found = [value for batch in partition.scan(["value"]) for value in batch.column(0).to_pylist()]
    assert len(asked) == 10
    assert found == values * 10
