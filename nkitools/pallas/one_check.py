"""One check of a function with Pallas calls: mode by mode, with one list of findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from nkitools.comparison.rule import Rule
from nkitools.pallas import jax_internals, launch
from nkitools.pallas.calls import Call, array_bytes, as_seen, compiling_for, points
from nkitools.pallas.check_modes import Plan
from nkitools.pallas.chips import CHIPS, Chip, Part
from nkitools.pallas.compiled import Compiled, compile_calls, prepared
from nkitools.pallas.compiler import why_not
from nkitools.pallas.findings import captured_constants, in_order, old_block_spec
from nkitools.pallas.imports import jax_module, refuse
from nkitools.pallas.index_map_repairs import Repair, repair_of
from nkitools.pallas.interpret import interpret_mode
from nkitools.pallas.interpreter_limits import (
    REMOTE_COPIES,
    Meshes,
    gpu_language,
    lacking,
    limit,
    moves_between_memories,
    whole_tracebacks,
)
from nkitools.pallas.jax_types import Argument
from nkitools.pallas.lowering import remote_copy
from nkitools.pallas.observed_run import unwatched, watched_run
from nkitools.pallas.reported_races import gpu_mode, reporting_races
from nkitools.pallas.time_estimate import Estimate, estimate_of, nothing_to_estimate
from nkitools.pallas.unlike_interpretation import differing
from nkitools.pallas.unlike_reference import Returned, judged, pairs, unlike
from nkitools.pallas.whole_function import calls_to_compile
from nkitools.record.run import Run
from nkitools.record.run_session import Findings
from nkitools.record.trace import Trace
from nkitools.rules.finding import Finding, is_raised

# Beyond these a test's run_kernel interprets as a TPU only on request: so many grid points take a few seconds.
_QUICK_POINTS = 256
_QUICK_BYTES = 64 << 20
_OF_TPU = ("tpu_interpret", "lower", "aot")  # the modes for kernels of TPUs alone


@dataclass(eq=False, repr=False)
class CheckedRun(Run):
    """The result of checking a function with Pallas calls.

    ``compiled``: the compiler's answers for its Pallas calls, by the chip's name; empty without the mode ``aot``.
    ``left_out``: the reasons by the mode that did not run, or not for all chips and calls; ``estimates`` is a key too.
    ``traces``: inside `nkitools.watching()` the events of each Pallas call in TPU interpretation. The other fields are
    functions that nkitools itself calls: ``estimating`` makes ``estimate()``, ``unlike(outputs, rule)`` returns PL211
    for outputs that are expected later, ``called()`` returns the checked function and its arguments.
    """

    compiled: dict[str, Compiled] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    estimating: Callable[[], Estimate] = field(default_factory=lambda: nothing_to_estimate, repr=False)
    traces: list[Trace] = field(default_factory=list, repr=False)
    unlike: Callable[[Any, Rule], list[Finding]] | None = field(default=None, repr=False)
    called: Callable[[], tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] | None = field(
        default=None, repr=False
    )

    @cached_property
    def _estimate(self) -> Estimate:
        found = self.estimating()
        self.settings["estimates"] = [each.as_plain() for each in found.kernels]
        return found

    def estimate(self) -> Estimate:  # type: ignore[override]  # of Pallas calls, where a run of NKI has instructions
        """Return how long the Pallas calls take on each chip of the check, as `nkitools.pallas.estimate` does.

        The first call compiles the Pallas calls once more, and adds the times to the HTML page of the run; later calls
        return the same object. ``ValueError`` if the check found no Pallas call of a TPU, or ran without the modes
        ``lower`` and ``aot``; ``NotModelled`` (NK607) without libtpu.
        """
        return self._estimate


@dataclass(eq=False)
class Check:
    """One check while it is made."""

    fn: Callable[..., Any]  # to be traced
    running: Callable[..., Any]  # the same function on its devices
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    plan: Plan
    run: CheckedRun
    findings: Findings
    calls: dict[str, list[Call]] = field(default_factory=dict)  # by chip
    untraceable: Exception | None = None
    is_traceable: bool = False
    for_gpu: str = ""  # why no mode of a TPU has anything to say
    meshes: Meshes = field(default_factory=Meshes)
    returned: list[Returned] = field(default_factory=list)  # by the calls of the watched run

    def go(self) -> None:
        """Run mode by mode, the quick ones first, so that under ``rules="error"`` a mistake is reported soon."""
        __tracebackhide__ = True
        if not self._trace():
            return
        self._lower_and_compile(self.calls)
        seen = self._interpret()
        self.run.unlike, self.run.called = self._unlike, lambda: (self.fn, self.args, self.kwargs)
        self._compare()
        if self.untraceable is not None and seen:
            self.calls = {chip.name: as_seen(seen) for chip in self.plan.chips}
            self._lower_and_compile(self.calls)
        self._explain_gaps()
        self._estimate()

    # ------------------------------------------------------------------ tracing, lowering, compiling

    def _trace(self) -> bool:
        """Find the Pallas calls by tracing; return False if a mistake leaves nothing to run."""
        without: dict[Chip, Part] = {}
        for chip in self.plan.chips:
            try:
                self._trace_for(chip)
            except Exception as error:
                part = lacking(error)
                if part is None:
                    return self._untraceable(error)
                without[chip] = part
        return self._without(without) if without else True

    def _trace_for(self, chip: Chip) -> None:
        with compiling_for(chip, self.plan.axes), whole_tracebacks():
            traced = jax_module().make_jaxpr(lambda: self.fn(*self.args, **self.kwargs))()
        # JAX compiles no interpreted kernel beside a copy to or from host memory.
        self.meshes, self.is_traceable = Meshes.of(traced), not moves_between_memories(traced)
        language = gpu_language(traced)
        if language:
            self.for_gpu = f"the kernel is for GPUs ({language}); a TPU has no use for it"
            self.run.left_out.update(dict.fromkeys(set(self.plan.modes) & set(_OF_TPU), self.for_gpu))
        elif self._compiles:
            self.calls[chip.name] = calls_to_compile(traced)

    @property
    def _compiles(self) -> bool:
        return bool({"lower", "aot"} & set(self.plan.modes))

    def _untraceable(self, error: Exception) -> bool:
        """Note why the function cannot be traced as a whole; return False if that is a mistake in its kernel."""
        if not self._compiles:  # the modes that run the function meet the error themselves
            return True
        mistake = captured_constants(error) or old_block_spec(error)
        if mistake is not None:
            self._tell([mistake], error)
            return False
        self.untraceable = error
        return True

    def _without(self, without: dict[Chip, Part]) -> bool:
        """Keep the chips that have the parts which the kernel needs, or take another chip that has; note the others."""
        chips = tuple(chip for chip in self.plan.chips if chip not in without)
        other = next(iter(without.values())).instead
        instead = "" if chips else f"; {other} was taken in their place"
        self.plan = replace(self.plan, chips=chips or (CHIPS[other],))
        for chip, part in without.items():
            self.run.compiled[chip.name] = Compiled(chip.name, left_out=f"{chip.name} has no {part.name}{instead}")
        return bool(chips) or self._trace()

    def _lower_and_compile(self, calls: dict[str, list[Call]]) -> None:
        __tracebackhide__ = True
        found: list[Finding] = []
        for chip in self.plan.chips:
            prepared_calls = [prepared(call, chip) for call in calls.get(chip.name, ())]
            if "aot" in self.plan.modes and not self.for_gpu:
                self.run.compiled[chip.name] = compile_calls(prepared_calls, chip, self.plan)
            found += [finding for each in prepared_calls for finding in each.findings(self.plan.modes)]
        self._tell(in_order(found))

    # ------------------------------------------------------------------ running

    def _interpret(self) -> list[Call]:
        """Run the function as the modes say; the calls that TPU interpretation came by."""
        __tracebackhide__ = True
        run, modes = self.run, self.plan.modes
        outputs: Any = None
        calls: list[Call] = []
        watched = "tpu_interpret" in modes and not self._no_watch() and not self._too_long()
        if watched:
            known = next(iter(self.calls.values()), [])
            calls, outputs, self.returned = watched_run(
                self.running, self.args, self.kwargs, self.plan, run, self._tell, known, is_traceable=self.is_traceable
            )
        heard = watched and "tpu_interpret" not in run.left_out
        if "interpret" in modes and not self._not_plainly(outputs):
            as_on_tpu = outputs
            outputs = self._interpreted(outputs, self.plan.chips[0], calls, silently=heard)
            self._compare_interpretations(as_on_tpu, outputs, calls)
        elif not watched and self.untraceable is not None:
            raise self.untraceable
        if "device" in modes and launch.sees_tpu(run.left_out):
            outputs = launch.device_outputs(self.fn, self.args, self.kwargs)
        elif "device" in run.left_out and outputs is None and is_raised("error", self.plan.rules):
            remedy = 'Run this on a TPU, or name a mode that interprets too: modes="interpret,device".'
            refuse(f"nothing has run `{run.kernel}`: {run.left_out['device']}", remedy)
        run.outputs = launch.as_given(outputs, (self.args, self.kwargs))
        return calls

    def _compare(self) -> None:
        """Report outputs that differ from the reference, unless an error of the run explains them."""
        __tracebackhide__ = True
        expected, outputs = self.plan.reference, self.run.outputs
        explaining = (each for each in self.run.findings if each.severity == "error" and each.rule != "PL213")
        known = any(each.rule.startswith("PL2") for each in explaining)
        if expected is None or outputs is None or known:
            return
        if callable(expected):
            expected = expected(*self.args, **self.kwargs)
        self._tell(self._unlike(expected, self.plan.rule))

    def _unlike(self, expected: Argument, rule: Rule) -> list[Finding]:
        """Return a finding for each output that differs from ``expected``, with the change that mends it."""

        def is_right(values: Any) -> bool:
            return not any(unlike(*pair, rule).any() for pair in pairs(values, expected))

        def repair(call: Call) -> Repair | None:
            return repair_of(call, lambda: self.fn(*self.args, **self.kwargs), self.plan.chips[0], is_right)

        return judged(self.run.outputs, expected, self.returned, rule, repair)

    def _compare_interpretations(self, as_on_tpu: Argument, plain: Argument, calls: list[Call]) -> None:
        """Report outputs that the two interpretations compute otherwise, unless another finding explains it."""
        __tracebackhide__ = True
        known = any(each.rule.startswith("PL2") for each in (*self.run.findings, *self.run.allowed))
        if known or as_on_tpu is None or "interpret" in self.run.left_out or self._mode() is not True:
            return

        def again() -> Any:
            return launch.interpreted_outputs(
                self.running, self.args, self.kwargs, self.run, self.plan.chips[0], True, silently=True
            )

        self._tell(differing(as_on_tpu, plain, again, calls, self.returned))

    def _not_plainly(self, watched: Argument) -> bool:
        """Return whether plain interpretation would compute something else than a TPU."""
        reason = self.meshes.not_interpreted or (self.meshes.not_plainly if watched is not None else "")
        if reason:
            self.run.left_out["interpret"] = reason
        return bool(reason)

    def _interpreted(self, watched: Argument, chip: Chip, calls: list[Call], *, silently: bool) -> Any:
        """Return the outputs of plain interpretation, or those of the watched run if the interpreter cannot run the
        function.
        """
        __tracebackhide__ = True
        run, mode = self.run, self._mode()
        try:
            with whole_tracebacks(), reporting_races(mode) as races:
                outputs = launch.interpreted_outputs(
                    self.running, self.args, self.kwargs, run, chip, mode, silently=silently
                )
            self._tell(races.values())
            return outputs
        except Exception as error:
            no_outputs = watched is None and is_raised("error", self.plan.rules)
            reason = limit(error)
            if no_outputs or not reason:
                raise
            run.left_out["interpret"] = REMOTE_COPIES if any(map(remote_copy, calls)) else reason
            return watched

    def _mode(self) -> object:
        """Return the mode for plain interpretation: the function's own parameters, if it has any."""
        own = interpret_mode(self.fn, self.args, self.kwargs)
        of_gpu = gpu_mode() if own is True and "Mosaic" in self.for_gpu else None
        return own if of_gpu is None else of_gpu

    def _no_watch(self) -> bool:
        moved = jax_internals.moved(jax_internals.WATCH)
        if self.for_gpu:
            return True
        if self.meshes.not_interpreted:
            reason = self.run.left_out["tpu_interpret"] = self.meshes.not_interpreted
            self._tell([unwatched(reason, severity="hint")])
            return True
        if moved:
            reason = self.run.left_out["tpu_interpret"] = f"JAX has something else inside than nkitools knows, {moved}"
            self._tell([unwatched(reason)])
        return bool(moved)

    def _too_long(self) -> bool:
        """Return whether TPU interpretation would keep a test waiting: a block takes a millisecond or more."""
        if not self.plan.quick:
            return False
        calls = next(iter(self.calls.values()), [])
        steps, size = sum(points(call) for call in calls), sum(array_bytes(call) for call in calls)
        why = f"{steps} grid points" if steps > _QUICK_POINTS else f"{size >> 20} MiB" if size > _QUICK_BYTES else ""
        if why:
            self.run.left_out["tpu_interpret"] = (
                f'{why} would take long; modes="tpu_interpret" asks for it all the same'
            )
        return bool(why)

    def _explain_gaps(self) -> None:
        if self.untraceable is not None and not any(self.calls.values()):
            reason = f"the function cannot be traced as a whole: {type(self.untraceable).__name__}"
            for mode in ("lower", "aot"):
                if mode in self.plan.modes:
                    self.run.left_out.setdefault(mode, reason)
        for compiled in self.run.compiled.values():
            if compiled.left_out:
                self.run.left_out.setdefault("aot", compiled.left_out)

    def _estimate(self) -> None:
        is_traced = any(self.calls.values())
        if is_traced:
            self.run.estimating = partial(estimate_of, self.run.kernel, self.calls, self.plan.timeout)
        if self.plan.estimates:
            missing = why_not() or ("" if is_traced else "no Pallas call was traced for a TPU")
            if missing:
                self.run.left_out["estimates"] = missing
            else:
                self.run.estimate()

    # ------------------------------------------------------------------ telling

    def _tell(self, findings: Iterable[Finding], cause: BaseException | None = None) -> None:
        """Keep findings, one for each cause; under ``rules="error"`` the first error ends the check."""
        __tracebackhide__ = True
        known = {(each.rule, each.file, each.line) for each in self.run.findings}
        self.findings.add([each for each in findings if (each.rule, each.file, each.line) not in known], cause)
