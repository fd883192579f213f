"""`check`: a function with Pallas calls in every mode that this machine has."""

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
    """Check ``fn(*args, **kwargs)``, a JAX function with Pallas calls, in several modes, and return one run with all
    findings.

    No single way of running a TPU kernel on a CPU finds everything. ``modes`` (None: all but ``device``) are:

    - ``interpret``: plain interpretation, for the outputs.
    - ``tpu_interpret``: watched TPU interpretation: PL201 to PL210, and prints with their grid point. On one core; with
      ``cores=2`` again on two, which share the grid's parallel dimensions in an order drawn from ``seed``.
    - ``lower``: JAX's lowering for each of ``chips`` (v4, v5e, v5p, v6e, tpu7x), and the rules that need no compiler:
      PL101 to PL105, PL302.
    - ``aot``: the real TPU compiler for each chip, if libtpu is installed: PL102, PL103, PL105, PL301. If it accepts a
      kernel, PL102, PL103 and PL105 are dropped. It works in a process of its own, with ``timeout`` seconds for each
      kernel.
    - ``device``: the TPU that JAX sees, for the outputs.

    The run has ``.outputs`` (NumPy arrays, or JAX arrays if one argument is one), ``.findings`` and ``.prints``.
    ``.compiled["v5e"]`` has the compiler's verdict on each call, its vector memory (each block once per buffer, and the
    scratch), with ``measure_vmem`` the least with which it compiles, and with ``bundles`` the counts of its instruction
    bundles and spills. With ``estimates`` the page of the run shows ``.estimate()``: the time of each call on each
    chip, by the compiler's static profile. ``mesh`` (of JAX, or ``{"x": 4}``) gives devices to a function whose
    ``jax.shard_map`` names none; they are simulated on the CPU. ``topology`` (``"v5e:2x2"``) replaces ``chips`` as the
    target of the compiler; the default is the smallest with as many devices.

    ``reference``: the expected outputs, or a function of the arguments. If outputs differ by more than ``rtol`` and
    ``atol`` (by default by more than their dtype can explain), and no other error explains it, PL211 names the blocks,
    the grid points that wrote them and the index map. ``.left_out`` has the modes that did not run, with the reasons.
    Findings are collected; with ``rules="error"`` the first error is raised as ``KernelError``. These keywords do not
    reach ``fn``. Exceptions of ``fn`` pass through unchanged. A mode that cannot run the function is left out, and the
    outputs come from a mode that can. If none can, the outputs are None, and ``rules="error"`` raises JAX's error.
    ``TypeError`` if ``fn`` cannot be called, ``ValueError`` for an unknown chip, mode, number of cores or ``rules``,
    ``NotModelled`` (NK607) without JAX.
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
    """Check as :func:`check` does, with defaults for tests: from the options, and the first error is raised.

    The options are ``pallas_modes``, ``pallas_chips`` and ``rules``. To keep tests quick, TPU interpretation is left
    out for grids of more than 256 points and for arrays of more than 64 MiB, unless ``modes`` names it.
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
