"""``nki`` 0.6: kernels compiled by ``nki.jit`` and simulated by ``nki.simulate``."""

from __future__ import annotations

from nkitools.dialects.modern.kernel import Kernel, jit, simulate

__all__ = ["Kernel", "jit", "simulate"]
