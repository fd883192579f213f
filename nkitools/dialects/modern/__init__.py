"""``nki`` 0.6: kernels compiled by ``nki.jit`` and simulated by ``nki.simulate``."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.modern.kernel import Kernel, cpu_simulate, jit, simulate
from nkitools.rules.removed import NKI as REMOVED

__all__ = ["Kernel", "cpu_simulate", "jit", "simulate"]


def __getattr__(name: str) -> Any:
    return missing("nki", name, frozenset(), REMOVED)
