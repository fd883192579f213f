"""Facts from an author's bytecode: the loops around an instruction, and where its value goes.

The source is not needed: code of ``exec`` has none, and a file may have been edited since.
"""

from __future__ import annotations

import dis
import inspect
import itertools
from bisect import bisect_right
from functools import lru_cache
from types import CodeType, FrameType

from nkitools.facts.light_classes import dataclass

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CACHE = dis.opmap.get("CACHE", 0)
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")


@dataclass(frozen=True)
class Loop:
    """A for loop (of a comprehension too): the offsets of its body, and the names of its counters."""

    start: int
    end: int
    names: tuple[str, ...]


@lru_cache(maxsize=256)
def instructions_of(code: CodeType) -> tuple[list[int], list[dis.Instruction]]:
    """Return the offsets and the instructions of a code object, without EXTENDED_ARG."""
    instructions = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
    return [each.offset for each in instructions], instructions


def constants_of(code: CodeType) -> list[object]:
    """Return the constants of a code object, without the line number that a class body stores from Python 3.13 on."""
    if "__firstlineno__" not in code.co_names:
        return list(code.co_consts)
    _, instructions = instructions_of(code)
    loaded = [each.arg for each in instructions if each.opname == "LOAD_CONST"]
    noted = {
        before.arg
        for before, each in itertools.pairwise(instructions)
        if each.argval == "__firstlineno__" and before.opname == "LOAD_CONST" and loaded.count(before.arg) == 1
    }
    return [constant for number, constant in enumerate(code.co_consts) if number not in noted]


def begins_import_from(frame: FrameType) -> bool:
    """Return whether ``frame`` is executing a ``from module import name``, at one of its names."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def variable_before(code: CodeType, offset: int) -> str:
    """Return the local variable that the instruction before ``offset`` loads, as ``x`` of ``x.shape``; '' for none."""
    offsets, instructions = instructions_of(code)
    before = instructions[bisect_right(offsets, offset) - 2]
    return _last_name(before) if before.opname.startswith("LOAD_FAST") else ""


def _last_name(load: dis.Instruction) -> str:
    return str(load.argval[-1] if isinstance(load.argval, tuple) else load.argval)


def beginning(code: CodeType, offset: int) -> int:
    """Return the offset of the instruction whose bytes ``offset`` lies in.

    A frame of Python 3.12 that waits for a generator in a ``for`` points behind the begin of FOR_ITER, into its cache,
    from the second time on.
    """
    text = code.co_code
    while offset > 0 and text[offset] == _CACHE:
        offset -= 2
    return offset


def _stored(instruction: dis.Instruction) -> tuple[str, ...]:
    """Return the names that an instruction stores into, for the stack's top first; newer Pythons store two at once."""
    if not instruction.opname.startswith(_STORES):
        return ()
    names = instruction.argval
    if not isinstance(names, tuple):
        return (str(names),)
    return names if "STORE_FAST_STORE" in instruction.opname else names[:1]


def _targets(instructions: list[dis.Instruction], position: int) -> tuple[str, ...]:
    """Return the names that get the value on top of the stack, from ``position`` on: one, or those of a tuple."""
    found: list[str] = []
    wanted = 1
    for instruction in instructions[position:]:
        if instruction.opname == "UNPACK_SEQUENCE":
            wanted += int(instruction.arg or 0) - 1
        elif names := _stored(instruction):
            found += names
        else:
            break
        if len(found) >= wanted:
            break
    return tuple(found[:wanted])


@lru_cache(maxsize=256)
def _loops(code: CodeType) -> tuple[Loop, ...]:
    _, instructions = instructions_of(code)
    return tuple(
        Loop(each.offset, each.argval, _targets(instructions, position + 1))
        for position, each in enumerate(instructions)
        if each.opname == "FOR_ITER"
    )


def loops_around(code: CodeType, offset: int) -> list[Loop]:
    """Return the for loops whose bodies hold the instruction at ``offset``, outermost first."""
    return [loop for loop in _loops(code) if loop.start < offset < loop.end]


@lru_cache(maxsize=1024)
def begins_loop(code: CodeType, offset: int) -> bool:
    """Return whether the value of the instruction at ``offset`` goes to a ``for`` statement and nowhere else.

    The loops of generators do not count: between two of their iterations other code runs.
    """
    offsets, instructions = instructions_of(code)
    position = bisect_right(offsets, offset)
    following = [each.opname for each in instructions[position : position + 2]]
    return following == ["GET_ITER", "FOR_ITER"] and not code.co_flags & _SUSPENDED


def bound_name(code: CodeType, offset: int) -> str:
    """Return the name that the value of the instruction at ``offset`` is assigned to; '' if it is not assigned.

    For a call that is the variable of its result, for a loop its counter (the last of several names, as in
    ``for index, value in enumerate(...)``).
    """
    offsets, instructions = instructions_of(code)
    position = bisect_right(offsets, offset)
    targets = _targets(instructions, position)
    if position > 0 and instructions[position - 1].opname == "FOR_ITER":
        return targets[-1] if targets else ""
    if targets:
        return targets[0] if len(targets) == 1 else ""
    taken = _taking(instructions, position)
    return "" if taken is None else _name_after(instructions, *taken)


