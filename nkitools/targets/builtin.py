"""nkitools' own simulator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nkitools.targets.target import Availability, Target

if TYPE_CHECKING:
    from nkitools.record.run import Run


class BuiltinSimulator(Target):
    """Runs NKI kernels in the simulator and JAX functions in the Pallas room."""

    name = "builtin simulator"

    def available(self) -> Availability:
        """Always: it is pure Python."""
        return Availability(True, "part of nkitools")

    def run(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Run:
        """Run ``kernel``; the keywords of ``nkitools.simulate`` (grid, chip, ranks, rules) apply."""
        __tracebackhide__ = True
        if is_jax_function(kernel):
            from nkitools.pallas import run

            return run(kernel, *args, **kwargs)
        from nkitools.launch.simulate import simulate

        return simulate(kernel, *args, **kwargs)


def is_jax_function(kernel: Any) -> bool:
    """Whether ``kernel`` is a JAX function with Pallas calls. Where JAX has not been imported nothing can be one."""
    if "jax" not in sys.modules:
        return False
    from nkitools.pallas import is_pallas_function

    return is_pallas_function(kernel)
