"""Decompression gives what the libraries give, to the byte, and refuses what they refuse, however a block is made.

Literals and matches that are short and far from both ends are copied whole, so blocks end here at every distance from
where that stops, in arenas behind which memory may not be touched.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import lz4.frame
import pytest

pytest.importorskip("pyarrow")

from helpers.walking import each_of
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.fuzz.codec_targets import ROOM, SLACK, by_reference, compare_content, decompressed
from proofs.fuzz.made_blocks import (
    DISTANCES,
    FAR,
    LITERAL,
    LITERAL_SIZES,
    MATCH_SIZES,
    MEDIUM,
    SHORT,
    literal,
    lz4_block,
    lz4_frame,
    random_lz4,
    random_snappy,
    snappy_block,
)
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from proofs.fuzz.made_blocks import Element, Step

LZ4, SNAPPY = CompressionCodec.LZ4, CompressionCodec.SNAPPY


def same_as_lz4(*blocks: bytes, is_sound: bool = False) -> bytes | None:
    """Content of a frame, held against the library, in rooms of several sizes too.

    The kernel leaves some blocks to the reference that the library takes, although the format forbids them: with a
    match that ends less than 5 bytes before the end, or from 0 bytes back. Those that are sound it has to take.
    """
    frame = lz4_frame(*blocks)
    compare_content(frame, LZ4, len(frame) & 3, is_plain=is_sound)
    return by_reference(frame, LZ4)


def same_as_snappy(block: bytes) -> bytes | None:
    compare_content(block, SNAPPY, len(block) & 3, is_plain=True)
    return by_reference(block, SNAPPY)


# lz4


literal_sizes = st.one_of(st.sampled_from(LITERAL_SIZES), st.integers(0, 70))
steps = st.tuples(literal_sizes, st.sampled_from(MATCH_SIZES), st.sampled_from(DISTANCES))


@settings(max_examples=300)
@given(st.lists(steps, max_size=9), literal_sizes, st.booleans())
def test_lz4_sequences(sequences: list[Step], last: int, are_possible: bool) -> None:  # noqa: FBT001 - drawn
    if are_possible:
        size, possible = 0, []
        for literals, match, distance in sequences:
            size += literals
            possible.append((literals, match, min(distance, max(size, 1))))
            size += match
        sequences = possible
    block = lz4_block(sequences, last)
    same_as_lz4(block)
    same_as_lz4(lz4_block([(20, 6, 3)], 12), block)


@each_of("distance", [1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 63, 64, 70])
def test_lz4_matches_end_at_every_distance_from_the_limits(distance: int) -> None:
    for match in (4, 5, 7, 8, 11, 16, 17, 18, 19, 20, 31, 33, 64, 80):
        for last in (0, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 45, 46, 50, 60, 62, 63, 64, 65):
            block = lz4_block([(max(distance, 14), match, distance)], last)
            assert same_as_lz4(block, is_sound=last > 11) is not None or last < 12


@each_of("literals", [*range(12, 19), *range(57, 67)])
def test_lz4_literals_end_at_every_distance_from_the_limits(literals: int) -> None:
    for before in (0, 1, 14, 15, 16):
        for last in range(0, 66, 3):
            same_as_lz4(lz4_block([(before + 1, 4, 1), (literals, 5, 16)], last), is_sound=last > 11)
            same_as_lz4(lz4_block([(before + 1, 4, 1)], literals + last), is_sound=True)


def test_lz4_blocks_cut_anywhere_are_refused_as_by_the_library() -> None:
    whole = lz4_block([(14, 18, 14), (15, 19, 16), (3, 40, 7), (0, 4, 64), (60, 80, 1), (2, 18, 16)] * 2, 70)
    for size in range(len(whole)):
        same_as_lz4(whole[:size])
        changed = bytearray(whole)
        changed[size] ^= 0xFF
        same_as_lz4(bytes(changed))


def test_lz4_blocks_hold_no_more_than_their_frame_says() -> None:
    for more in range(-20, 4):
        block = lz4_block([(64, 65536 - 64 - 12 + more, 16)], 12)
        content = same_as_lz4(block)
        assert (content is not None) == (more <= 0)
        for last in range(14):
            same_as_lz4(
                lz4_block([(14, 100, 1), (14, 65536 - 14 - 100 - 14 - 18 + more - last, 30), (0, 18, 16)], last)
            )


def test_lz4_matches_do_not_reach_into_the_block_before() -> None:
    assert same_as_lz4(lz4_block([], 64), lz4_block([(16, 20, 17)], 80)) is None
    assert same_as_lz4(lz4_block([], 64), lz4_block([(17, 20, 17)], 80)) is not None
    assert same_as_lz4(lz4_block([(0, 8, 1)], 80)) is None
    assert decompressed(lz4_frame(lz4_block([(20, 8, 0)], 80)), LZ4) is None


# snappy


elements = st.one_of(
    st.tuples(st.just(LITERAL), st.sampled_from(LITERAL_SIZES[1:]), st.integers(0, 4)),
    st.tuples(st.just(SHORT), st.integers(4, 11), st.sampled_from(DISTANCES)),
    st.tuples(st.sampled_from((MEDIUM, FAR)), st.integers(1, 64), st.sampled_from(DISTANCES)),
)


@settings(max_examples=300)
@given(st.lists(elements, max_size=12), st.sampled_from((0, 0, 0, 1, -1, 64, -64)), st.booleans())
def test_snappy_elements(found: list[Element], surplus: int, are_possible: bool) -> None:  # noqa: FBT001 - drawn
    if are_possible:
        size, possible = 0, []
        for kind, length, distance in found:
            kind, distance = (kind, distance) if size or kind == LITERAL else (LITERAL, 0)  # noqa: PLW2901
            possible.append((kind, length, min(distance, size) if kind != LITERAL else distance))
            size += length
        found = possible
    same_as_snappy(snappy_block(found, surplus))


@each_of("distance", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 70])
def test_snappy_copies_end_at_every_distance_from_the_limits(distance: int) -> None:
    for size in (1, 4, 5, 11, 15, 16, 17, 31, 32, 33, 48, 63, 64):
        for rest in (0, 1, 2, 3, 14, 15, 16, 17, 46, 47, 48, 59, 60, 61, 62, 63, 64, 65, 66):
            for kind in (SHORT, MEDIUM, FAR):
                if kind != SHORT or 4 <= size <= 11:
                    tail: list[Element] = [(LITERAL, rest, 0)] if rest else []
                    content = same_as_snappy(snappy_block([(LITERAL, distance, 0), (kind, size, distance), *tail]))
                    assert content is not None


@each_of("size", [1, 14, 15, 16, 17, 59, 60, 61, 62, 64, 65, 255, 256, 257])
def test_snappy_literals_end_at_every_distance_from_the_limits(size: int) -> None:
    for width in (0, 1, 2, 3, 4) if size <= 256 else (2, 3, 4):
        for copies in range(5):
            copied: list[Element] = [(MEDIUM, 17, 1)] * copies
            content = same_as_snappy(snappy_block([(LITERAL, 20, 0), (LITERAL, size, width), *copied]))
            assert content is not None or (size + 4 * copies < 4 and width)


def test_snappy_blocks_cut_anywhere_are_refused_as_by_the_library() -> None:
    whole = snappy_block(
        [(LITERAL, 16, 0), (SHORT, 11, 16), (LITERAL, 60, 1), (MEDIUM, 64, 17), (FAR, 64, 3), (SHORT, 4, 1)] * 3
    )
    for size in range(len(whole)):
        same_as_snappy(whole[:size])
        changed = bytearray(whole)
        changed[size] ^= 0xFF
        same_as_snappy(bytes(changed))


def test_snappy_literals_and_copies_beyond_the_end_are_refused() -> None:
    assert same_as_snappy(snappy_block([(LITERAL, 5, 0), (MEDIUM, 5, 6)])) is None
    assert same_as_snappy(snappy_block([(LITERAL, 5, 0), (MEDIUM, 5, 0)])) is None
    assert same_as_snappy(snappy_block([(LITERAL, 5, 0), (FAR, 5, 2**32 - 1)])) is None
    huge = b"\xff\xff\xff\xff\x0f" + literal(b"x", 4)
    assert same_as_snappy(huge) is None
    assert same_as_snappy(b"\x01" + bytes([63 << 2]) + b"\xff" * 4 + b"x") is None
    assert same_as_snappy(b"\x00") == b""


def test_snappy_sizes_of_literals_may_stand_behind_the_tag_wherever_the_block_ends() -> None:
    """The library wants four bytes behind the tag; Kafka's does not, and so neither the reference nor the kernel."""
    for width in (1, 2, 3, 4):
        for size in range(1, 6):
            assert same_as_snappy(snappy_block([(LITERAL, size, width)])) is not None


