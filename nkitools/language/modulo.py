"""Remainders of divisions: what AWS's simulator has and its chips do not."""

from __future__ import annotations

from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.tensor import NkiTensor, TileOrNumber
from nkitools.language.math import binary
from nkitools.rules.finding import report


def mod(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return the remainder of ``x / y`` with the sign of ``y``, as Python's ``%``.

    ``x``, ``y``, ``dtype``, shape and memory of the result: as for nl.add. Computed in float32, in which integers
    beyond 2**24 lose low bits (NK307), but in integers if both are int32 or uint32 tiles in SBUF and the result is
    int32 or uint32. A remainder by zero is NaN, in an integer result 0.
    No engine has the operator: the release notes say since NKI 0.3 that it works in simulation and fails when a kernel
    is compiled for hardware. So each call gives NK615, a warning, and instructions do not take nl.mod as an operator.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK611, NK615. Source: nki.language.mod (NKI 0.6).
    """
    _simulated_only("mod")
    return binary("mod", x, y, dtype)


def fmod(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return the remainder of ``x / y`` with the sign of ``x``, as C's ``fmod``; all else is as for nl.mod.

    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK611, NK615. Source: nki.language.fmod (NKI 0.6).
    """
    _simulated_only("fmod")
    return binary("fmod", x, y, dtype)


def _simulated_only(what: str) -> None:
    report("NK615", f"nl.{what} works in simulation only; a kernel with it fails when it is compiled for the chip")
