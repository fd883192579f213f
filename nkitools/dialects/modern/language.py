"""``nki.language``: tiles, the functions of them, loops, dtypes and memories.

A function of tiles issues instructions: beside the errors that its docstring lists it can give those of every
instruction, which the docstring of ``nki.isa`` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from nkitools.chip.argument_types import Argument, Memory
from nkitools.chip.dialect_semantics import MODERN
from nkitools.dialects.modern.annotation import annotation_of
from nkitools.dialects.public import find, publish, whole
from nkitools.engines.operators import token
from nkitools.language.creation import private_hbm, psum, region, sbuf, shared_hbm
from nkitools.rules.finding import not_modelled

if TYPE_CHECKING:
    from nkitools.chip.dtypes import *
    from nkitools.chip.memory import *
    from nkitools.chip.tensor import *
    from nkitools.dialects.modern.objects import *
    from nkitools.language.broadcast import *
    from nkitools.language.constants import *
    from nkitools.language.control import *
    from nkitools.language.creation import *
    from nkitools.language.gather import *
    from nkitools.language.indexing import *
    from nkitools.language.linear import *
    from nkitools.language.math import *
    from nkitools.language.modulo import *
    from nkitools.language.normalization import *
    from nkitools.language.programs import *
    from nkitools.language.random import *
    from nkitools.language.reductions import *
    from nkitools.language.rounding import *
    from nkitools.language.select import *
    from nkitools.language.transfer import *
    from nkitools.language.trigonometry import *


class _Token:
    """An operator that instructions take; a call of it as a function is refused (NK607)."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.__doc__ = f"{meaning} It is no function: a call of it is refused (NK607)."
        token(name)(self)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __call__(self, *args: Argument, **kwargs: Argument) -> NoReturn:
        not_modelled(f"nl.{self.name} as a function is not modelled yet; it is an operator token in this version")


bypass = _Token(
    "bypass",
    "The operator that returns its first operand unchanged, for ``op0`` and ``op1`` of nisa.activate2. Where other "
    "instructions have a math operator, they take it too (NK621, a hint).",
)
prelu = _Token(
    "prelu",
    "The parametric ReLU, ``op`` of nisa.activate2 alone: x above 0, ``relu_param * x`` below. Other instructions "
    "refuse it.",
)
average = _Token(
    "average",
    "The mean over all partitions, ``op`` of nisa.tensor_partition_reduce alone, computed in float32. Other "
    "instructions refuse it (NK306).",
)


def is_hbm(buffer: Memory) -> bool:
    """Return True if a memory, such as ``tensor.buffer``, is in HBM: nl.hbm, nl.private_hbm or nl.shared_hbm.

    Errors: NK608 (the name of a memory as a text), NK609 (anything else, also a tensor).
    """
    return region(buffer) in (private_hbm, shared_hbm)


def is_on_chip(buffer: Memory) -> bool:
    """Return True if a memory, such as ``tensor.buffer``, is nl.sbuf or nl.psum. Errors: NK608, NK609."""
    return region(buffer) in (sbuf, psum)


def is_psum(buffer: Memory) -> bool:
    """Return True if a memory, such as ``tensor.buffer``, is nl.psum. Errors: NK608, NK609."""
    return region(buffer) is psum


def is_sbuf(buffer: Memory) -> bool:
    """Return True if a memory, such as ``tensor.buffer``, is nl.sbuf. Errors: NK608, NK609."""
    return region(buffer) is sbuf


publish(globals(), "nki.language", dialect=MODERN)
globals()["ndarray"] = annotation_of(whole(globals(), "ndarray"))


def __getattr__(name: str) -> Any:
    return find(globals(), "nki.language", name)
