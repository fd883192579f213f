"""The chip that JAX names to a function whose own mesh has the devices of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from nkitools.pallas import jax_internals
from nkitools.pallas.chips import Chip
from nkitools.pallas.imports import jax_module


@contextlib.contextmanager
def simulated_kinds(chip: Chip) -> Iterator[None]:
    """Let CPU devices pass for ``chip``: a function's ``shard_map`` brings them into the lowering."""
    if jax_internals.moved(jax_internals.KINDS):
        yield
        return
    module = _module()
    kind, cores = module.get_device_kind, module.get_num_device_cores
    ours = {
        (module, "get_device_kind"): lambda: _instead(kind(), chip.device_kind),
        (module, "get_num_device_cores"): lambda: _count(cores),
    }
    try:
        with jax_internals.replaced(ours):
            module.get_tpu_info.cache_clear()  # its answers are by the mesh, and that of a CPU now is another chip
            yield
    finally:
        module.get_tpu_info.cache_clear()


@cache
def _module() -> Any:
    """Return the module that defines the names: a newer JAX imports them from another module."""
    return jax_module(jax_internals.of(jax_internals.TPU_INFO, "get_device_kind").__module__)


def _instead(kind: str, of_chip: str) -> str:
    return of_chip if kind == "cpu" else kind


def _count(cores: Callable[[], Any]) -> int:
    """Return the number of cores of a device; 1 for a CPU device, which has none or no such attribute."""
    try:
        return int(cores() or 1)
    except AttributeError:
        return 1
