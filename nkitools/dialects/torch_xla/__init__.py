"""``torch_xla`` in simulation, as far as scripts around kernels use it: one process whose tensors stay on the CPU.

Lazy tensors are computed at once here, so that steps and waits have nothing left to do. What needs other devices or
processes is refused by name. Source: PyTorch/XLA 2.9, API guide.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from nkitools.dialects.absent import missing_beside_kernels
from nkitools.rules.finding import not_modelled

if TYPE_CHECKING:
    import torch

__all__ = ["compile", "device", "device_count", "devices", "launch", "manual_seed", "step", "sync"]


def device(index: int | None = None) -> torch.device:
    """Return the one device, torch's CPU. Errors: IndexError for another index than 0."""
    import torch

    if index not in (None, 0):
        raise IndexError(f"torch_xla.device({index}): nkitools stands in for torch_xla with one device, 0")
    return torch.device("cpu")


def devices() -> list[torch.device]:
    """Return the one device in a list."""
    return [device()]


def device_count() -> int:
    """Return 1."""
    return 1


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    """Do nothing: every tensor is computed already."""


def step() -> AbstractContextManager[None]:
    """Return a context manager that does nothing."""
    return nullcontext()


def compile(
    f: Callable[..., Any] | None = None,
    full_graph: bool = False,
    name: str | None = None,
    num_different_graphs_allowed: int | None = None,
) -> Any:
    """Return ``f`` itself, or without it a context manager that does nothing.

    NotModelled for ``num_different_graphs_allowed``: no graphs are made here, so that none are counted.
    """
    if num_different_graphs_allowed is not None:
        not_modelled("torch_xla.compile(num_different_graphs_allowed=) is not modelled: a simulation makes no graphs")
    return nullcontext() if f is None else f


def launch(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), start_method: str = "spawn", debug_single_process: bool = False
) -> None:
    """Call ``fn(0, *args)`` in this process: there is one device."""
    fn(0, *args)


def manual_seed(seed: int, device: torch.device | None = None) -> None:
    """Seed torch's generator."""
    import torch

    torch.manual_seed(seed)


__getattr__ = partial(missing_beside_kernels, "torch_xla")
