"""Tables of kernels whose verdicts were measured mode by mode: wrong ones with the line to report, and right ones.

The kernels are in measured_static.py, measured_runs.py and measured_right.py, which enter them here.

The line that ends in ``# <rule>`` is the line that a check must name. ``compiled``: only the real compiler sees it.
``until``: the first JAX or libtpu that takes the kernel, where there is one; from it on a check has nothing to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from nkitools.pallas import libtpu

COMPILING = ("lower", "aot")
EVERYTHING = None

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """One kernel, and what a check must say of it: nothing where ``rule`` is empty."""

    name: str
    rule: str
    make: Callable[[], Made]
    modes: tuple[str, ...] | None
    compiled: bool
    chips: tuple[str, ...]
    until: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the JAX and the libtpu of here refuse it."""
        return bool(self.rule) and not takes(self.until)

    @property
    def file(self) -> str:
        """The file that has it."""
        return inspect.getfile(self.make)

    @property
    def line(self) -> int:
        """The marked line."""
        lines, first = inspect.getsourcelines(self.make)
        return next(first + number for number, line in enumerate(lines) if line.rstrip().endswith(f"# {self.rule}"))


def takes(since: str) -> bool:
    """Whether this is a JAX or libtpu that takes what was refused before ``since``: ``jax 0.11``, ``libtpu 0.0.50``."""
    if not since:
        return False
    package, _, first = since.partition(" ")
    here = jax.__version_info__ if package == "jax" else libtpu.version()
    return tuple(here) >= tuple(int(each) for each in first.split("."))


WRONG: list[Case] = []
RIGHT: list[Case] = []


def wrong(
    rule: str,
    modes: tuple[str, ...] | None = EVERYTHING,
    *,
    compiled: bool = False,
    chips: tuple[str, ...] = ("v5e",),
    until: str = "",
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """A kernel that breaks ``rule``; what only the compiler sees is left to those who have it."""

    def keep(make: Callable[[], Made]) -> Callable[[], Made]:
        WRONG.append(Case(make.__name__, rule, make, modes, compiled, chips, until))
        return make

    return keep


def right(make: Callable[[], Made]) -> Callable[[], Made]:
    """A kernel that every mode accepts."""
    RIGHT.append(Case(make.__name__, "", make, EVERYTHING, False, ("v5e",)))
    return make
