"""Kernel objects: what a dialect's decorator returns, and how one becomes a launch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nkitools.chip.core import CORE
from nkitools.launch.programs import Launch
from nkitools.rules.finding import refuse


class KernelObject:
    """A kernel: keeps the function's name, signature and ``__wrapped__``; runs inline inside a running kernel.

    Dialects derive from it and say in ``_launch`` how a call is launched.
    """

    def __init__(self, function: Callable[..., Any], grid: tuple[int, ...] = (), **options: Any) -> None:
        while isinstance(function, KernelObject):
            options = {**function.options, **options}
            function = function.function
        self.function = function
        self.grid = grid
        self.options = options
        functools.update_wrapper(self, function)
        self.__signature__ = inspect.signature(function)

    def __repr__(self) -> str:
        grid = f"[{', '.join(map(str, self.grid))}]" if self.grid else ""
        return f"<{type(self).__module__.split('.')[-2]} kernel {self.__name__}{grid}>"

    __name__: str

    def with_grid(self, grid: tuple[int, ...]) -> KernelObject:
        """The same kernel under a launch grid."""
        return type(self)(self.function, grid, **self.options)

    def launch(self) -> Launch:
        """How a call of this kernel is launched."""
        return Launch(self.function, self.__name__, grid=self.grid)

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The kernel called inside a running kernel: its function, at once (without a grid of its own: NK610)."""
        if self.grid:
            refuse("NK610", f"kernel {self.__name__} is launched with grid {list(self.grid)} inside a running kernel")
        return self.function(*args, **kwargs)

    @property
    def is_inside(self) -> bool:
        """Whether a kernel is running already."""
        return CORE.get() is not None


def grid_of(grid: Any) -> tuple[int, ...]:
    """A launch grid as a tuple of sizes; TypeError names what is not one."""
    if grid is None:
        return ()
    sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    found = []
    for size in sizes:
        try:
            found.append(size.__index__())
        except AttributeError:
            raise TypeError(f"grid: must be an integer or integers, it has {size!r}") from None
    if any(size < 1 for size in found):
        raise ValueError(f"grid: sizes must be at least 1, they are {found}")
    return tuple(found)


def as_launch(kernel: Any, *, grid: Any = None, chip: str | None = None, rules: str | None = None) -> Launch:
    """Any kernel or plain function as a launch, with what the caller decides put over it."""
    if isinstance(kernel, KernelObject):
        launch = kernel.launch()
    else:
        launch = Launch(kernel, getattr(kernel, "__name__", type(kernel).__name__))
    if grid is not None:
        launch = replace(launch, grid=grid_of(grid))
    if chip is not None:
        launch = replace(launch, chip=chip)
    if rules is not None:
        launch = replace(launch, rules=rules)
    return launch
