"""Loads and stores at byte positions of a region of memory, of any alignment.

Positions are not checked: kernels validate them before use. ``NUMBA_BOUNDSCHECK=1`` compiles a check into every load
and store; the tests run hostile inputs with these checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_format.columnar.compiled import cgutils, config, helper, inlined, intrinsic, ir, types

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.columnar.arrays import Region


WIDTHS: Final = {bits: ir.IntType(bits) for bits in (8, 16, 32, 64)}
I8, I16, I32, I64 = WIDTHS.values()
REGION: Final = types.UniTuple(types.int64, 2)
LINE: Final = 64
"""Bytes loaded from memory at a time."""


@intrinsic
def region(typing: Any, array: Any) -> Any:
    """Return the address and size of an array of bytes or numbers, for the loads and stores below.

    Passing an array would update its reference count in every call of a helper. The kernel's caller keeps it alive.
    """
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.ptrtoint(view.data, I64)
        size = builder.mul(view.nitems, ir.Constant(I64, signature.args[0].dtype.bitwidth // 8))
        return context.make_tuple(builder, signature.return_type, [address, size])

    return REGION(array), generate


def pointer(context: Any, builder: Any, where: Any, position: Any, size: int) -> Any:
    """Return the address of a position in a region, for reading or writing ``size`` bytes."""
    if size:
        check(context, builder, where, position, ir.Constant(I64, size))
    return builder.inttoptr(builder.add(builder.extract_value(where, 0), position), I8.as_pointer())


def check(context: Any, builder: Any, where: Any, position: Any, size: Any) -> None:
    """Generate a bounds check, if enabled: raise `IndexError` unless ``size`` bytes (0 or more) are at a position."""
    if config.BOUNDSCHECK:
        count, end = builder.extract_value(where, 1), builder.add(position, size)
        with builder.if_then(builder.icmp_signed(">", size, ir.Constant(I64, 0))):
            cgutils.do_boundscheck(context, builder, position, count)
            cgutils.do_boundscheck(context, builder, builder.sub(end, ir.Constant(I64, 1)), count)


@intrinsic
def address(typing: Any, data: Any, position: Any, size: Any) -> Any:
    """Return the address of ``size`` bytes at a position, for functions of libraries."""
    del typing, data, position, size

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        where, position, size = arguments
        check(context, builder, where, position, size)
        return builder.add(builder.extract_value(where, 0), position)

    return types.int64(REGION, types.int64, types.int64), generate


def _load(bits: int, *, swap: bool, signed: bool) -> Callable[[Any, int], int]:
    """Return a function that loads a number of ``bits`` bits as a 64-bit number."""
    width = WIDTHS[bits]

    @intrinsic
    def load(typing: Any, data: Any, position: Any) -> Any:
        del typing, data, position

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature
            array, position = arguments
            target_address = pointer(context, builder, array, position, bits // 8)
            value = builder.load(builder.bitcast(target_address, width.as_pointer()))
            value.align = 1
            value = builder.bswap(value) if swap else value
            if bits == 64:
                return value
            return builder.sext(value, I64) if signed else builder.zext(value, I64)

        result = types.int64 if signed or bits < 64 else types.uint64
        return result(REGION, types.int64), generate

    return load  # type: ignore[no-any-return]


def _store(bits: int) -> Callable[[Any, int, int], None]:
    """Return a function that stores the low bits of a number, little-endian."""
    width = WIDTHS[bits]

    @intrinsic
    def store(typing: Any, data: Any, position: Any, value: Any) -> Any:
        del typing, data, position

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature
            array, position, value = arguments
            target_address = pointer(context, builder, array, position, bits // 8)
            low = value if bits == 64 else builder.trunc(value, width)
            builder.store(low, builder.bitcast(target_address, width.as_pointer())).align = 1
            return context.get_dummy_value()

        return types.void(REGION, types.int64, types.uint64 if value == types.uint64 else types.int64), generate

    return store  # type: ignore[no-any-return]


load_u8 = _load(8, swap=False, signed=False)
load_le16 = _load(16, swap=False, signed=False)
load_le32 = _load(32, swap=False, signed=False)
load_le64 = _load(64, swap=False, signed=False)
"""Loads a uint64; all others give int64."""
load_64 = _load(64, swap=False, signed=True)
load_i8 = _load(8, swap=False, signed=True)
load_be16 = _load(16, swap=True, signed=True)
load_be32 = _load(32, swap=True, signed=True)
load_be64 = _load(64, swap=True, signed=True)

store_8 = _store(8)
store_32 = _store(32)
store_64 = _store(64)


def _copy(size: int) -> Callable[[Any, int, Any, int], None]:
    """Return a function that copies ``size`` bytes at once."""
    kind = ir.VectorType(I64, size // 8)

    @intrinsic
    def copy(typing: Any, target: Any, to_position: Any, source: Any, position: Any) -> Any:
        del typing, target, to_position, source, position

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature
            target, to_position, source, position = arguments
            origin = pointer(context, builder, source, position, size)
            value = builder.load(builder.bitcast(origin, kind.as_pointer()))
            value.align = 1
            target_address = pointer(context, builder, target, to_position, size)
            builder.store(value, builder.bitcast(target_address, kind.as_pointer())).align = 1
            return context.get_dummy_value()

        return types.void(REGION, types.int64, REGION, types.int64), generate

    return copy  # type: ignore[no-any-return]


copy_16 = _copy(16)
copy_32 = _copy(32)


@intrinsic
def prefetch(typing: Any, data: Any, position: Any) -> Any:
    """Prefetch the cache line at a position, which need not exist."""
    del typing, data, position

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        array, position = arguments
        ask(builder, pointer(context, builder, array, position, 0))
        return context.get_dummy_value()

    return types.void(REGION, types.int64), generate


def ask(builder: Any, target_address: Any) -> None:
    """Generate a prefetch for reading, into all levels of cache."""
    declared = declare(builder, "llvm.prefetch.p0", ir.VoidType(), [I8.as_pointer(), I32, I32, I32])
    builder.call(declared, [target_address, *(ir.Constant(I32, flag) for flag in (0, 3, 1))])


def declare(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Declare an LLVM intrinsic function."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


# -- copies inside of decompressed data. Targets have `SLACK` extra bytes at the end, so whole words may be copied -----


SLACK: Final = 64
WORD: Final = 8
PAIR: Final = 16
QUAD: Final = 32
NEAR: Final = 512
"""Distance at which memory is prefetched ahead of short copies, for reading and for writing."""
AHEAD: Final = 2048
"""Distance at which memory is prefetched ahead of long copies."""


@inlined
def copy_run(target: Region, at: int, source: Region, position: int, size: int) -> None:
    """Copy bytes from another region; up to 15 bytes after them are overwritten as well."""
    if position + size + PAIR <= source[1]:
        _copy_pairs(target, at, source, position, size)
    else:
        for done in range(size):
            store_8(target, at + done, load_u8(source, position + done))


@inlined
def _copy_pairs(target: Region, at: int, source: Region, position: int, size: int) -> None:
    """Copy 16 bytes at a time. Such loops do not use `range`, which would divide first."""
    copy_16(target, at, source, position)
    done = PAIR
    while done < size:
        copy_16(target, at + done, source, position + done)
        done += PAIR


@inlined
def repeat(target: Region, at: int, distance: int, size: int) -> None:
    """Copy bytes from some distance back, repeating them if they overlap the target; overwrites as `copy_run`."""
    if distance >= PAIR:
        _copy_pairs(target, at, target, at - distance, size)
    else:
        _repeat_near(target, at, distance, size)


@helper
def _repeat_near(target: Region, at: int, distance: int, size: int) -> None:
    """Repeat bytes from less than 16 bytes back, as `repeat` does."""
    done = 0
    if distance < WORD:
        while done < WORD:
            store_8(target, at + done, load_u8(target, at + done - distance))
            done += 1
        distance = (WORD + distance - 1) // distance * distance
    while done < size:
        store_64(target, at + done, load_64(target, at + done - distance))
        done += WORD


@inlined
def copy_long(target: Region, at: int, source: Region, position: int, size: int) -> None:
    """Copy like `copy_run`, tuned for longer ranges; up to 31 bytes after them are overwritten as well."""
    if position + size + QUAD > source[1]:
        copy_run(target, at, source, position, size)
        return
    copy_32(target, at, source, position)
    prefetch(source, position + AHEAD)
    done = QUAD
    while done < size:
        copy_32(target, at + done, source, position + done)
        prefetch(source, position + done + AHEAD)
        done += QUAD
