"""One operator: called with arrays, on simulated cores."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from nkitools.customop.arguments import Arguments, Passed, take
from nkitools.customop.build import Remark
from nkitools.customop.compiled_operator import DEFAULT_MEMORY, DEFAULT_TIMEOUT, CompiledOperator, Settings
from nkitools.customop.event_context import Message
from nkitools.customop.events import finding_at
from nkitools.customop.operator_call import OperatorCall
from nkitools.customop.run import OperatorRun
from nkitools.customop.sanitizers import merged, rerun
from nkitools.customop.symbols import Place
from nkitools.facts.generations import chips_with
from nkitools.record.prints.print_sequence import as_prints
from nkitools.record.run_session import session
from nkitools.rules.finding import Finding

_LETTERS = {"f": "float", "n": "an integer type other than int64_t, or bool", "?": "a type that cannot be passed"}
_PASSED = "Take torch::Tensor, torch::Scalar or double, and convert a number in the kernel."


class Operator(CompiledOperator):
    """A custom operator on this host. Call it for its result, or `run` it for findings, prints and counters."""

    def __call__(self, *arrays: Passed) -> Any:
        """Return the operator's result; NumPy arrays in, NumPy out, torch tensors in, torch out.

        Raises `nkitools.KernelError` for the first error that the rules find.
        """
        __tracebackhide__ = True
        return self.run(*arrays, rules="error").outputs

    def run(
        self,
        *arrays: Passed,
        timeout: float = DEFAULT_TIMEOUT,
        rules: str = "report",
        order: str | int | Sequence[int] = "forward",
        threads: bool = False,
        isolation: str = "process",
        memory_limit: int = DEFAULT_MEMORY,
        debug: bool = False,
    ) -> OperatorRun:
        """Run the operator and return what happened: outputs, findings, prints, and what each core did (``cores``).

        ``arrays``: one for each Tensor of the kernel, numbers for its scalars. ``timeout``: seconds after which a
        kernel that is still running is ended (CO103); 0 for none. ``rules``: as of `nkitools.simulate`, but ``report``,
        which collects the findings, by default. ``order``: the order of the eight cores of a multicore library, which
        run one after the other: ``forward``, ``reverse``, the seed of a random order, or a list of all eight.
        ``threads``: they run side by side instead. ``isolation="none"`` runs in this process, without timeout and
        limits: faster for small calls, but a crash ends this process; ``process``: in a process of the library.
        ``memory_limit``: bytes that the call may have; 0 for no limit.
        ``debug``: run again under AddressSanitizer and UndefinedBehaviorSanitizer, whose reports become findings.

        Raises `nkitools.KernelError` for arguments that the operator does not take, whatever ``rules`` says; ValueError
        for another ``rules``, ``order`` or ``isolation``, and for a negative ``timeout`` or ``memory_limit``.
        """
        __tracebackhide__ = True
        settings = Settings(
            timeout=timeout,
            rules=rules,
            order=order,
            threads=threads,
            isolation=isolation,
            memory_limit=memory_limit,
            debug=debug,
        )
        cores = settings.cores(self.library.multicore)
        arguments = take(self.name, self.signature, arrays, self.parameters)
        run = OperatorRun(kernel=self.name, target="GpSimd cores on this host", chip=chips_with("custom_operators")[0])
        with session(run, rules) as findings:
            findings.add(self._found(run, arguments, settings, cores))
        return run

    def _found(self, run: OperatorRun, arguments: Arguments, settings: Settings, cores: list[int]) -> list[Finding]:
        """Run the operator, keep in ``run`` what it gave, and return the findings."""
        __tracebackhide__ = True
        began = perf_counter()
        findings = self._standing()
        if self.signature[:1] != "t" or "?" in self.signature:
            return findings
        judged = OperatorCall(self, arguments, settings, cores).made()
        run.outputs, run.prints, run.cores = judged.outputs, as_prints(judged.prints), judged.cores
        run.traces = judged.traces
        run.seconds = perf_counter() - began
        findings += judged.findings
        if settings.debug:
            findings = merged(findings, rerun(self, arguments, settings, cores))
        return findings

    def _parameters_of(self, letter: str) -> str:
        """Return the parameters whose types have a letter, in words."""
        names = [f"`{name}`" for name, each in zip(self.parameters, self.signature[1:], strict=False) if each == letter]
        return f"the parameter{'s' * (len(names) > 1)} {', '.join(names)}" if names else "a parameter"

    def _remarks(self) -> list[Remark]:
        """Return the compiler's remarks on names, and those on variables of the operator's own files and of headers."""
        remarks = self.library.built.remarks
        own = {self.kernel_place().file, self.shape_place().file} if remarks else set()
        return [each for each in remarks if each.rule == "CO112" or each.file in own or ".h" in each.file[-4:]]

    def _standing(self) -> list[Finding]:
        """Return the findings that need no run: those of the signature and of the functions that the sources use."""
        messages: list[Message] = []
        for letter in dict.fromkeys(self.signature[1:]):
            if letter in _LETTERS:
                which = self._parameters_of(letter)
                text = f"kernel of operator `{self.name}` has {which} of {_LETTERS[letter]}"
                messages.append(Message("CO112", text, _PASSED))
            elif letter == "i":
                why = "the guide lists that type, and then says that double is the only number that can be passed"
                text = f"kernel of operator `{self.name}` has a parameter of int64_t: {why}"
                messages.append(Message("CO112", text, "Take a double and convert it in the kernel.", "warning"))
        if self.signature[:1] != "t":
            messages.append(Message("CO112", f"kernel of operator `{self.name}` does not return a torch::Tensor"))
        place = self.kernel_place() if messages else None
        findings = [finding_at(place, each) for each in messages if place is not None]
        if self.shape_signature != self.signature:
            text = f"the shape function of operator `{self.name}` does not have the parameters of its kernel"
            findings.append(
                finding_at(self.shape_place(), Message("CO107", text, "Give both the same parameter types."))
            )
        for remark in self._remarks():
            at = Place(remark.file, remark.line)
            findings.append(finding_at(at, Message(remark.rule, remark.message, "", "warning"), column=remark.column))
        return findings
