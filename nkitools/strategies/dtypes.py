"""The dtypes that an instruction takes, found by asking its guards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import Context
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nkitools.chip.argument_types import Argument
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.chip.dtypes import DTYPES, DType
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.facts.generations import generation_of
from nkitools.launch.simulate import simulate
from nkitools.rules.finding import KernelError
from nkitools.strategies.calls import Tile, calls, nl

# The simplest first: what fails shrinks to it.
_ORDER = ["float32", "bfloat16", "float16", "int32", *DTYPES]
_ALL = tuple(DTYPES[name] for name in dict.fromkeys(_ORDER) if DTYPES[name].kind != "packed")
_REFUSALS = ("NK3", "NK606")


def dtypes(
    instruction: Callable[..., Any] | str | None = None,
    *,
    operands: Iterable[str] | str | None = None,
    chip: str | None = None,
    **arguments: Argument,
) -> st.SearchStrategy[DType]:
    """Draw the dtypes (NKI's, which NumPy takes as its own) that an instruction of ``nki.isa`` takes.

    ``instruction`` is the function or its name; without one all dtypes but the packed ones are drawn. The tiles that it
    reads and writes are all of the dtype (but for those with a fixed one, such as indices), or only the ``operands``
    named. ``arguments`` replace those of the call that is tried, such as ``op=nl.bitwise_and``, which takes integers
    only. ``chip``: as in `nkitools.simulate`. Each dtype is tried once for a chip, on small tiles, when one is first
    drawn; dtypes that break the simulator's rules NK301 to NK306 or NK606 are left out. Shrinks to the first of
    float32, bfloat16, float16 and int32 that is taken.

    ValueError at the call for an instruction without a call to try, for operands that it does not have, for an unknown
    chip, and for ``operands`` or ``arguments`` without an instruction; at the first draw if no dtype will do. A call
    that breaks another rule raises KernelError at the draw.
    """
    if instruction is None:
        if operands is not None or arguments:
            raise ValueError("operands and arguments belong to an instruction: name one, or leave them out")
        if chip is not None:
            generation_of(chip)
        return st.sampled_from(_ALL)
    name = instruction if isinstance(instruction, str) else str(getattr(instruction, "__name__", instruction))
    if name not in calls():
        raise ValueError(f"instruction: {name!r} is not among those that can be tried: {', '.join(sorted(calls()))}")
    call = calls()[name]
    data = tuple(name for name, value in call.items() if isinstance(value, Tile) and value.dtype is None)
    chosen = data if operands is None else (operands,) if isinstance(operands, str) else tuple(operands)
    wrong = [each for each in chosen if not isinstance(call.get(each), Tile)]
    if wrong:
        tiles = [each for each, value in call.items() if isinstance(value, Tile)]
        raise ValueError(f"operands: nisa.{name} has {', '.join(tiles)}; there is no {', '.join(wrong)}")
    if chip is not None:
        generation_of(chip)

    @st.composite
    def drawn(draw: st.DrawFn) -> DType:
        taken = _taken(name, chosen, resolve_chip(chip), tuple(arguments.items()))
        if not taken:
            raise ValueError(f"nisa.{name} takes no dtype for {', '.join(chosen)} with {arguments}")
        return draw(st.sampled_from(taken))

    return drawn()


@lru_cache
def _taken(name: str, operands: tuple[str, ...], chip: str, arguments: tuple[tuple[str, Any], ...]) -> list[DType]:
    call = {**calls()[name], **dict(arguments)}
    return [dtype for dtype in _ALL if _is_taken(name, call, operands, chip, dtype)]


def _is_taken(name: str, call: dict[str, Any], operands: tuple[str, ...], chip: str, dtype: DType) -> bool:
    def kernel() -> None:
        made = {
            role: _made(value, dtype if role in operands else value.dtype or DTYPES["float32"])
            if isinstance(value, Tile)
            else value
            for role, value in call.items()
        }
        getattr(nisa, name)(**made)

    try:
        # In a context of its own: collectors of runs do not see it, and no option of theirs counts.
        Context().run(lambda: simulate(kernel, chip=chip, rules="error"))
    except KernelError as error:
        if not error.finding.rule.startswith(_REFUSALS):
            raise
        return False
    return True


def _made(tile: Tile, dtype: DType) -> NkiTensor:
    made: NkiTensor = nl.ndarray(tile.shape, dtype=dtype, buffer=getattr(nl, tile.memory))
    if tile.is_read:
        made.write(np.zeros(tile.shape, made.dtype.dtype))
        made.storage.mark_written(made.layout, made.byte_offset)
    return made
