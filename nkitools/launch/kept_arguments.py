"""Arguments that a launch leaves as they were: they are copied before the first instruction that writes into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass
from nkitools.launch.signatures import signature_of


@dataclass(frozen=True)
class Keeping:
    """The treatment of arguments that a kernel changes.

    ``mutates``: the parameters whose arrays it may change. Others keep their values; one that the kernel has changed
    and does not return is NK409, of this ``severity``. ``restores``: whether arrays have to be brought back, as they
    are the caller's own.
    """

    mutates: frozenset[str] = frozenset()
    severity: str = "hint"
    restores: bool = True

    def may_change(self, name: str) -> bool:
        """Return whether an argument may be changed; ``name``: of its parameter, or of a part of it (``tiles[0]``)."""
        return bool(self.mutates) and name.partition("[")[0].partition(".")[0] in self.mutates


def must_have_parameters(kernel: str, function: Callable[..., Any], mutates: Sequence[str]) -> None:
    """Raise ValueError for a name in ``mutates`` that is no parameter of a kernel's function."""
    parameters = signature_of(function).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = [name for name in mutates if name not in parameters]
    if unknown and not takes_all:
        raise ValueError(
            f"mutates: {kernel} has no parameter {', '.join(unknown)}; it has {', '.join(parameters) or 'none'}"
        )


_SEVERITY: ContextVar[str] = ContextVar("_SEVERITY", default="hint")


def severity_of_changes() -> str:
    """Return the severity of a changed argument: a hint, or an error in tests and sweeps."""
    return _SEVERITY.get()


@contextmanager
def changes_fail() -> Iterator[None]:
    """Let a kernel that changes its arguments fail in this block."""
    token = _SEVERITY.set("error")
    try:
        yield
    finally:
        _SEVERITY.reset(token)


class Guard:
    """The memory of an argument, read-only until an instruction writes into it; it is copied before."""

    def __init__(self, storage: Storage) -> None:
        self._memory = storage.array
        self._before: Array | None = None
        self.is_open = False  # whether an instruction has written into the argument
        storage.array = self._memory.view()
        storage.array.flags.writeable = False
        storage.guard = self.open

    def changed_elements(self) -> Array:
        """Return for each element of the argument whether it holds other bits than before."""
        return unlike_bits(self._memory if self._before is None else self._before, self._memory)

    def open(self, storage: Storage) -> None:
        """Copy the argument, and let it be written."""
        if self._before is None:
            self._before, self.is_open = self._memory.copy(), True
            storage.array.flags.writeable = True
            storage.forget_windows()

    @staticmethod
    def give_up(storage: Storage) -> None:
        """Let the argument be written in place."""
        storage.guard = None
        storage.array.flags.writeable = True

    def restore(self, storage: Storage) -> None:
        """Restore the argument's value; the storage keeps the changed one."""
        if self._before is not None:
            storage.array = self._memory.copy()
            storage.forget_windows()
            np.copyto(self._memory, self._before)
            self._before = None


def unlike_bits(one: Array, other: Array) -> Array:
    """Return for each element of two arrays of a dtype and shape, in the order of C, whether its bits differ."""
    first, second = (np.ascontiguousarray(each).reshape(-1, 1).view(np.uint8) for each in (one, other))
    return np.asarray((first != second).any(axis=1))
