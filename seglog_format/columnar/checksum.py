"""CRC-32C and CRC-32 of a range of bytes, at the speed of the processor (SEG-BAT-003, SEG-MSG-004).

Three paths give the same numbers (`compiled.checksum_path`); a kernel takes the path as an argument. For data outside
of the caches, memory limits the speed rather than arithmetic, so every path prefetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zlib import crc32 as crc32_of

import numpy as np

from seglog_format.columnar import compiled
from seglog_format.columnar.compiled import cgutils, helper, inlined, intrinsic, ir, kernel, types, uint64
from seglog_format.columnar.memory import (
    I8,
    I32,
    I64,
    LINE,
    REGION,
    ask,
    check,
    declare,
    load_le16,
    load_le32,
    load_le64,
    load_u8,
    pointer,
    prefetch,
    region,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.columnar.arrays import Bytes, Region


# -- powers of x modulo the two polynomials of the format, for tables and carry-less products --------------------------
# All numbers are reflected, as the checksums are: the highest power is the lowest bit.


CRC32_REFLECTED: Final = 0xEDB88320
CRC32C_REFLECTED: Final = 0x82F63B78

BARRETT_POLYNOMIAL: Final = CRC32_REFLECTED << 1 | 1
"""CRC-32's polynomial with its 33rd bit."""
BARRETT_QUOTIENT: Final = 0x1F7011641
"""x^64 divided by that polynomial."""


