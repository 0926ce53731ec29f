"""Checksums by carry-less products: generated code for instructions that Python has no expression for.

Code for instructions that the processor lacks is never called (`cpu.checksum_path`), and is only generated if it can
be compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_format.columnar import cpu
from seglog_format.columnar.compiled import cgutils, intrinsic, ir, types
from seglog_format.columnar.crc_constants import CRC32_REFLECTED, CRC32C_REFLECTED, multiplier
from seglog_format.columnar.memory import I8, I32, I64, LINE, REGION, ask, check, declare, pointer

if TYPE_CHECKING:
    from collections.abc import Callable

PAIR = ir.VectorType(I64, 2)
ACCUMULATORS = 4
PREFETCH_BYTES = 4096
CONTENT_LANES = {cpu.NARROW: 1, cpu.WIDE: 4}
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

    return signature, generate if cpu.supports(cpu.NARROW) else _unavailable(types.uint64)


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

        return signature, generate if cpu.supports(cpu.NARROW) else _unavailable(types.uint64)

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

    return signature, generate if cpu.supports(cpu.NARROW) else _unavailable(types.uint64)


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

    return result(types.uint64, types.uint64), generate if cpu.supports(cpu.NARROW) else _unavailable(result)


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
        return signature, generate if cpu.supports(path) else _unavailable(result)

    return fold  # type: ignore[no-any-return]


fold_crc32 = _fold(cpu.NARROW, CRC32_REFLECTED)
fold_crc32_wide = _fold(cpu.WIDE, CRC32_REFLECTED)
fold_crc32c_wide = _fold(cpu.WIDE, CRC32C_REFLECTED)


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
    return signature, generate if cpu.supports(cpu.NARROW) else _unavailable(result)


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
