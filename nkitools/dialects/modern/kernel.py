"""``nki.jit`` and ``nki.simulate``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from nkitools.launch.kernel import KernelObject, lnc_grid
from nkitools.launch.programs import run_launch
from nkitools.launch.tracebacks import AuthorsTraceback
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
    """A kernel of the modern dialect: ``kernel[2]`` sets the LNC degree; inside a running kernel it runs inline."""

    def __getitem__(self, lnc: Any) -> KernelObject:
        with AuthorsTraceback():
            return self.with_grid(lnc)

    def with_grid(self, grid: Any) -> KernelObject:
        """The same kernel under an LNC degree. Errors: NK613."""
        return super().with_grid(lnc_grid(self.__name__, grid))

    def with_schedule(self, edges: Any) -> KernelObject:
        """The same kernel with dependency edges: pairs of an instruction's name and the names that it runs after.

        They bind AWS's scheduler. Here instructions run in the order of the program, so that no result changes.
        Errors: NK609. Source: How to Use the NKI Scheduling APIs (SDK 2.32).
        """
        with AuthorsTraceback():
            _check_edges(edges)
            return KernelObject.with_grid(self, self.grid)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with AuthorsTraceback():
            if self.is_inside:
                return self.inline(args, kwargs)
            return run_launch(replace(self.launch(), echo=print_now), args, kwargs).outputs


def _check_edges(edges: Any) -> None:
    if not isinstance(edges, (list, tuple)):
        refuse("NK609", f"with_schedule takes a list of pairs of names, it is given {type(edges).__name__}")
    for edge in edges:
        pair = edge if isinstance(edge, (list, tuple)) and len(edge) == 2 else (None, None)
        producers = pair[1] if isinstance(pair[1], (list, tuple)) else [pair[1]]
        if not all(isinstance(name, str) for name in (pair[0], *producers)):
            refuse(
                "NK609",
                f"with_schedule: {edge!r} is no pair of an instruction's name and the names that it runs after",
                remedy='Write ("later", "earlier") or ("later", ["earlier", "another"]), by the name= of instructions.',
            )


def jit(fn: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Make a function a kernel, with or without keywords. Without a Neuron device a call runs on the simulator.

    The compiler's own keywords change nothing here. Errors: NK608 (platform_target), NK609 for others and for what is
    no function.
    """
    with AuthorsTraceback():
        _check_keywords(kwargs)
        if fn is None:
            return functools.partial(jit, **kwargs)
        if not callable(fn):
            refuse("NK609", f"nki.jit decorates a function, it is given {type(fn).__name__}")
        return Kernel(fn, **kwargs)


def _check_keywords(keywords: dict[str, Any]) -> None:
    if "platform_target" in keywords:
        refuse(
            "NK608",
            "nki.jit(platform_target=...) was removed in NKI 0.3",
            remedy="Set NEURON_PLATFORM_TARGET_OVERRIDE, or pass chip= to nkitools.simulate (--nki-chip to pytest).",
        )
    unknown = sorted(set(keywords) - COMPILER_KEYWORDS)
    if unknown:
        known = ", ".join(sorted(COMPILER_KEYWORDS))
        refuse("NK609", f"nki.jit does not know {', '.join(unknown)}", remedy=f"It knows {known}.")


def simulate(kernel: Any) -> Callable[..., Any]:
    """The kernel (a kernel object, ``kernel[2]`` or a plain function) as a function that runs on the simulator."""
    with AuthorsTraceback():
        if not callable(kernel):
            refuse("NK609", f"nki.simulate takes a kernel, it is given {type(kernel).__name__}")
        target = kernel if isinstance(kernel, KernelObject) else Kernel(kernel)

    @functools.wraps(cast("Callable[..., Any]", target))
    def simulated(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with AuthorsTraceback():
            return run_launch(replace(target.launch(), echo=print_now), args, kwargs).outputs

    return simulated
