"""The chip that a function asks JAX about, where a mesh of its own has the devices of this machine."""

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
    """Let devices of the CPU pass for ``chip``: a function's ``shard_map`` brings them in, deep in what is lowered."""
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
    """Return the module where the names are looked up: a newer JAX hands them on from another one."""
    return jax_module(jax_internals.of(jax_internals.TPU_INFO, "get_device_kind").__module__)


def _instead(kind: str, of_chip: str) -> str:
    return of_chip if kind == "cpu" else kind


def _count(cores: Callable[[], Any]) -> int:
    """Return the cores of a device; a device of the CPU has none, or no such attribute, and stands for one."""
    try:
        return int(cores() or 1)
    except AttributeError:
        return 1
