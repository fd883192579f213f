"""The simulated GpSimd cores of custom C++ operators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from nkitools.facts import options
from nkitools.targets.target import Availability, Target, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.record.run import Run


class GpSimdSimulator(Target):
    """Runs custom operators on this host."""

    key = "builtin"
    name = "simulated GpSimd cores"
    prints = "recorded, and in the report"

    def available(self) -> Availability:
        """Return whether there is a C++ compiler: an operator that comes here has been built by one."""
        from nkitools.customop.errors import BuildError
        from nkitools.customop.toolchain import find_compiler

        try:
            return Availability(True, find_compiler().path)
        except BuildError as error:
            return Availability(False, str(error))

    def run(self, kernel: Kernel, /, *args: Argument, **kwargs: Any) -> Run:
        """Run a custom operator; the keywords of ``Operator.run`` apply, ``rules`` being the option's by default.

        Raises ``NotModelled`` for keywords that belong to other kinds of kernel (grid, ranks, watch).
        """
        __tracebackhide__ = True
        operator: Any = kernel
        for keyword in kwargs:
            if keyword not in inspect.signature(operator.run).parameters:
                refuse(kernel, f"a custom operator has no `{keyword}`", f"Leave `{keyword}` out.")
        run: Run = operator.run(*args, **{"rules": str(options.value("rules")), **kwargs})
        return run


def is_custom_operator(kernel: Kernel) -> bool:
    """Return whether ``kernel`` is an operator of ``nkitools.customop``, which is not imported to find out."""
    names = {f"{each.__module__}.{each.__qualname__}" for each in type(kernel).__mro__}
    return "nkitools.customop.operator.Operator" in names
