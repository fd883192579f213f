"""Kernel objects, which a dialect's decorator returns, and their launches."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Generic, ParamSpec, Unpack, cast

import numpy as np

from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.chip.core import CORE
from nkitools.facts.kept import Kept
from nkitools.launch.kept_arguments import Keeping
from nkitools.launch.launch import Launch, Said
from nkitools.launch.signatures import bind, signature_of
from nkitools.launch.tracebacks import hands_over
from nkitools.rules.finding import refuse

P = ParamSpec("P")  # the parameters of a kernel, as its author wrote them


class KernelObject(Generic[P]):
    """A kernel: keeps the function's name, signature and ``__wrapped__``; runs inline inside a running kernel.

    Dialects derive from it and say in ``launch`` how a call is launched.
    """

    __signature__: inspect.Signature
    __call__: Callable[P, Any]
    function: Callable[P, Any]
    grid: tuple[int, ...]
    options: dict[str, Any]
    _launches: Kept[Any, Launch] | None = None

    def __init__(self, function: Callable[P, Any], grid: tuple[int, ...] = (), **options: Argument) -> None:
        # Decorated twice it is one kernel: recursion would follow otherwise, since a kernel calls what it wraps.
        while isinstance(function, KernelObject):
            grid = grid or function.grid
            options = {**function.options, **options}
            function = function.function
        # First, since it also copies the function's own attributes.
        functools.update_wrapper(cast("Callable[..., Any]", self), function)
        self.__name__ = name_of(function)
        self.__signature__ = signature_of(function)
        self.function = function
        self.grid = grid
        self.options = options

    def __repr__(self) -> str:
        grid = f"[{', '.join(map(str, self.grid))}]" if self.grid else ""
        return f"<{type(self).__module__.split('.')[-2]} kernel {self.__name__}{grid}>"

    @property
    def func(self) -> Callable[P, Any]:
        """The kernel's function, as AWS's kernel objects keep it: others call it, and tools read its types."""
        return self.function

    def __get__(self, instance: object, owner: type | None = None) -> KernelObject[...]:
        """Return a decorated method, bound to its object; a kernel that is only kept in a class stays as it is."""
        home, _, _ = str(getattr(self.function, "__qualname__", "")).rpartition(".")
        classes = (instance if isinstance(instance, type) else type(instance)).__mro__
        is_method = isinstance(self.function, FunctionType) and home in (each.__qualname__ for each in classes)
        return self.with_function(MethodType(self.function, instance)) if is_method else self

    def with_grid(self, grid: int | tuple[int, ...]) -> KernelObject[P]:
        """Return the same kernel under a launch grid."""
        return type(self)(self.function, grid_of(grid), **self.options)

    def with_function(self, function: Kernel) -> KernelObject[...]:
        """Return a kernel object of another function with the same grid and options."""
        return type(self)(function, self.grid, **self.options)

    def launch(self, **said: Unpack[Said]) -> Launch:
        """Return the `Launch` that describes a call of this kernel, and run nothing; ``said``: further fields."""
        return Launch(self.function, self.__name__, self.grid, **said)

    def launched(self, **said: Unpack[Said]) -> Launch:
        """Return `launch` of an earlier call with the same fields, if there was one: it has what was prepared."""
        key = tuple(said.items())
        try:
            known = None if self._launches is None else self._launches.get(key)
        except TypeError:  # a list, say, which the launch refuses
            return self.launch(**said)
        if known is None or known.name != self.__name__:
            if self._launches is None:
                self._launches = Kept("launches of a kernel", 16, "a script has a few ways in and settings")
            known = self._launches[key] = self.launch(**said)
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes that go to another process: all but the kept launches."""
        return {name: value for name, value in vars(self).items() if name != "_launches"}

    @hands_over
    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the kernel's function, run at once inside a running kernel (without a grid: NK610)."""
        if self.grid and not self.is_alone:
            refuse("NK610", f"kernel {self.__name__} is launched with grid {list(self.grid)} inside a running kernel")
        bind(self.__name__, self.__signature__, args, kwargs)
        return self.function(*args, **kwargs)

    @property
    def is_alone(self) -> bool:
        """Return whether a launch has one program whatever the caller has."""
        return not self.grid

    @property
    def is_inside(self) -> bool:
        """Return whether a kernel is running already."""
        return CORE.get() is not None


def name_of(function: Kernel) -> str:
    """Return the name of a function or callable object."""
    return str(getattr(function, "__name__", type(function).__name__))


def grid_of(grid: Grid | None) -> tuple[int, ...]:
    """Return a launch grid as a tuple of sizes. TypeError or ValueError if it is no grid."""
    if grid is None:
        return ()
    sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    found = []
    for size in sizes:
        try:
            found.append(size.__index__())
        except (AttributeError, TypeError):
            raise TypeError(f"grid: must be an integer or integers, it has {size!r}") from None
    if any(size < 1 for size in found):
        raise ValueError(f"grid: sizes must be at least 1, they are {found}")
    return tuple(found)


def lnc_grid(name: str, grid: Grid) -> tuple[int, ...]:
    """Return the grid of a launch of the modern dialect, its LNC degree: (1,) or (2,).

    Errors: NK609 unless it is an integer, NK613 for other degrees.
    """
    sizes = grid if isinstance(grid, (tuple, list)) else (grid,)
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in sizes)
    if not whole or len(sizes) != 1 or sizes[0] not in (1, 2):
        shown = ", ".join(_shown(size) for size in sizes)
        refuse("NK613" if whole else "NK609", f"kernel {name} is launched with [{shown}]; the LNC degree is 1 or 2")
    return (1,) if sizes[0] == 1 else (2,)


def _shown(size: Any) -> str:
    """Return the text of a size in brackets: numbers and strings as they are, other objects by their type."""
    plain = size is None or isinstance(size, (int, float, str, np.generic))
    return repr(size.item() if isinstance(size, np.generic) else size) if plain else f"a {type(size).__name__}"


def as_launch(
    kernel: Kernel,
    *,
    grid: Grid | None = None,
    chip: str | None = None,
    nki_version: str | None = None,
    rules: str | None = None,
    sum_order: str | None = None,
    keeping: Keeping | None = None,
) -> Launch:
    """Return a kernel or a plain function (of the modern dialect) as a launch, with the caller's settings."""
    sizes = None if grid is None else grid_of(grid)
    said: Said = {}
    if chip is not None:
        said["chip"] = chip
    if nki_version is not None:
        said["nki_version"] = nki_version
    if rules is not None:
        said["rules"] = rules
    if sum_order is not None:
        said["sum_order"] = sum_order
    if keeping is not None:
        said["keeping"] = keeping
    if isinstance(kernel, KernelObject):
        return (kernel if sizes is None else kernel.with_grid(sizes)).launched(**said)
    signature_of(kernel)
    return Launch(kernel, name_of(kernel), () if sizes is None else lnc_grid(name_of(kernel), sizes), **said)


def print_now(text: str) -> None:
    """Print a device print as it comes, as AWS's simulator does it."""
    from nkitools.output_streams import write_line

    write_line(text, sys.stdout)
