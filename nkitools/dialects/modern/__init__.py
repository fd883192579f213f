"""``nki``: kernels compiled by ``nki.jit`` and simulated by ``nki.simulate``."""

from __future__ import annotations

from nkitools.dialects.modern.kernel import Kernel, cpu_simulate, jit, simulate

__all__ = ["Kernel", "cpu_simulate", "jit", "simulate"]
