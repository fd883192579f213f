"""The answers of a chip's compiler to Pallas calls, beside the predictions of the models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from nkitools.facts.kept import Kept
from nkitools.pallas.calls import Call
from nkitools.pallas.check_modes import Plan
from nkitools.pallas.chips import Chip
from nkitools.pallas.compiler import Crashed, TimedOut, compiler, why_not
from nkitools.pallas.lowering import Program, first_sentences, lower, place_in, remedy_of, rule_of
from nkitools.pallas.measuring import count_bundles, least_vmem
from nkitools.pallas.static import block_bytes, scratch_bytes, static_findings, vmem_limit
from nkitools.pallas.whole_function import WholeFunction
from nkitools.rules.finding import Finding

# Where the compiler takes a kernel, these were said by a model of it that is wrong there.
_MODELLED = ("PL102", "PL103", "PL105")


@dataclass(frozen=True)
class CompiledKernel:
    """The compiler's answer to one Pallas call.

    ``name``: the kernel's. ``accepted``: False if the compiler or JAX's lowering refuses the call, if the compiler
    crashes, or for PL302; None without a compiler, or if it took too long. ``error``: why it is False, or what
    took too long; '' otherwise. ``seconds``: the duration of the compilation. ``code_bytes``: the size of the compiled
    program; 0 if there is none. ``vmem_bytes``: the vector memory in bytes of the blocks, each once per buffer, and of
    the scratch. ``vmem_limit``: its limit in bytes. ``vmem_measured``: the least limit in bytes with which the call
    still compiles. ``bundles``: the number of instruction bundles; ``spills``: the number of those that spill registers
    to vector memory. The last three are None if they were not asked for, or could not be measured.
    """

    name: str
    accepted: bool | None
    vmem_bytes: int
    vmem_limit: int
    seconds: float = 0.0
    code_bytes: int = 0
    error: str = ""
    vmem_measured: int | None = None
    bundles: int | None = None
    spills: int | None = None


@dataclass(frozen=True)
class Compiled:
    """The compiler's answers to a function's Pallas calls on a chip, equal calls once.

    ``left_out``: why the compiler has no answer, or has none to one of the calls; '' if it has all.
    """

    chip: str
    kernels: tuple[CompiledKernel, ...] = ()
    left_out: str = ""

    @property
    def accepted(self) -> bool | None:
        """Return True if all calls compile, False if one of them has ``accepted`` False (see `CompiledKernel`).

        Otherwise None without a compiler, without a call, or if a call took too long.
        """
        verdicts = [kernel.accepted for kernel in self.kernels]
        return False if False in verdicts else None if None in verdicts or not verdicts else True

    @property
    def seconds(self) -> float:
        """Return the sum of the calls' compilation times in seconds; a call without an answer counts 0.

        A call that an earlier check in this process has compiled has the time of that compilation.
        """
        return sum(kernel.seconds for kernel in self.kernels)

    @property
    def vmem_bytes(self) -> int:
        """Return the bytes of vector memory of the call that takes the most: each block once per buffer, and the
        scratch. 0 without a call.
        """
        return max((kernel.vmem_bytes for kernel in self.kernels), default=0)

    @property
    def vmem_measured(self) -> int | None:
        """Return the least limit in bytes, to 4 KiB, with which the call that needs the most still compiles.

        None if it was not measured for any call (``measure_vmem``).
        """
        return max((each.vmem_measured for each in self.kernels if each.vmem_measured is not None), default=None)

    @property
    def bundles(self) -> int | None:
        """Return the sum of the instruction bundles of the calls that were counted; None if none was (``bundles``)."""
        return _sum(kernel.bundles for kernel in self.kernels)

    @property
    def spills(self) -> int | None:
        """Return the number of bundles that spill registers to vector memory, of the calls that were counted; None if
        none was (``bundles``).
        """
        return _sum(kernel.spills for kernel in self.kernels)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@dataclass
class Prepared:
    """A lowered call, ready to be compiled for a chip, with its findings so far."""

    call: Call
    chip: Chip
    static: list[Finding]
    lowered: Program | Finding
    compiled: list[Finding] = field(default_factory=list)
    accepted: bool | None = None
    kernel: CompiledKernel | None = None

    def findings(self, modes: Sequence[str]) -> list[Finding]:
        """Return one finding a cause: the compiler's before the models', and these before JAX's lowering's."""
        findings = [each for each in self.static if not (self.accepted and each.rule in _MODELLED)]
        unlowered = {each.line for each in findings if each.rule == "PL104"}
        findings = [each for each in findings if each.rule != "PL105" or each.line not in unlowered]
        later = [self.lowered] if isinstance(self.lowered, Finding) and "lower" in modes else []
        for finding in (*later, *self.compiled):
            errors = [each for each in findings if each.severity == "error"]
            if not any(each.rule == finding.rule or each.line == finding.line for each in errors):
                findings = [each for each in findings if each.rule != finding.rule]
                findings.append(finding)
        return findings


_prepared = Kept[tuple[str, str], Prepared](
    "Pallas calls that were looked at and lowered", 256, "tests run one function many times, with other values"
)


def prepared(call: Call, chip: Chip) -> Prepared:
    """Check a call and lower it; equal calls are done once."""
    key = (call.key, chip.name)
    if key not in _prepared:
        _prepared[key] = Prepared(call, chip, static_findings(call, chip), lower(call, chip))
    return _prepared[key]


def compile_calls(calls: Sequence[Prepared], chip: Chip, plan: Plan) -> Compiled:
    """Compile calls for ``chip``, and note refusals with the call."""
    reason = why_not()
    kernels = tuple(_compiled_once(each, plan, reason) for each in calls)
    late = [each for each in kernels if each.accepted is None and each.error]
    if late:
        reason = f"kernel `{late[0].name}` on {chip.name}: {late[0].error}; timeout= gives it more time"
    return Compiled(chip.name, kernels, reason)


def _compiled_once(each: Prepared, plan: Plan, reason: str) -> CompiledKernel:
    if reason:
        return _compile(each, plan, reason)
    if each.kernel is None or each.kernel.accepted is None:
        each.kernel = _compile(each, plan, reason)
    if each.kernel.accepted and isinstance(each.lowered, Program):
        if plan.measure_vmem and each.kernel.vmem_measured is None and not isinstance(each.call, WholeFunction):
            with suppress(Crashed):  # what cannot be measured, or not in time, stays None
                least = least_vmem(each.call, each.chip, plan.timeout, each.kernel.vmem_bytes)
                each.kernel = replace(each.kernel, vmem_measured=least)
        if plan.bundles and each.kernel.bundles is None:
            with suppress(Crashed):
                counted = count_bundles(each.lowered, each.chip, plan.timeout)
                if counted is not None:
                    each.kernel = replace(each.kernel, bundles=counted.total, spills=counted.spilling)
    return each.kernel


def _compile(each: Prepared, plan: Plan, reason: str) -> CompiledKernel:
    call, chip = each.call, each.chip
    sizes = (block_bytes(call) + scratch_bytes(call), vmem_limit(call, chip))
    if reason or not isinstance(each.lowered, Program) or any(found.rule == "PL302" for found in each.static):
        said = "" if reason else "not lowered" if isinstance(each.lowered, Finding) else "its prints abort the compiler"
        return CompiledKernel(call.name, None if reason else False, *sizes, error=said)
    try:
        answer = compiler().compile(each.lowered, chip, plan.timeout)
    except TimedOut as late:
        return CompiledKernel(call.name, None, *sizes, error=str(late))
    except Crashed as crash:
        each.accepted = False
        message = f"kernel `{call.name}` on {chip.name}: {crash}"
        each.compiled.append(call.kernel_place.finding(rule_of(str(crash)), message))
        return CompiledKernel(call.name, False, *sizes, error=str(crash))
    each.accepted = answer["accepted"]
    if answer["accepted"]:
        return CompiledKernel(call.name, True, *sizes, answer["seconds"], answer["code_bytes"])
    each.compiled.append(_refusal(call, chip, answer["error"]))
    return CompiledKernel(call.name, answer["accepted"], *sizes, answer.get("seconds", 0.0), error=answer["error"])


def _refusal(call: Call, chip: Chip, text: str) -> Finding:
    rule = rule_of(text)
    place = call.place if rule == "PL103" else place_in(text, call.kernel_place)
    message = f"the compiler does not take kernel `{call.name}` on {chip.name}: {first_sentences(text)}"
    return place.finding(rule, message, remedy=remedy_of(rule, text))
