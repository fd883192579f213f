"""The mode ``tpu_interpret``: a watched run, and a second one to see if results depend on undefined memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nkitools.pallas import launch, source_places
from nkitools.pallas.calls import Call, compiling_for
from nkitools.pallas.check_modes import Plan
from nkitools.pallas.findings import in_order
from nkitools.pallas.imports import finding as not_possible
from nkitools.pallas.imports import jax_module
from nkitools.pallas.interpret import interpreted
from nkitools.pallas.interpreter_events import Otherwise, Watch
from nkitools.pallas.interpreter_limits import limit, whole_tracebacks
from nkitools.pallas.jax_types import Argument
from nkitools.pallas.kernel_checks import reporting_checks
from nkitools.pallas.lowering import first_sentences, rule_of
from nkitools.pallas.tpu_interpret import parameters, watching
from nkitools.pallas.unlike_reference import Returned
from nkitools.record.prints.print_sequence import Prints
from nkitools.record.watch.watching import watched_bytes
from nkitools.rules.finding import Finding

Tell = Callable[[Iterable[Finding]], None]


class Watched(NamedTuple):
    """The Pallas calls of a watched run, what the function returned, and the outputs of each call."""

    calls: list[Call]
    outputs: Any
    returned: list[Returned]


@dataclass(eq=False)
class _Watching:
    """A function that is run watched, perhaps repeatedly.

    One that can be traced as a whole is compiled in the first run: the next one then takes a tenth of its time.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    plan: Plan
    is_traceable: bool
    _programs: dict[int, Callable[[], Any]] = field(default_factory=dict)  # by the number of cores

    def _call(self, cores: int) -> Any:
        if not self.is_traceable or self.plan.axes:
            return launch.finished(self.fn, self.args, self.kwargs)
        if cores not in self._programs:
            self._programs[cores] = self._compiled()
        return launch.finished(self._programs[cores], (), {})

    def _compiled(self) -> Callable[[], Any]:
        """Return the function without arguments; its arrays are inputs of the compiled program, not constants."""
        jax, tree = jax_module(), jax_module().tree_util
        eval_jaxpr = jax_module("jax.core").eval_jaxpr
        traced, shapes = jax.make_jaxpr(lambda: self.fn(*self.args, **self.kwargs), return_shape=True)()
        form = tree.tree_structure(shapes)
        program = jax.jit(lambda arrays: eval_jaxpr(traced.jaxpr, arrays))
        return lambda: tree.tree_unflatten(form, program(traced.consts))

    def run(
        self,
        prints: Prints | None = None,
        *,
        cores: int = 1,
        known: Iterable[Call] = (),
        otherwise: Otherwise | None = None,
        traced_bytes: int = 0,
    ) -> tuple[Watch, Any, Exception | None]:
        """Run the function; without ``prints`` nothing is printed, without ``traced_bytes`` no trace is kept."""
        mode = parameters(cores=cores, seed=self.plan.seed)
        outputs: Any = None
        failure: Exception | None = None
        with watching(known, otherwise, traced_bytes=traced_bytes) as watch, reporting_checks():
            try:
                with compiling_for(self.plan.chips[0]), interpreted(mode), launch.listening(prints), whole_tracebacks():
                    outputs = self._call(cores)
            except Exception as error:
                failure = error
            else:
                watch.finish()
        return watch, outputs, failure


def watched_run(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    plan: Plan,
    run: Any,
    tell: Tell,
    known: Iterable[Call] = (),
    *,
    is_traceable: bool = False,
) -> Watched:
    """Run ``fn`` watched and report its findings; return the interpreted Pallas calls and the outputs.

    If JAX's TPU interpretation does not accept the function, ``run.left_out`` has the reason, and the outputs are None.
    ``is_traceable``: the function can be compiled as a whole. The function's own exceptions pass through.
    """
    __tracebackhide__ = True
    prints = Prints()
    watching_it = _Watching(fn, args, kwargs, plan, is_traceable)
    watch, outputs, error = watching_it.run(prints, known=known, traced_bytes=watched_bytes())
    run.traces = [kernel.traced.trace for kernel in watch.kernels if kernel.traced is not None and kernel.call]
    certain = dict(watch.certain.findings)
    calls = _calls(watch)
    if error is not None:
        refused = _refused(error)
        if refused is None:
            reason = limit(error)
            if not reason:
                raise error
            run.left_out["tpu_interpret"] = reason
            certain[("NK607", None)] = unwatched(reason, severity="hint")
            tell(in_order(certain.values()))
            return Watched(calls, None, [])
        certain[(refused.rule, None, refused.file, refused.line)] = refused
        run.left_out["tpu_interpret"] = "it does not take the kernel (see the findings)"
    run.prints.extend(prints)
    if error is None and watch.suspected.findings:
        certain |= _confirmed(watching_it, watch, outputs)
    elif error is not None:
        certain |= {key: found for key, found in watch.suspected.findings.items() if found.rule == "PL201"}
    hangs = any(rule == "PL208" for rule, *_ in certain)  # on two cores the wait would not end
    if plan.cores > 1 and error is None and not hangs:
        on_two, _, _ = watching_it.run(cores=plan.cores, known=known)
        certain |= _of_others(on_two.certain.findings, certain)
    tell(in_order(one_for_each_cause(certain, watch.cleared)))
    returned = [each for kernel in watch.kernels for each in kernel.returned.values()]
    return Watched(calls, outputs, returned)