def _name_after(instructions: list[dis.Instruction], taker: int, above: int) -> str:
    """Return the name that the instruction ``taker`` gives a value with ``above`` others above it; '' for none."""
    names = _stored(instructions[taker])
    if names:
        return names[above]
    # Of more than three results a tuple is made, and taken apart.
    targets = _targets(instructions, taker + 1)
    count = instructions[taker].arg or 0
    unpacks = instructions[taker].opname == "BUILD_TUPLE" and instructions[taker + 1].opname == "UNPACK_SEQUENCE"
    return targets[count - 1 - above] if unpacks and len(targets) == count else ""


def is_returned(code: CodeType, offset: int) -> bool:
    """Return whether the value of the instruction at ``offset`` is returned as it is: the caller names it."""
    return _next(code, offset) == "RETURN_VALUE"


def is_dropped(code: CodeType, offset: int) -> bool:
    """Return whether the value of the instruction at ``offset`` is not used: the instruction is a statement."""
    return _next(code, offset) == "POP_TOP"


def _next(code: CodeType, offset: int) -> str:
    """Return the name of the instruction that follows the one at ``offset``; '' behind the last one."""
    offsets, instructions = instructions_of(code)
    position = bisect_right(offsets, offset)
    return instructions[position].opname if position < len(instructions) else ""


_PUSHES = frozenset({"PUSH_NULL", "LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"})
_CALLS = frozenset({"PRECALL", "CALL", "CALL_FUNCTION", "CALL_METHOD", "CALL_KW", "CALL_FUNCTION_KW"})


def _taken(instruction: dis.Instruction) -> int:
    """Return the number of values that an instruction takes from the stack; a huge number if that is unknown."""
    name = instruction.opname
    if name in ("KW_NAMES", "NOP") or name in _PUSHES or name.startswith("LOAD_FAST"):
        return 0
    if name == "CALL" and "PRECALL" in dis.opmap:
        return 1  # Python 3.11 takes the arguments before
    if name in ("LOAD_ATTR", "LOAD_METHOD") or name.startswith("UNARY_"):
        return 1
    if name in ("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP"):
        return 2
    if name.startswith(("BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE")):
        return int(instruction.arg or 0)
    if name in _CALLS:
        return int(instruction.arg or 0) + 1
    return 1 << 30


def _taking(instructions: list[dis.Instruction], position: int) -> tuple[int, int] | None:
    """Return the instruction that takes the stack's top at ``position``, and the number of values above that.

    None if that is uncertain: ``first, second = make(), make()`` takes the first value when the second is made.
    """
    above = 0
    for number in range(position, len(instructions)):
        instruction = instructions[number]
        if instruction.opname == "SWAP":
            depth = int(instruction.arg or 0) - 1
            above = 0 if above == depth else depth if above == 0 else above
            continue
        if (len(_stored(instruction)) or _taken(instruction)) > above:
            return number, above
        above += dis.stack_effect(instruction.opcode, instruction.arg)
        if above < 0:
            return None
    return None


def returned_element(code: CodeType, offset: int) -> int | None:
    """Return the index at which the value of the instruction at ``offset`` stands in a returned tuple or list.

    None if it stands in none.
    """
    offsets, instructions = instructions_of(code)
    taken = _taking(instructions, bisect_right(offsets, offset))
    if taken is None or taken[0] + 1 >= len(instructions):
        return None
    number, above = taken
    builds = instructions[number].opname in ("BUILD_TUPLE", "BUILD_LIST")
    if not builds or instructions[number + 1].opname != "RETURN_VALUE":
        return None
    return _taken(instructions[number]) - 1 - above


def unpacked_name(code: CodeType, offset: int, element: int) -> str:
    """Return the name that an element of the value of the instruction at ``offset`` gets; '' if it gets none.

    ``first, second = call()`` names the elements; so does ``pair = call()``, by index.
    """
    offsets, instructions = instructions_of(code)
    position = bisect_right(offsets, offset)
    unpacks = position < len(instructions) and instructions[position].opname == "UNPACK_SEQUENCE"
    targets = _targets(instructions, position)
    if unpacks:
        simple = len(targets) == instructions[position].arg
        return targets[element] if simple and element < len(targets) else ""
    return f"{targets[0]}[{element}]" if len(targets) == 1 else ""


@lru_cache(maxsize=256)
def returned_names(code: CodeType) -> frozenset[str]:
    """Return the variables that a function returns as they are: the caller has other names for their values."""
    _, instructions = instructions_of(code)
    return frozenset(
        _last_name(load)
        for load, after in itertools.pairwise(instructions)
        if after.opname == "RETURN_VALUE" and load.opname.startswith(("LOAD_FAST", "LOAD_DEREF"))
    )
