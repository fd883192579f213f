"""Remainders of divisions: what AWS's simulator has and its chips do not."""

from __future__ import annotations

from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.tensor import NkiTensor, TileOrNumber
from nkitools.language.math import binary
from nkitools.rules.finding import report


def mod(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return the remainder of ``x / y`` with the sign of ``y``, as Python's ``%``: in ``[0, y)``, or ``(y, 0]``.

    Tiles or numbers, at least one tile; partitions are equal, and free dimensions broadcast in simulation only (NK615).
    The result is in SBUF, of the tiles' dtype (promoted where they differ) unless ``dtype`` is given. Exact in float32,
    and in integers for two int32 or uint32 tiles in SBUF; a remainder by zero is not-a-number, in integers 0.
    No engine has the operator: the release notes say since NKI 0.3 that it works in simulation and fails when a kernel
    is compiled for hardware (a warning, NK615).
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK615. Source: nki.language.mod (NKI 0.6).
    """
    _simulated_only("mod")
    return binary("mod", x, y, dtype)


def fmod(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return the remainder of ``x / y`` with the sign of ``x``, as C's ``fmod``; everything else as in nl.mod.

    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK615. Source: nki.language.fmod (NKI 0.6).
    """
    _simulated_only("fmod")
    return binary("fmod", x, y, dtype)


def _simulated_only(what: str) -> None:
    report("NK615", f"nl.{what} works in simulation only; a kernel with it fails when it is compiled for the chip")
