"""`check`: a function with Pallas calls in every mode that this machine has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nkitools.comparison.rule import stated_rule
from nkitools.facts import options
from nkitools.pallas import launch
from nkitools.pallas.check_modes import RUNNING, Plan, chosen_modes
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

    - ``interpret``: plain interpretation, for the outputs; PL213 if those of ``tpu_interpret`` differ.
    - ``tpu_interpret``: watched TPU interpretation: PL201 to PL210, PL212, and prints with their grid point. Parallel
      dimensions of the grid run in an order drawn from ``seed`` (None: 0). With ``cores=2`` the function runs once more
      on two cores, which share these dimensions.
    - ``lower``: JAX's lowering for each of ``chips`` (v4, v5e, v5p, v6e, tpu7x): PL101 to PL105, PL302, and PL301 for
      what the lowering refuses otherwise.
    - ``aot``: the TPU compiler for each chip, if libtpu is installed: PL301, or the rule that its refusal is about. If
      it accepts a kernel, PL102, PL103 and PL105 are dropped. It works in a process of its own, with ``timeout``
      seconds for each compilation.
    - ``device``: the TPU that JAX sees, for the outputs.

    With ``lower`` or ``aot`` the rules that need no compiler (PL101 to PL103, PL105, PL302, PL303) are checked too.

    The run has ``.outputs`` (NumPy arrays, or JAX arrays if one argument is one), ``.findings`` and ``.prints``.
    ``.compiled["v5e"]`` (with ``aot``) has the compiler's verdict on each call, its vector memory (each block once per
    buffer, and the scratch), with ``measure_vmem`` the least with which it compiles, and with ``bundles`` the counts of
    its instruction bundles and spills. With ``estimates`` the page of the run shows ``.estimate()``: the time of each
    call on each chip, by the compiler's static profile. ``mesh`` (of JAX, or ``{"x": 4}``) gives devices to a function
    whose ``jax.shard_map`` names none; they are simulated on the CPU. ``topology`` (``"v5e:2x2"``) replaces ``chips``:
    the compiler targets it; the default is the smallest with as many devices.

    ``reference``: the expected outputs, or a function that gets the arguments as they are and returns them. If outputs
    differ by more than ``rtol`` and ``atol`` (without both by more than their dtype can explain), and the run has no
    error of PL201 to PL212, PL211 names the blocks, the grid points that wrote them and the index map. ``.left_out``
    has the modes that did not run, with the reasons. ``rules="report"`` collects findings, ``"error"`` raises the first
    error as ``KernelError``, ``"strict"`` warnings too, ``"off"`` keeps no finding. These keywords do not reach ``fn``.
    Exceptions of ``fn`` pass through unchanged. A mode that cannot run the function is left out, and the outputs come
    from a mode that can. If none can, the outputs are None, and ``"error"`` and ``"strict"`` raise JAX's error, or
    ``NotModelled`` (NK607) where only a TPU that is not there was to run it.
    ``TypeError`` if ``fn`` is no JAX function, ``NotModelled`` (NK607) without JAX, ``ValueError`` for an unknown chip,
    mode, topology, number of cores or ``rules``, for a tolerance without ``reference`` or that is no finite number
    from 0 on, and for a reference with other shapes than the outputs, or of modes that run nothing.
    """
    __tracebackhide__ = True
    if reference is None and (rtol, atol) != (None, None):
        raise ValueError("rtol and atol are the allowed differences from `reference`, which is not given")
    plan = Plan(
        chips=chosen(chips) if topology is None else (in_topology(topology),), modes=chosen_modes(modes), seed=seed,
        cores=_possible_cores(cores), axes=axes_of(mesh), timeout=timeout, measure_vmem=measure_vmem, bundles=bundles,
        estimates=estimates, reference=reference, rule=stated_rule(rtol, atol), rules=_possible_level(rules),
    )  # fmt: skip
    if reference is not None and RUNNING.isdisjoint(plan.modes):
        raise ValueError(f"reference is compared with outputs, and modes={', '.join(plan.modes)} run no function")
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
    """Check as `check` does, with the options ``pallas_chips``, ``pallas_modes`` and ``rules`` (``error`` if unset) in
    place of arguments that are None.

    Only these four keywords are taken, all others go to ``fn``. To keep tests quick, TPU interpretation is left out if
    the grids of all calls have more than 256 points together, or their arrays more than 64 MiB, unless ``modes`` names
    it.
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
