"""``nki.jit`` and ``nki.simulate``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nkitools.launch.kernel import KernelObject, grid_of
from nkitools.launch.programs import Launch, run_launch
from nkitools.rules.finding import refuse

# Keywords of jit that speak to AWS's compiler or runtime and change no result of a simulated kernel.
COMPILER_KEYWORDS = frozenset(
    {
        "additional_compile_opt",
        "debug_kernel",
        "enable_out_of_bound_check",
        "experimental_flags",
        "mode",
        "show_compiler_tb",
    }
)


def print_now(text: str) -> None:
    """Device prints reach stdout as they come, as AWS's simulator does it."""
    print(text, flush=True)


class Kernel(KernelObject):
    """A kernel of the modern dialect. ``kernel[2]`` sets the LNC degree; called inside a running kernel it runs inline."""

    def __getitem__(self, lnc: Any) -> Kernel:
        sizes = grid_of(lnc)
        if len(sizes) != 1 or sizes[0] > 2:
            refuse("NK613", f"kernel {self.__name__} is launched with [{lnc}]; the LNC degree is 1 or 2")
        return Kernel(self.function, () if sizes == (1,) else sizes, **self.options)

    def launch(self) -> Launch:
        """How a call of this kernel is launched."""
        return Launch(self.function, self.__name__, grid=self.grid, chip=self.options.get("platform_target"))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if self.is_inside:
            return self.inline(args, kwargs)
        return run_launch(replace(self.launch(), echo=print_now), args, kwargs).outputs


def jit(fn: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Make a function a kernel, with or without keywords. Without a Neuron device a call runs on the simulator.

    ``platform_target`` picks the chip; the compiler's own keywords change nothing here; others are refused (NK609).
    """
    unknown = set(kwargs) - COMPILER_KEYWORDS - {"platform_target"}
    if unknown:
        known = ", ".join(sorted(COMPILER_KEYWORDS | {"platform_target"}))
        refuse("NK609", f"nki.jit does not know {', '.join(sorted(unknown))}", remedy=f"It knows {known}.")
    if fn is None:
        return lambda function: jit(function, **kwargs)
    if not callable(fn):
        refuse("NK609", f"nki.jit decorates a function, it is given {type(fn).__name__}")
    return Kernel(fn, **kwargs)


def simulate(kernel: Any) -> Callable[..., Any]:
    """The kernel (a kernel object, a launch ``kernel[2]`` or a plain function) as a function that runs on the simulator."""
    if not isinstance(kernel, KernelObject) and not inspect.isroutine(kernel) and not callable(kernel):
        refuse("NK609", f"nki.simulate takes a kernel, it is given {type(kernel).__name__}")
    target = kernel if isinstance(kernel, KernelObject) else Kernel(kernel)

    def simulated(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return run_launch(replace(target.launch(), echo=print_now), args, kwargs).outputs

    simulated.__name__ = target.__name__
    simulated.__doc__ = target.__doc__
    return simulated