def _product(a: int, b: int, polynomial: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        product ^= a if b >> bit & 1 else 0
        a = a >> 1 ^ (polynomial if a & 1 else 0)
    return product


def power(exponent: int, polynomial: int) -> int:
    """Return x to some power, modulo a polynomial."""
    result, square = 1 << 31, 1 << 30
    while exponent:
        result = _product(result, square, polynomial) if exponent & 1 else result
        square = _product(square, square, polynomial)
        exponent >>= 1
    return result


def multiplier(bits: int, polynomial: int) -> int:
    """Return the factor of a carry-less product that moves 64 bits ahead; reflection loses one bit."""
    return power(bits, polynomial) << 1


def tables(polynomial: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return, for each byte of eight, its remainder after the bytes that follow."""
    rows = np.zeros((8, 256), np.int64)
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (polynomial if rest & 1 else 0)
        rows[0, byte] = rest
    for distance in range(1, 8):
        before = rows[distance - 1]
        rows[distance] = before >> 8 ^ rows[0, before & 255]
    return rows


# -- checksums by carry-less products: generated code for instructions that Python has no expression for ---------------
# Code for instructions that the processor lacks is never called (`checksum_path`), and is only generated if it can be
# compiled.


PAIR = ir.VectorType(I64, 2)
ACCUMULATORS = 4
PREFETCH_BYTES = 4096
CONTENT_LANES = {compiled.NARROW: 1, compiled.WIDE: 4}
"""Lanes of 128 bits in a vector, by path."""


def fold_size(path: int) -> int:
    """Return the number of bytes that one step of `fold_crc32` or `fold_crc32c_wide` folds."""
    return ACCUMULATORS * 16 * CONTENT_LANES[path]


def _unavailable(result: Any) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del builder, signature, arguments
        return context.get_constant_null(result)

    return generate


@intrinsic
def crc32c_64(typing: Any, crc: Any, word: Any) -> Any:
    """Update the CRC-32C register by eight bytes."""
    del typing, crc, word
    signature = types.uint64(types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.call(declare(builder, "llvm.x86.sse42.crc32.64.64", I64, [I64, I64]), arguments)

    return signature, generate if compiled.supports(compiled.NARROW) else _unavailable(types.uint64)


def _crc32c_small(bits: int) -> Callable[[Any, int], Any]:
    width = ir.IntType(bits)

    @intrinsic
    def step(typing: Any, crc: Any, word: Any) -> Any:
        del typing, crc, word
        signature = types.uint64(types.uint64, types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            function = declare(builder, f"llvm.x86.sse42.crc32.32.{bits}", I32, [I32, width])
            register = builder.trunc(arguments[0], I32)
            return builder.zext(builder.call(function, [register, builder.trunc(arguments[1], width)]), I64)

        return signature, generate if compiled.supports(compiled.NARROW) else _unavailable(types.uint64)

    return step  # type: ignore[no-any-return]


crc32c_8 = _crc32c_small(8)
crc32c_16 = _crc32c_small(16)


@intrinsic
def crc32c_32(typing: Any, crc: Any, word: Any) -> Any:
    """Update the CRC-32C register by four bytes."""
    del typing, crc, word
    signature = types.uint64(types.uint64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        function = declare(builder, "llvm.x86.sse42.crc32.32.32", I32, [I32, I32])
        return builder.zext(builder.call(function, [builder.trunc(each, I32) for each in arguments]), I64)

    return signature, generate if compiled.supports(compiled.NARROW) else _unavailable(types.uint64)


@intrinsic
def product(typing: Any, a: Any, b: Any) -> Any:
    """Return the low and the high half of the carry-less product of two 64-bit numbers."""
    del typing, a, b
    result = types.UniTuple(types.uint64, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(PAIR, [0, 0])
        vectors = [builder.insert_element(zero, each, ir.Constant(I32, 0)) for each in arguments]
        whole = builder.call(_multiply(builder, 1), [*vectors, ir.Constant(I8, 0)])
        return _halves(context, builder, signature, whole)

    return result(types.uint64, types.uint64), generate if compiled.supports(compiled.NARROW) else _unavailable(result)


def _halves(context: Any, builder: Any, signature: Any, whole: Any) -> Any:
    """Return a tuple of the two halves of 128 bits."""
    halves = [builder.extract_element(whole, ir.Constant(I32, half)) for half in (0, 1)]
    return context.make_tuple(builder, signature.return_type, halves)


def _move(bits: int, polynomial: int) -> tuple[int, int]:
    """Return the factors that move the two halves of 128 bits ahead by some number of bits."""
    return multiplier(bits + 32, polynomial), multiplier(bits - 32, polynomial)


def _vector(lanes: int) -> Any:
    return ir.VectorType(I64, 2 * lanes)


def _multiply(builder: Any, lanes: int) -> Any:
    name = "llvm.x86.pclmulqdq" if lanes == 1 else f"llvm.x86.pclmulqdq.{128 * lanes}"
    vector = _vector(lanes)
    return declare(builder, name, vector, [vector, vector, I8])


class _Folding:
    """Generates the code that folds a range of bytes into 128 bits with the same remainder."""

    def __init__(self, builder: Any, address: Any, lanes: int, polynomial: int) -> None:
        self.builder = builder
        self.address = address
        self.lanes = lanes
        self.polynomial = polynomial
        self.vector = _vector(lanes)
        self.step_size = 16 * lanes

    def loaded(self, start: Any, number: int) -> Any:
        """Return the vector with a number, counted from a position."""
        builder = self.builder
        position = builder.add(start, ir.Constant(I64, number * self.step_size))
        address = builder.gep(self.address, [position])
        value = builder.load(builder.bitcast(address, self.vector.as_pointer()))
        value.align = 1
        return value

    def moved(self, value: Any, size: int, following: Any, lanes: int) -> Any:
        """Return a vector moved ahead by a number of bytes, added to the vector there."""
        constant = ir.Constant(_vector(lanes), [*_move(8 * size, self.polynomial)] * lanes)
        return self.builder.xor(self.product(value, constant, lanes), following)

    def product(self, value: Any, constant: Any, lanes: int) -> Any:
        """Return a vector with both halves of each lane moved by a constant."""
        multiply, builder = _multiply(self.builder, lanes), self.builder
        return builder.xor(*(builder.call(multiply, [value, constant, ir.Constant(I8, half)]) for half in (0, 0x11)))

    def summed(self, value: Any, count: Any) -> Any:
        """Return the sum of a vector and a number of others, each moved ahead to leave a vector free after it."""
        builder, zero = self.builder, ir.Constant(I64, 0)
        before = builder.block
        body, done = builder.append_basic_block("sum"), builder.append_basic_block("summed")
        builder.cbranch(builder.icmp_signed("<", zero, count), body, done)
        builder.position_at_end(body)
        number, sum_ = builder.phi(I64), builder.phi(self.vector)
        block = self.loaded(builder.mul(number, ir.Constant(I64, self.step_size)), 0)
        left = builder.sub(count, number)
        total = builder.xor(sum_, self.product(block, _row(builder, "moves", MOVES, left), 1))
        following = builder.add(number, ir.Constant(I64, 1))
        for phi, start, new in ((number, zero, following), (sum_, value, total)):
            phi.add_incoming(start, before)
            phi.add_incoming(new, body)
        builder.cbranch(builder.icmp_signed("<", following, count), body, done)
        builder.position_at_end(done)
        result = builder.phi(self.vector)
        result.add_incoming(value, before)
        result.add_incoming(total, body)
        return result

    def opened(self, crc: Any) -> list[Any]:
        """Return the first vectors, with the register added to the first bytes."""
        zero = ir.Constant(I64, 0)
        values = [self.loaded(zero, number) for number in range(ACCUMULATORS)]
        blank = ir.Constant(self.vector, [0] * (2 * self.lanes))
        values[0] = self.builder.xor(values[0], self.builder.insert_element(blank, crc, ir.Constant(I32, 0)))
        return values

    def loop(self, values: list[Any], size: Any) -> list[Any]:
        """Fold until all bytes are folded."""
        builder, total = self.builder, ACCUMULATORS * self.step_size
        before = builder.block
        body, done = builder.append_basic_block("fold"), builder.append_basic_block("folded")
        first = ir.Constant(I64, total)
        builder.cbranch(builder.icmp_signed("<", first, size), body, done)
        builder.position_at_end(body)
        position = builder.phi(I64)
        kept = [builder.phi(self.vector) for _ in values]
        for line in range(0, total, LINE):
            ahead = builder.add(position, ir.Constant(I64, PREFETCH_BYTES + line))
            ask(builder, builder.gep(self.address, [ahead]))
        new = [self.moved(each, total, self.loaded(position, n), self.lanes) for n, each in enumerate(kept)]
        following = builder.add(position, ir.Constant(I64, total))
        for phi, start, value in zip([position, *kept], [first, *values], [following, *new], strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(value, body)
        builder.cbranch(builder.icmp_signed("<", following, size), body, done)
        builder.position_at_end(done)
        folded = [builder.phi(self.vector) for _ in values]
        for phi, start, value in zip(folded, values, new, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(value, body)
        return folded

    def narrowed(self, values: list[Any]) -> Any:
        """Fold all vectors into one of 128 bits."""
        builder, single = self.builder, values[0]
        for value in values[1:]:
            single = self.moved(single, self.step_size, value, self.lanes)
        lane = ir.VectorType(I32, 2)
        pairs = [
            builder.shuffle_vector(single, single, ir.Constant(lane, [2 * n, 2 * n + 1])) for n in range(self.lanes)
        ]
        result = pairs[0]
        for pair in pairs[1:]:
            result = self.moved(result, 16, pair, 1)
        return result


def _fold(path: int, polynomial: int) -> Callable[[Any, int, int, Any], tuple[int, int]]:
    """Fold a range of one or more whole steps (`fold_size`), after an initial register."""
    result = types.UniTuple(types.uint64, 2)

    @intrinsic
    def fold(typing: Any, data: Any, position: Any, size: Any, crc: Any) -> Any:
        del typing, data, position, size, crc

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, position, size, crc = arguments
            check(context, builder, array, position, size)
            address = pointer(context, builder, array, position, 0)
            folding = _Folding(builder, address, CONTENT_LANES[path], polynomial)
            whole = folding.narrowed(folding.loop(folding.opened(crc), size))
            return _halves(context, builder, signature, whole)

        signature = result(REGION, types.int64, types.int64, types.uint64)
        return signature, generate if compiled.supports(path) else _unavailable(result)

    return fold  # type: ignore[no-any-return]


fold_crc32 = _fold(compiled.NARROW, CRC32_REFLECTED)
fold_crc32_wide = _fold(compiled.WIDE, CRC32_REFLECTED)
fold_crc32c_wide = _fold(compiled.WIDE, CRC32C_REFLECTED)


SHORTEST, LONGEST = 16, 255
"""Minimum and maximum size for `fold_short_crc32`."""


@intrinsic
def fold_short_crc32(typing: Any, data: Any, start: Any, size: Any) -> Any:
    """Return 128 bits with the remainder of a short range and register 0; no product depends on another.

    Each 16 bytes are moved to the end by a constant of their own. Bytes before the first whole 16 are loaded together
    with bytes before the range, which are masked out; so 16 readable bytes must precede it.
    """
    del typing, data, start, size
    result = types.UniTuple(types.uint64, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where, start, size = arguments
        sixteen, one = ir.Constant(I64, SHORTEST), ir.Constant(I64, 1)
        check(context, builder, where, builder.sub(start, sixteen), builder.add(size, sixteen))
        rest, blocks = builder.and_(size, ir.Constant(I64, 15)), builder.lshr(size, ir.Constant(I64, 4))
        first = builder.add(start, rest)
        folding = _Folding(builder, pointer(context, builder, where, first, 0), 1, CRC32_REFLECTED)
        before = folding.loaded(ir.Constant(I64, -SHORTEST), 0)
        head = builder.and_(before, _row(builder, "kept", [_kept(count) for count in range(16)], rest))
        last = builder.sub(blocks, one)
        folded = folding.summed(folding.product(head, _row(builder, "moves", MOVES, blocks), 1), last)
        whole = builder.xor(folded, folding.loaded(builder.mul(last, sixteen), 0))
        return _halves(context, builder, signature, whole)

    signature = result(REGION, types.int64, types.int64)
    return signature, generate if compiled.supports(compiled.NARROW) else _unavailable(result)


def _kept(count: int) -> tuple[int, int]:
    """Return a mask of the last ``count`` of 16 bytes."""
    bits = ((1 << 8 * count) - 1) << 8 * (16 - count)
    return bits & 0xFFFFFFFFFFFFFFFF, bits >> 64


MOVES = [(0, 0), *(_move(128 * blocks, CRC32_REFLECTED) for blocks in range(1, 16))]


def _row(builder: Any, name: str, rows: list[tuple[int, int]], number: Any) -> Any:
    """Return one row of a table of constants of 128 bits."""
    kind = ir.ArrayType(PAIR, len(rows))
    table = ir.Constant(kind, [ir.Constant(PAIR, list(row)) for row in rows])
    held = cgutils.global_constant(builder.module, f"seglog.{name}", table)
    return builder.load(builder.gep(held, [ir.Constant(I64, 0), number]))


# -- cRC-32C and CRC-32 of a range of bytes ----------------------------------------------------------------------------


PORTABLE: Final = compiled.PORTABLE
WIDE: Final = compiled.WIDE
ONES: Final = 0xFFFFFFFF

CRC32_TABLES: Final = tables(CRC32_REFLECTED)
CRC32C_TABLES: Final = tables(CRC32C_REFLECTED)
AFTER_ZEROS: Final = np.array([crc32_of(bytes(size)) for size in range(LONGEST + 1)], np.int64)
"""CRC-32 of each number of zeros: the contribution of the initial register to the checksum of any bytes."""

NARROW_FOLD: Final = fold_size(compiled.NARROW)
WIDE_FOLD: Final = fold_size(compiled.WIDE)

LARGE_LANE: Final = 1024
MEDIUM_LANE: Final = 128
LANE_PREFETCH: Final = 6144
SMALL_PREFETCH: Final = 4096

LARGE_ONE, LARGE_TWO = (power(8 * n * LARGE_LANE - 33, CRC32C_REFLECTED) for n in (1, 2))
MEDIUM_ONE, MEDIUM_TWO = (power(8 * n * MEDIUM_LANE - 33, CRC32C_REFLECTED) for n in (1, 2))
"""Multipliers that move the first and second of three lanes to the end of the third."""

FOLD_LOW, FOLD_HIGH = multiplier(128 + 32, CRC32_REFLECTED), multiplier(128 - 32, CRC32_REFLECTED)
MOVE_64: Final = multiplier(64, CRC32_REFLECTED)


@inlined
def crc32c(path: int, data: Region, start: int, size: int) -> int:
    """Compute CRC-32C of ``size`` bytes from ``start``."""
    if path != PORTABLE and size < 3 * MEDIUM_LANE:  # a call would cost more than these instructions
        for line in range(start, start + size, LINE):
            prefetch(data, line + SMALL_PREFETCH)
        return _crc32c_rest(data, start, start + size, uint64(ONES)) ^ ONES
    return _crc32c_large(path, data, start, size)


@helper
def _crc32c_large(path: int, data: Region, start: int, size: int) -> int:
    """Compute CRC-32C of any number of bytes."""
    if path == PORTABLE:
        return _by_tables(CRC32C_TABLES, data, start, size, ONES) ^ ONES
    crc, position, end = uint64(ONES), start, start + size
    if path == WIDE and size >= WIDE_FOLD:
        whole = size // WIDE_FOLD * WIDE_FOLD
        low, high = fold_crc32c_wide(data, position, whole, crc)
        crc = crc32c_64(crc32c_64(uint64(0), low), high)
        position += whole
    else:
        crc, position = _lanes(data, position, end, crc, LARGE_LANE, LARGE_ONE, LARGE_TWO)
        crc, position = _lanes(data, position, end, crc, MEDIUM_LANE, MEDIUM_ONE, MEDIUM_TWO)
    return _crc32c_rest(data, position, end, crc) ^ ONES


@inlined
def _joined(first: int, second: int, third: int, one: int, two: int) -> int:
    """Return the register after three lanes that were computed in parallel."""
    low, _ = product(first & uint64(ONES), uint64(two))
    other, _ = product(second & uint64(ONES), uint64(one))
    joined: int = third ^ crc32c_64(uint64(0), low ^ other)
    return joined


@helper
def _lanes(data: Region, position: int, end: int, crc: int, lane: int, one: int, two: int) -> tuple[int, int]:
    """Compute three lanes in parallel, since one chain of instructions would wait for its own results."""
    while end - position >= 3 * lane:
        first, second, third = crc, uint64(0), uint64(0)
        for word in range(position, position + lane, 8):
            prefetch(data, word + LANE_PREFETCH)
            prefetch(data, word + lane + LANE_PREFETCH)
            prefetch(data, word + 2 * lane + LANE_PREFETCH)
            first = crc32c_64(first, load_le64(data, word))
            second = crc32c_64(second, load_le64(data, word + lane))
            third = crc32c_64(third, load_le64(data, word + 2 * lane))
        crc = _joined(first, second, third, one, two)
        position += 3 * lane
    return crc, position


@helper
def _crc32c_rest(data: Region, position: int, end: int, crc: int) -> int:
    """Compute the rest, word by word."""
    while end - position >= 8:
        crc = crc32c_64(crc, load_le64(data, position))
        position += 8
    left = end - position
    if left & 4:
        crc = crc32c_32(crc, load_le32(data, position))
        position += 4
    if left & 2:
        crc = crc32c_16(crc, load_le16(data, position))
        position += 2
    if left & 1:
        crc = crc32c_8(crc, load_u8(data, position))
    return int(crc)


@helper
def crc32(path: int, data: Region, start: int, size: int) -> int:
    """Compute CRC-32 of ``size`` bytes from ``start``."""
    if path == PORTABLE or size < 16:
        return _by_tables(CRC32_TABLES, data, start, size, ONES) ^ ONES
    if size <= LONGEST and start >= SHORTEST:
        line = start + SMALL_PREFETCH
        while line < start + size + SMALL_PREFETCH:
            prefetch(data, line)
            line += LINE
        low, high = fold_short_crc32(data, start, size)
        return _remainder(low, high) ^ int(AFTER_ZEROS[size])
    position, end = start, start + size
    if path == WIDE and size >= WIDE_FOLD:
        whole = size // WIDE_FOLD * WIDE_FOLD
        low, high = fold_crc32_wide(data, position, whole, uint64(ONES))
        position += whole
    elif size >= NARROW_FOLD:
        whole = size // NARROW_FOLD * NARROW_FOLD
        low, high = fold_crc32(data, position, whole, uint64(ONES))
        position += whole
    else:
        low, high = load_le64(data, position) ^ uint64(ONES), load_le64(data, position + 8)
        position += 16
    while end - position >= 16:
        low, high = _folded(low, high, load_le64(data, position), load_le64(data, position + 8))
        position += 16
    if position < end:
        low, high = _folded_rest(data, end, end - position, low, high)
    return _remainder(low, high) ^ ONES


@helper
def _folded(low: int, high: int, next_low: int, next_high: int) -> tuple[int, int]:
    """Return 128 bits folded onto the next 128."""
    first, second = product(low, uint64(FOLD_LOW))
    third, fourth = product(high, uint64(FOLD_HIGH))
    return first ^ third ^ next_low, second ^ fourth ^ next_high


@inlined
def _folded_rest(data: Region, end: int, size: int, low: int, high: int) -> tuple[int, int]:
    """Fold 128 bits and a rest of 1 to 15 bytes, as if the rest ended the last 128 bits of a longer range.

    The 16 bytes before the end are loaded: the rest, and bytes before it that are masked out.
    """
    last_low, last_high = load_le64(data, end - 16), load_le64(data, end - 8)
    bits = uint64(8 * size)
    if size < 8:
        back = uint64(64) - bits
        head_low, head_high = uint64(0), low << back
        tail_low = low >> bits | high << back
        tail_high = high >> bits | (last_high >> back << back)
    elif size == 8:
        head_low, head_high = uint64(0), low
        tail_low, tail_high = high, last_high
    else:
        over, back = bits - uint64(64), uint64(128) - bits
        head_low, head_high = low << back, low >> over | high << back
        tail_low, tail_high = high >> over | (last_low >> back << back), last_high
    return _folded(head_low, head_high, tail_low, tail_high)


@inlined
def _remainder(low: int, high: int) -> int:
    """Return 128 bits modulo the polynomial (Barrett's reduction)."""
    ones = uint64(ONES)
    first, second = product(low, uint64(FOLD_HIGH))
    low, high = high ^ first, second
    shifted = low >> uint64(32) | high << uint64(32)
    first, _ = product(low & ones, uint64(MOVE_64))
    rest = first ^ shifted
    quotient, _ = product(rest & ones, uint64(BARRETT_QUOTIENT))
    multiple, _ = product(quotient & ones, uint64(BARRETT_POLYNOMIAL))
    return int((rest ^ multiple) >> uint64(32))


@helper
def _by_tables(
    rows: np.ndarray[tuple[int, int], np.dtype[np.int64]], data: Region, start: int, size: int, crc: int
) -> int:
    """Compute eight bytes at a time, with a table for each."""
    position, end = start, start + size
    while end - position >= 8:
        low = load_le32(data, position) ^ crc
        high = load_le32(data, position + 4)
        crc = rows[7, low & 255] ^ rows[6, low >> 8 & 255] ^ rows[5, low >> 16 & 255] ^ rows[4, low >> 24]
        crc ^= rows[3, high & 255] ^ rows[2, high >> 8 & 255] ^ rows[1, high >> 16 & 255] ^ rows[0, high >> 24]
        position += 8
    while position < end:
        crc = crc >> 8 ^ rows[0, (crc ^ load_u8(data, position)) & 255]
        position += 1
    return crc


@kernel
def checksum(is_castagnoli: bool, path: int, data: Bytes, start: int, size: int) -> int:
    """Compute one checksum, CRC-32C or CRC-32, for callers in Python."""
    if start < 0 or size < 0 or start + size > len(data):
        return -1
    where = region(data)
    return crc32c(path, where, start, size) if is_castagnoli else crc32(path, where, start, size)
