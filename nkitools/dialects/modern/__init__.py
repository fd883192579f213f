"""``nki``: kernels compiled by ``nki.jit`` and simulated by ``nki.simulate``."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.call_form import language_here
from nkitools.dialects.modern.kernel import Kernel, cpu_simulate, jit, simulate
from nkitools.dialects.public import find

__all__ = ["Kernel", "cpu_simulate", "jit", "simulate"]


def __getattr__(name: str) -> Any:
    return f"{language_here().name}.0" if name == "__version__" else find(globals(), "nki", name)
