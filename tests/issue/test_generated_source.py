"""Generated code can be read: tracebacks and debuggers show its lines."""

from __future__ import annotations

import linecache
import traceback
from typing import Any

import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.version_forms import VersionedInstruction
from nkitools.facts import versions
from nkitools.record.source_sites import is_internal

INSTRUCTIONS = [each.instruction for name in nisa.__all__ if hasattr(each := getattr(nisa, name), "instruction")]


def generated(instruction: Any) -> list[Any]:
    """Return the generated functions of an instruction: those that bind and call."""
    if not isinstance(instruction, VersionedInstruction):
        if "complete" in instruction.call.__globals__:
            instruction.call.__globals__["complete"]()  # as its first call does
        functions = [instruction.bind, instruction.call]
    else:  # one for each version that has the instruction
        functions = [instruction.binders[each] for each in versions.languages_of() if instruction.row.is_in(each)]
    return [each for each in functions if each.__code__.co_filename.startswith("<nkitools generated")]


def test_every_generated_function_has_its_source() -> None:
    """Each has a file name of its own, whose lines are those that were compiled."""
    functions = [function for each in INSTRUCTIONS for function in generated(each)]
    assert len(functions) > len(INSTRUCTIONS)
    assert len({function.__code__.co_filename for function in functions}) == len(functions)
    for function in functions:
        source = "".join(linecache.getlines(function.__code__.co_filename))  # inspect shows what an instruction wraps
        assert source.startswith(f"def {function.__name__}(")
        assert compile(source, "", "exec").co_consts[0].co_code == function.__code__.co_code


def test_a_traceback_shows_the_generated_line() -> None:
    """Also after the cache of source lines has been checked for files that have changed."""
    with pytest.raises(nkitools.KernelError, match="NK611") as raised:
        nisa.tensor_tensor(None, None, None, None)  # type: ignore[arg-type]  # outside of a kernel
    linecache.checkcache()
    text = "".join(traceback.format_exception(raised.value))
    assert ": call of tensor_tensor>" in text
    assert "return take(core, (dst, data1, data2, op, " in text


def test_generated_code_is_internal() -> None:
    """Findings name the author's line, never a generated one."""
    assert all(is_internal(function.__code__.co_filename) for each in INSTRUCTIONS for function in generated(each))
