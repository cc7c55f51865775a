"""Bounds what a pickle would make of memory, before it is read.

A few bytes of a pickle can ask for gigabytes: a length that nothing follows, a place in the memo
with a number in the billions, or millions of empty sets in a file of as many bytes. The
opcodes are read here without being executed; runs of those with a fixed size pass at C's speed.
"""

from __future__ import annotations

import pickletools
import re
import struct
from typing import Any

import numpy as np

BUDGET = 400 * 1024**2
"""Bytes of Python objects that a pickle may ask for, its strings and bytes left out: these take no
more than the file does."""

_COMMON_COST = 32
_COSTS = {
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_DICT", "LIST", "DICT", "TUPLE", "TUPLE1"), 72),
    **dict.fromkeys(("TUPLE2", "TUPLE3", "GLOBAL", "STACK_GLOBAL"), 72),
    **dict.fromkeys(("EMPTY_SET", "FROZENSET", "SETITEM", "SETITEMS", "ADDITEMS"), 230),
    **dict.fromkeys(("REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ", "INST", "BUILD"), 200),
}
"""Bytes per opcode: of what it makes, or of what a container grows by, generously."""

_PUTS = ("PUT", "LONG_BINPUT")
_SPECIAL = (*_PUTS, "FRAME", "STOP")

_OPCODES = {opcode.code.encode("latin1")[0]: opcode for opcode in pickletools.opcodes}
_COST_OF_BYTE = np.array(
    [_COSTS.get(_OPCODES[b].name, _COMMON_COST) if b in _OPCODES else 0 for b in range(256)]
)

_LENGTHS: dict[int, struct.Struct] = {
    pickletools.TAKEN_FROM_ARGUMENT1: struct.Struct("<B"),
    pickletools.TAKEN_FROM_ARGUMENT4: struct.Struct("<i"),
    pickletools.TAKEN_FROM_ARGUMENT4U: struct.Struct("<I"),
    pickletools.TAKEN_FROM_ARGUMENT8U: struct.Struct("<Q"),
}
"""How pickletools marks an argument that begins with its length -> how that length is written."""


class PickleRefusedError(ValueError):
    """A pickle is cut off, no pickle, or asks for more memory than any honest one."""


def _argument_size(opcode: Any) -> int:
    return 0 if opcode.arg is None else int(opcode.arg.n)


def _fixed_size_runs() -> re.Pattern[bytes]:
    by_size: dict[int, bytes] = {}
    for byte, opcode in _OPCODES.items():
        size = _argument_size(opcode)
        if size >= 0 and opcode.name not in _SPECIAL:
            by_size[size] = by_size.get(size, b"") + re.escape(bytes([byte]))
    parts = [b"[" + codes + b"]" + b"." * size for size, codes in sorted(by_size.items())]
    return re.compile(b"(?:" + b"|".join(parts) + b"){1,4096}", re.DOTALL)


_RUN = _fixed_size_runs()


def scan(data: Any, start: int = 0, budget: int = BUDGET) -> int:
    """Judge the pickle that begins at `start`.

    Args:
        data: The bytes, or a mapped file.
        start: Where the pickle begins.
        budget: Bytes of objects that it may ask for.

    Returns:
        Where it ends: the position behind its last byte.

    Raises:
        PickleRefusedError: It is damaged, or would take too much memory.
    """
    position, cost = start, 0
    while True:
        run = _RUN.match(data, position)
        if run:
            codes = np.frombuffer(run[0], np.uint8)
            cost += int(_COST_OF_BYTE[codes].sum())
            position = run.end()
        else:
            if position >= len(data):
                raise PickleRefusedError("it is cut off")
            opcode = _OPCODES.get(data[position])
            if opcode is None:
                raise PickleRefusedError(f"it is no pickle: byte {data[position]:#04x}")
            cost += 64
            position = _behind(data, position, opcode)
            if opcode.name == "STOP":
                return position
        if cost > budget:
            raise PickleRefusedError(
                f"it asks for more than {budget // 1024**2} MB of Python objects"
            )


def _behind(data: Any, position: int, opcode: Any) -> int:
    """Return where the opcode at `position`, one with an argument to be judged, ends."""
    size, argument = _argument_size(opcode), position + 1
    if opcode.name == "FRAME":
        (length,) = _unpacked(struct.Struct("<Q"), data, argument)
        if length > len(data) - argument - 8:
            raise PickleRefusedError("it is cut off: a frame is longer than the file")
        return argument + 8
    if opcode.name in _PUTS:
        return _behind_put(data, argument, opcode)
    if size == pickletools.UP_TO_NEWLINE:
        # Names of a module and of what is in it take two lines.
        for _ in range(2 if opcode.name in ("GLOBAL", "INST") else 1):
            argument = _behind_line(data, argument)
        return argument
    if size in _LENGTHS:
        (length,) = _unpacked(_LENGTHS[size], data, argument)
        argument += _LENGTHS[size].size
        if not 0 <= length <= len(data) - argument:
            raise PickleRefusedError("it is cut off: a string is longer than the file")
        return argument + int(length)
    if argument + size > len(data):
        raise PickleRefusedError("it is cut off")
    return argument + size


def _behind_put(data: Any, argument: int, opcode: Any) -> int:
    """Pass an opcode that stores something under a number; the memo is as long as the largest."""
    if opcode.name == "PUT":
        end = _behind_line(data, argument)
        text = bytes(data[argument : end - 1])
        number = int(text) if text.isdigit() and len(text) < 12 else len(data)
    else:
        (number,) = _unpacked(struct.Struct("<I"), data, argument)
        end = argument + 4
    if number >= argument:  # each thing that is stored takes some bytes before
        raise PickleRefusedError(f"it stores something under the number {number}")
    return end


def _behind_line(data: Any, position: int) -> int:
    end = int(data.find(b"\n", position))
    if end < 0:
        raise PickleRefusedError("it is cut off: a line has no end")
    return end + 1


def _unpacked(form: struct.Struct, data: Any, position: int) -> tuple[Any, ...]:
    if position + form.size > len(data):
        raise PickleRefusedError("it is cut off")
    return form.unpack(data[position : position + form.size])
