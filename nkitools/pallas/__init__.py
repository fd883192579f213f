"""Pallas TPU kernels on a machine without a TPU.

Importing this package imports neither JAX nor NumPy; `run` does so when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.pallas.recognise import is_pallas_function

if TYPE_CHECKING:
    from nkitools.pallas.launch import run

__all__ = ["is_pallas_function", "run"]


def __getattr__(name: str) -> Any:
    if name != "run":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nkitools.pallas.launch import run

    return run
