"""``torch_xla.core.xla_model`` in simulation: one process whose tensors stay on the CPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TextIO

from nkitools.dialects.absent import missing_beside_kernels
from nkitools.dialects.torch_xla import device

if TYPE_CHECKING:
    import torch

__all__ = [
    "add_step_closure", "get_local_ordinal", "get_ordinal", "is_master_ordinal", "mark_step", "master_print",
    "optimizer_step", "rendezvous", "save", "set_rng_state", "unlazy", "wait_device_ops", "xla_device", "xla_device_hw",
    "xrt_world_size",
]  # fmt: skip


def xla_device(n: int | None = None, devkind: str | None = None) -> torch.device:
    """Return torch's CPU. Errors: IndexError for another ``n`` than 0; ValueError for another ``devkind`` than CPU."""
    if devkind not in (None, "CPU"):
        raise ValueError(f"xla_device(devkind={devkind!r}): nkitools stands in for torch_xla with the CPU alone")
    return device(n)


def xla_device_hw(device: str | torch.device) -> str:
    """Return ``CPU``, where tensors are in simulation."""
    return "CPU"


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """Do nothing: every tensor is computed already."""


def wait_device_ops(devices: Sequence[str] = ()) -> None:
    """Do nothing: every tensor is computed already."""


def unlazy(tensors: Sequence[torch.Tensor]) -> None:
    """Do nothing: every tensor is computed already."""


def add_step_closure(closure: Callable[..., Any], args: Sequence[Any] = (), run_async: bool = False) -> None:
    """Call ``closure(*args)`` at once: a step has no end to wait for."""
    closure(*args)


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    barrier: bool = False,
    optimizer_args: Mapping[str, Any] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    pin_layout: bool = True,
) -> Any:
    """Return ``optimizer.step(**optimizer_args)``: one process has no gradients of others to add."""
    return optimizer.step(**(optimizer_args or {}))


def get_ordinal(defval: int = 0) -> int:
    """Return 0, the number of the one process."""
    return 0


def get_local_ordinal(defval: int = 0) -> int:
    """Return 0, the number of the one process of this machine."""
    return 0


def xrt_world_size(defval: int = 1) -> int:
    """Return 1, the number of processes."""
    return 1


def is_master_ordinal(local: bool = True) -> bool:
    """Return True."""
    return True


def master_print(
    *args: str | float | torch.Tensor, fd: TextIO | None = None, local: bool = False, flush: bool = False
) -> None:
    """Print the arguments with a space between, on stdout or on ``fd``."""
    print(*args, file=sys.stdout if fd is None else fd, flush=flush)


def rendezvous(tag: str, payload: bytes = b"", replicas: Sequence[int] = ()) -> list[bytes]:
    """Return the payload of the one process."""
    return [payload]


def save(
    data: torch.Tensor | torch.nn.Module | Mapping[str, Any],
    file_or_path: str | os.PathLike[str] | IO[bytes],
    master_only: bool = True,
    global_master: bool = False,
) -> None:
    """Save with ``torch.save``."""
    import torch

    torch.save(data, file_or_path)


def set_rng_state(seed: int, device: str | None = None) -> None:
    """Seed torch's generator."""
    import torch

    torch.manual_seed(seed)


__getattr__ = partial(missing_beside_kernels, "torch_xla.core.xla_model")
