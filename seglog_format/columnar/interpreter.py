"""Calls of the interpreter from kernels that hold its lock: they create Python objects, represented by addresses.

CPython documents each of these functions. A call fails only if memory has run out: it returns `NULL` then, and
`forget_error` clears the interpreter's error, because the caller of the kernel raises one that names the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_format.columnar.compiled import intrinsic, ir, types
from seglog_format.columnar.memory import I8, I32, I64, REGION, check, declare, pointer

if TYPE_CHECKING:
    from collections.abc import Callable

NULL: Final = 0
OBJECT: Final = I8.as_pointer()


def _address(builder: Any, value: Any) -> Any:
    return builder.inttoptr(value, OBJECT)


def _maker(name: str, *wanted: Any) -> Callable[[Any, Any, Any, Any], Any]:
    """Generate the call of a function that returns a new object."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        given = [
            _address(builder, each) if kind == OBJECT else each for each, kind in zip(arguments, wanted, strict=True)
        ]
        made = builder.call(declare(builder, name, OBJECT, list(wanted)), given)
        return builder.ptrtoint(made, I64)

    return generate


def _doer(name: str, *wanted: Any, gives: Any = ir.VoidType()) -> Callable[[Any, Any, Any, Any], Any]:  # noqa: B008 - a constant
    """Generate the call of a function whose result is not needed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        given = [
            _address(builder, each) if kind == OBJECT else each for each, kind in zip(arguments, wanted, strict=True)
        ]
        builder.call(declare(builder, name, gives, list(wanted)), given)
        return context.get_dummy_value()

    return generate


@intrinsic
def new_int(typing: Any, value: Any) -> Any:
    """Return a Python integer."""
    del typing, value
    return types.int64(types.int64), _maker("PyLong_FromLongLong", I64)


@intrinsic
def new_tuple(typing: Any, count: Any) -> Any:
    """Return a new tuple with empty slots; `put_in_tuple` fills it before other code can see it."""
    del typing, count
    return types.int64(types.int64), _maker("PyTuple_New", I64)


@intrinsic
def new_object(typing: Any, kind: Any, count: Any) -> Any:
    """Return a new object of a type, with empty slots; the count is 0."""
    del typing, kind, count
    return types.int64(types.int64, types.int64), _maker("PyType_GenericAlloc", OBJECT, I64)


@intrinsic
def new_bytes(typing: Any, data: Any, position: Any, size: Any) -> Any:
    """Return a bytes object, copied from a region."""
    del typing, data, position, size

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        where, position, size = arguments
        check(context, builder, where, position, size)
        index = pointer(context, builder, where, position, 0)
        made = builder.call(declare(builder, "PyBytes_FromStringAndSize", OBJECT, [OBJECT, I64]), [index, size])
        return builder.ptrtoint(made, I64)

    return types.int64(REGION, types.int64, types.int64), generate


@intrinsic
def put_in_tuple(typing: Any, target: Any, index: Any, item: Any) -> Any:
    """Store an object in a new tuple, which takes over the reference."""
    del typing, target, index, item
    kinds = (types.int64, types.int64, types.int64)
    return types.void(*kinds), _doer("PyTuple_SetItem", OBJECT, I64, OBJECT, gives=I32)


@intrinsic
def put_in_list(typing: Any, target: Any, index: Any, item: Any) -> Any:
    """Store an object in a list in place of another one; the list takes over the reference."""
    del typing, target, index, item
    kinds = (types.int64, types.int64, types.int64)
    return types.void(*kinds), _doer("PyList_SetItem", OBJECT, I64, OBJECT, gives=I32)


@intrinsic
def in_tuple(typing: Any, source: Any, index: Any) -> Any:
    """Return an item of a tuple, without a new reference."""
    del typing, source, index
    return types.int64(types.int64, types.int64), _maker("PyTuple_GetItem", OBJECT, I64)


@intrinsic
def set_member(typing: Any, target: Any, member: Any, item: Any) -> Any:
    """Store a new reference to an object in a slot of another object, which a `PyMemberDef` describes."""
    del typing, target, member, item
    kinds = (types.int64, types.int64, types.int64)
    return types.void(*kinds), _doer("PyMember_SetOne", OBJECT, OBJECT, OBJECT, gives=I32)


@intrinsic
def decref(typing: Any, item: Any) -> Any:
    """Release one reference to an object, if it is not `NULL`."""
    del typing, item
    return types.void(types.int64), _doer("Py_DecRef", OBJECT)


@intrinsic
def forget_error(typing: Any) -> Any:
    """Clear the error that the interpreter has set."""
    del typing
    return types.void(), _doer("PyErr_Clear")
