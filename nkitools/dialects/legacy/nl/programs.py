"""``nl.*``: program ids, launch grids and ranges."""

from __future__ import annotations

import math
from typing import Any

from nkitools.chip.argument_types import Axes
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.kernels.loop_dependences import AffineRange
from nkitools.dialects.legacy.kernels.traced_loops import TracedRange
from nkitools.dialects.legacy.tiles.blocks import ParDim
from nkitools.language import programs
from nkitools.language.programs import LoopRange
from nkitools.rules.finding import refuse, report

program_ndim = programs.program_ndim


class ProgramId(int):
    """The number of the running program, which also stands for the axis of the grid (``program_axes=[id]``)."""

    axis: int

    @classmethod
    def along(cls, axis: int) -> ProgramId:
        """Return the running program's along ``axis``. Errors: NK609, NK611."""
        found = cls(programs.program_id(axis))
        found.axis = axis
        return found


def program_id(axis: int) -> int:
    """Return the index of the running program along ``axis`` of the launch grid; without a grid 0.

    Errors: NK609 (an axis below 0, or one that the grid does not have), NK611.
    """
    return ProgramId.along(axis)


def num_programs(axes: Axes | None = None) -> int:
    """Return the number of programs along ``axes`` of the launch grid, by default in all; without a grid 1.

    ``axes``: an int, or ints, whose sizes are multiplied. Errors: NK609 (as for nl.program_id), NK611.
    """
    return programs.num_programs(axes)


_RANGES = {"affine_range": AffineRange, "sequential_range": TracedRange, "static_range": LoopRange}


def _range(kind: str, args: tuple[Any, ...]) -> LoopRange:
    numbers = [number for arg in args if (number := whole(arg)) is not None]
    if not 1 <= len(args) <= 3 or len(numbers) < len(args):
        refuse(
            "NK609",
            f"nl.{kind} takes one to three integers, it is given {args!r}",
            remedy="Compute each with // instead of /, and give at least one.",
        )
    if any(isinstance(arg, ParDim) for arg in args):
        message = (
            f"nl.{kind} takes a number of iterations, it is given {args!r}: nl.par_dim marks a dimension of a shape"
        )
        report("NK609", message, remedy=f"Write the number itself: nl.{kind}(4).")
    start, stop, *step = numbers if len(numbers) > 1 else (0, numbers[0])
    return _RANGES[kind].of(kind, start, stop, step[0] if step else 1)


def affine_range(*args: int, **kwargs: Keyword) -> LoopRange:
    """Return the integers of Python's ``range``, for a loop whose iterations do not depend on each other.

    An iteration that writes or reads what another one writes is an error (NK501). Accumulation by ``+=``, ``-=``,
    ``*=``, ``/=`` or nl.loop_reduce is none, and some forms are warnings.
    Errors: NK501, NK609.
    """
    check_keywords("nl.affine_range", kwargs)
    return _range("affine_range", args)


def sequential_range(*args: int, **kwargs: Keyword) -> LoopRange:
    """Return the integers of Python's ``range``, for a loop whose iterations may depend on each other.

    Errors: NK609.
    """
    check_keywords("nl.sequential_range", kwargs)
    return _range("sequential_range", args)


def static_range(*args: int) -> LoopRange:
    """Return the integers of Python's ``range``, for a loop that AWS's compiler unrolls. Errors: NK609."""
    return _range("static_range", args)


class NcDim(int):
    """``nl.nc(2)``: a dimension of a launch grid spread over physical cores. Programs run one after the other here."""

    def __repr__(self) -> str:
        return f"nl.nc({int(self)})"


def nc(cores: int) -> NcDim:
    """Return ``cores``, an integer of at least 1, as a dimension of a launch grid over physical NeuronCores.

    Here it is like any int: ``kernel[nl.nc(2) * 4]`` has 8 programs. Errors: NK609.
    """
    number = whole(cores)
    if number is None or number < 1:
        refuse("NK609", f"nl.nc takes a number of cores, it is given {cores!r}")
    return NcDim(number)


def spmd_dim(*sizes: int) -> int:
    """Return the product of ``sizes``, integers or nl.nc(...), as one dimension of a launch grid. Errors: NK609."""
    numbers = [number for size in sizes if (number := whole(size)) is not None]
    if not sizes or len(numbers) != len(sizes):
        refuse("NK609", f"nl.spmd_dim takes integers and nl.nc(...), it is given {sizes!r}")
    return math.prod(numbers)
