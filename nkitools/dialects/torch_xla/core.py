"""``torch_xla.core`` in simulation: a package with ``xla_model`` in it."""

from __future__ import annotations

from functools import partial

from nkitools.dialects.absent import missing_beside_kernels

__all__: list[str] = []
__getattr__ = partial(missing_beside_kernels, "torch_xla.core")
