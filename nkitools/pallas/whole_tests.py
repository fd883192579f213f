"""Whole tests of Pallas kernels for TPUs, on the CPU: it passes for a TPU, and every Pallas call is watched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from nkitools.pallas import jax_internals
from nkitools.pallas.chips import CHIPS, chosen
from nkitools.pallas.device_kinds import simulated_kinds
from nkitools.pallas.findings import in_order
from nkitools.pallas.imports import jax_module
from nkitools.pallas.interpret import interpreted
from nkitools.pallas.interpreter_limits import whole_tracebacks
from nkitools.pallas.kernel_checks import reporting_checks
from nkitools.pallas.observed_run import one_for_each_cause
from nkitools.pallas.tpu_interpret import parameters, watching
from nkitools.rules.finding import Finding

Found = Callable[[Iterable[Finding], int], None]


def pass_for(name: str) -> None:
    """Let this process's CPU pass for a TPU where JAX is asked for its backend, or a device for its kind and cores.

    JAX itself asks elsewhere, and goes on with the CPU. ValueError for a chip that is not known.
    """
    (chip,) = chosen(name)
    jax = jax_module()
    jax.default_backend = lambda: "tpu"
    device = type(jax.devices("cpu")[0])
    device.device_kind, device.num_cores = property(lambda _: chip.device_kind), property(lambda _: 1)


@contextlib.contextmanager
def watched_test(name: str, found: Found) -> Iterator[None]:
    """Interpret every Pallas call within as on that TPU; report what is certain, and the number of calls."""
    jax_internals.forget_failed_callbacks()
    with watching() as watch, reporting_checks(), whole_tracebacks():
        with simulated_kinds(CHIPS[name]), interpreted(parameters(cores=1, seed=None)):
            yield
        with contextlib.suppress(Exception):  # of a callback: the test has failed with it
            jax_module().effects_barrier()
        watch.finish()
    jax_internals.forget_failed_callbacks()
    found(in_order(one_for_each_cause(dict(watch.certain.findings), watch.cleared)), len(watch.kernels))
