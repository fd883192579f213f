"""The check of a function with Pallas calls in every mode of this machine: what may be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nkitools.comparison.rule import stated_rule
from nkitools.facts import options
from nkitools.pallas import launch
from nkitools.pallas.check_modes import Plan, chosen_modes
from nkitools.pallas.chips import chosen, in_topology
from nkitools.pallas.device_axes import axes_of, on_simulated_devices
from nkitools.pallas.imports import jax_module, without_jax_warnings
from nkitools.pallas.jax_types import Argument, DeviceMesh
from nkitools.pallas.one_check import Check, CheckedRun
from nkitools.record.run_session import session


def check(
    fn: Callable[..., Any],
    /,
    *args: Argument,
    chips: str | Sequence[str] = ("v5e",),
    modes: str | Sequence[str] | None = None,
    cores: int = 1,
    seed: int | None = None,
    timeout: float = 120.0,
    measure_vmem: bool = False,
    bundles: bool = False,
    estimates: bool = False,
    rules: str = "report",
    mesh: DeviceMesh | Mapping[str, int] | None = None,
    topology: str | None = None,
    reference: Argument = None,
    rtol: float | None = None,
    atol: float | None = None,
    **kwargs: Argument,
) -> CheckedRun:
    """Check ``fn(*args, **kwargs)``, a JAX function with Pallas calls, and say what was found in one run.

    No single way of running a TPU kernel on a CPU finds everything. ``modes`` are those to go through (None: all but
    ``device``):

    - ``interpret``: plain interpretation. The outputs.
    - ``tpu_interpret``: TPU interpretation, watched: PL201 to PL210, and prints with their grid point. One core, and
      with ``cores=2`` a second time on two, which share the grid's parallel dimensions in an order from ``seed``.
    - ``lower``: JAX's lowering for each of ``chips`` (v4, v5e, v5p, v6e, tpu7x), and what can be said without a
      compiler: PL101 to PL105, PL302.
    - ``aot``: the real TPU compiler for each chip, where libtpu is installed: PL102, PL103, PL105, PL301. It has the
      last word: where it takes a kernel, PL102, PL103 and PL105 say nothing. It works in a process of its own, with
      ``timeout`` seconds for each kernel.
    - ``device``: the TPU that JAX sees, for the outputs.

    ``.outputs`` are NumPy arrays, or JAX arrays as soon as one argument is one; ``.findings``, ``.prints``;
    ``.compiled["v5e"]`` has what the compiler says of each call, its vector memory by the block model, with
    ``measure_vmem`` the least that it compiles with, and with ``bundles`` the counts of its instruction bundles and
    spills. With ``estimates`` the page of the run has what ``.estimate()`` returns: the time of each call on each chip,
    by the compiler's static profile. ``mesh`` (of JAX, or ``{"x": 4}``) has the devices of a function whose
    ``jax.shard_map`` names none; they are simulated on the CPU. ``topology`` (``"v5e:2x2"``) is what to compile for in
    the place of ``chips``, by default the smallest with as many devices.

    ``reference`` is what the outputs should be, or a function of the arguments. Where they differ by more than ``rtol``
    and ``atol`` (by default than their dtype can explain), and no other error explains it, PL211 names the blocks, the
    grid points that wrote them and the index map. ``.left_out`` says which modes were not gone through and why.
    Findings are collected; with ``rules="error"`` the first error is raised as ``KernelError``. No keyword of these
    names reaches ``fn``. What ``fn`` raises is raised unchanged. A mode that cannot run the function is left out, and
    the outputs are those of a mode that can. Where none can, the outputs are None, and ``rules="error"`` raises what
    JAX says. ``TypeError`` for what is no JAX function, ``ValueError`` for a chip, a mode or a number of cores that
    there is not, ``NotModelled`` (NK607) without JAX.
    """
    __tracebackhide__ = True
    plan = Plan(
        chips=chosen(chips) if topology is None else (in_topology(topology),), modes=chosen_modes(modes), seed=seed,
        cores=_possible_cores(cores), axes=axes_of(mesh), timeout=timeout, measure_vmem=measure_vmem, bundles=bundles,
        estimates=estimates, reference=reference, rule=stated_rule(rtol, atol), rules=_possible_level(rules),
    )  # fmt: skip
    return checked(fn, args, kwargs, plan)


def check_as_asked(
    fn: Callable[..., Any],
    /,
    *args: Argument,
    chips: str | Sequence[str] | None = None,
    modes: str | Sequence[str] | None = None,
    cores: int = 1,
    rules: str | None = None,
    **kwargs: Argument,
) -> CheckedRun:
    """As :func:`check`, in the way of tests: what is not said here the options say, and the first error is raised.

    The options are ``pallas_modes``, ``pallas_chips`` and ``rules``. To keep tests quick, TPU interpretation is left
    out of a function whose grids have more than 256 points, or whose arrays more than 64 MiB, unless ``modes`` has it.
    """
    __tracebackhide__ = True
    level = str(options.value("rules")) if rules is None else rules
    plan = Plan(
        chips=chosen(str(options.value("pallas_chips")) if chips is None else chips),
        modes=chosen_modes(str(options.value("pallas_modes")) if modes is None else modes),
        cores=_possible_cores(cores),
        rules=_possible_level(level),
        quick=modes is None,
    )
    return checked(fn, args, kwargs, plan)


def _possible_cores(cores: int) -> int:
    if cores not in (1, 2):
        raise ValueError(f"cores is {cores!r}; a TPU's device has 1 or 2")
    return cores


def _possible_level(rules: str) -> str:
    levels = options.OPTIONS["rules"].choices
    if rules not in levels:
        raise ValueError(f"rules is {rules!r}; choose one of {', '.join(levels)}")
    return rules


def checked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], plan: Plan) -> CheckedRun:
    """Carry out ``plan``."""
    __tracebackhide__ = True
    if not callable(fn):
        raise TypeError(f"nkitools.pallas.check takes a JAX function and its arguments, not a {type(fn).__name__}")
    jax_module()  # or the word that it is not installed
    run = CheckedRun(launch.name_of(fn), launch.TARGET, " ".join(chip.name for chip in plan.chips))
    run.settings = {"rules": plan.rules, "modes": list(plan.modes), "cores": plan.cores}
    with without_jax_warnings(), session(run, plan.rules) as findings:
        Check(fn, on_simulated_devices(fn, plan.axes), args, kwargs, plan, run, findings).go()
    return run
