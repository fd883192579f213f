"""nkitools' own simulator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nkitools.targets.neuron_module import is_torch_module
from nkitools.targets.target import Availability, Target, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.record.run import Run

_CALL_IT = "Call it: model(x). On hardware kernel_benchmark times it, as a baseline for kernels."
_PRINT_IT = "Call pl.debug_print or jax.debug.print in the kernel, and leave watch= out."


class BuiltinSimulator(Target):
    """Runs NKI kernels in the simulator and JAX functions in the Pallas room."""

    key = "builtin"
    name = "builtin simulator"
    prints = "recorded, and in the report"

    def available(self) -> Availability:
        """Return that the simulator is there: it is pure Python, and runs everywhere."""
        return Availability(True, "part of nkitools")

    def run(self, kernel: Kernel, /, *args: Any, **kwargs: Any) -> Run:
        """Run ``kernel``; the keywords of ``nkitools.simulate`` (grid, chip, ranks, rules, watch) apply.

        A JAX function is checked by `nkitools.pallas.check_as_asked`, which takes other keywords.
        """
        __tracebackhide__ = True
        if is_jax_function(kernel):
            from nkitools.pallas import check_as_asked

            if kwargs.get("watch") is not None:
                refuse(kernel, "watch= records writes of NKI kernels only, not those of a JAX function", _PRINT_IT)
            return check_as_asked(kernel, *args, **kwargs)
        if is_torch_module(kernel):
            refuse(kernel, "a torch module is no kernel, so that there is nothing to simulate", _CALL_IT)
        from nkitools.launch.simulate import simulate
        from nkitools.launch.torch_operators import is_nki_op, run_operator

        if is_nki_op(kernel):
            for name in ("grid", "ranks", "watch"):
                if kwargs.get(name) is not None:
                    refuse(
                        kernel, f"an operator of nki_op has no `{name}`", "Say it where the operator calls its kernel."
                    )
            return run_operator(kernel, args, kwargs)
        return simulate(kernel, *args, **kwargs)


def is_jax_function(kernel: Kernel) -> bool:
    """Return whether ``kernel`` is a JAX function with Pallas calls; none is where JAX has not been imported."""
    if "jax" not in sys.modules:
        return False
    from nkitools.pallas import is_pallas_function

    return is_pallas_function(kernel)