# both


@pytest.mark.parametrize("seed", range(3))
def test_blocks_by_chance(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same each time
    taken = 0
    for _ in range(400):
        taken += same_as_lz4(random_lz4(dice)) is not None
        taken += same_as_snappy(random_snappy(dice)) is not None
    assert taken > 400


@pytest.mark.parametrize("codec", [LZ4, SNAPPY])
def test_room_that_is_too_small_by_any_number_of_bytes(codec: CompressionCodec) -> None:
    if codec is LZ4:
        stored = lz4_frame(lz4_block([(14, 18, 14), (3, 33, 1), (20, 80, 17), (0, 18, 16), (7, 19, 9)], 21))
    else:
        stored = snappy_block([(LITERAL, 70, 0), (MEDIUM, 64, 16), (SHORT, 5, 1), (LITERAL, 16, 0), (FAR, 64, 40)])
    content = by_reference(stored, codec)
    assert content is not None
    for room in range(len(content) + SLACK):
        for used in (0, 1, 63):
            found = decompressed(stored, codec, used=used, room=room)
            assert found == (content if room >= len(content) else None)
    assert len(content) < ROOM


def test_a_xerial_header_is_one_to_the_last_bit() -> None:
    """Eight bytes are more than a floating-point number holds, and so would two that differ in their lowest bits."""
    header, block = (
        bytes.fromhex("82534e4150505900") + bytes(3) + b"\1" + bytes(3) + b"\1",
        snappy_block([(LITERAL, 7, 0)]),
    )
    for behind in (len(block).to_bytes(4, "big") + block, bytes(8), b""):
        for bit in range(64):
            changed = bytearray(header)
            changed[bit // 8] ^= 1 << bit % 8
            same_as_snappy(bytes(changed) + behind)
        for first in range(256):
            same_as_snappy(bytes([first]) + header[1:] + behind)


@pytest.mark.req("SEG-COD-012")
@each_of("size", [*range(1, 70), 255, 4096, 65_535])
def test_lz4_blocks_with_checksums(size: int) -> None:
    """Of every length around the stripes of the checksum; a wrong one is left to the reference, which refuses it."""
    content = random.Random(size).randbytes(size)  # noqa: S311 - the same each time
    for data in (content, bytes(size)):
        frame = bytearray(lz4.frame.compress(data, block_linked=False, block_checksum=True, store_size=False))
        compare_content(bytes(frame), LZ4, size & 3, is_plain=size < ROOM)
        frame[-5] ^= 1 << size % 8
        assert decompressed(bytes(frame), LZ4) is None