def unwatched(reason: str, severity: str = "warning") -> Finding:
    """Return the finding that a function was not interpreted as on a TPU."""
    return not_possible(
        f"TPU interpretation was left out, so that PL201 to PL210 were not looked for: {reason}",
        "The other modes have been gone through. Leave the mode out of modes=... if the function cannot have it.",
        severity=severity,
    )


def _of_others(found: dict[Any, Finding], certain: dict[Any, Finding]) -> dict[Any, Finding]:
    """Return the findings about operands that have no certain finding of the same rule or cause.

    One core's leftovers are missing on another core: PL206 of one core is PL207 of the other.
    """
    known = {(rule, about) for rule, about, *_ in certain}
    known |= {("PL207", about) for rule, about in known if rule == "PL206"}
    known |= {("PL206", about) for rule, about in known if rule == "PL207"}
    return {key: finding for key, finding in found.items() if key[:2] not in known}


def _calls(watch: Watch) -> list[Call]:
    found: dict[str, Call] = {}
    for kernel in watch.kernels:
        if kernel.call is not None:
            found.setdefault(kernel.call.key, kernel.call)
    return list(found.values())


def _refused(error: Exception) -> Finding | None:
    """Return a finding for an error of TPU interpretation about a kernel that no TPU could run either."""
    text = str(error)
    if "cannot be referenced directly" in text:
        message = f"the kernel reads or writes HBM as if it were vector memory: {first_sentences(text)}"
        return source_places.of_error(error).finding(rule_of(text), message)
    return None


def _confirmed(watching_it: _Watching, watch: Watch, first: Argument) -> dict[Any, Finding]:
    """Return the suspicions if the results change with the values in undefined memory.

    If they do not change, reads outside of a buffer become warnings, and hints for buffers of scalars: the TPU reads
    another scalar there and goes on.
    """
    suspected = watch.suspected.findings
    outside = {key for key in suspected if key[0] == "PL201"}
    others = [key for key in suspected if key not in outside]

    def matters(otherwise: Otherwise) -> bool:
        _, second, error = watching_it.run(known=watch.known.values(), otherwise=otherwise)
        return error is not None or _differ(first, second)

    kept = {}
    used = bool(outside)
    if others:
        # What is read outside is other in this run too: where nothing differs, neither is used.
        used = matters(Otherwise(watch, others))
        kept = {key: suspected[key] for key in others if used}
    if outside:
        used = used and matters(Otherwise(watch))
        kept |= {key: suspected[key] if used else _unused(suspected[key], key[1], watch) for key in outside}
    return kept


def _unused(finding: Finding, about: Any, watch: Watch) -> Finding:
    scalars = (
        each.rules.about(buffer.name) for each in watch.kernels for buffer in each.shadows.values() if buffer.is_scalar
    )
    severity = "hint" if about in scalars else "warning"
    return replace(finding, severity=severity, message=f"{finding.message}; no result depends on what is read")


def _differ(first: Argument, second: Argument) -> bool:
    leaves = jax_module().tree_util.tree_leaves
    pairs = zip(leaves(first), leaves(second), strict=True)
    return any(np.asarray(a).tobytes() != np.asarray(b).tobytes() for a, b in pairs)


# Rules whose findings only follow from another rule's, where both were broken at one operand of a kernel.
_CAUSES = {
    "PL202": ("PL203", "PL206"),
    "PL203": ("PL204", "PL206", "PL209", "PL210"),
    "PL205": ("PL201", "PL204", "PL210"),
    "PL207": ("PL201", "PL202", "PL203", "PL204", "PL209", "PL210"),
    "PL210": ("PL204", "PL209"),
}


def one_for_each_cause(certain: dict[Any, Finding], cleared: Container[Any] = ()) -> list[Finding]:
    """Return findings without those that follow from another one of the same operand; keys: rule, operand, place.

    A buffer that is ``cleared`` at some points was meant to carry values (PL206); one that never is, was not. Reads
    outside of an operand and blocks that are visited again make other results undefined, and behind a wait that never
    ends (PL208) memory is read too early and copies are left: findings about these are folded or dropped.
    """
    known = {(rule, about) for rule, about, *_ in certain}
    hangs = {about[0] for rule, about in known if rule == "PL208" and about}
    roots = {
        (rule, key[1][0]): key
        for key, found in reversed(certain.items())
        if found.rule in ("PL201", "PL202") and found.severity == "error" and key[1]
        for rule in ("PL207", "PL205")[: 2 if found.rule == "PL201" else 1]
    }
    kept: dict[Any, Finding] = {}
    echoes: dict[Any, list[str]] = {}
    for key, finding in certain.items():
        rule, about = key[:2]
        carries = {"PL206": "PL207", "PL207": "PL206"}.get(rule, "")
        if any((cause, about) in known for cause in _CAUSES.get(rule, ())):
            continue
        if (carries, about) in known and (about in cleared) is (carries == "PL206"):
            continue
        first = about[0] if about else None  # what the compiler refuses is about no operand
        if rule in ("PL204", "PL207") and first in hangs:
            continue
        if (rule, first) in roots:
            echoes.setdefault(roots[rule, first], []).append(f"{rule} of `{about[1]}`")
        else:
            kept[key] = finding
    for key, texts in echoes.items():
        kept[key] = replace(
            kept[key], message=f"{kept[key].message} (behind it, perhaps because of it: {', '.join(texts)})"
        )
    return list(kept.values())
