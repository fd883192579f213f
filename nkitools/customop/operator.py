"""One operator: called with arrays, on simulated cores."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from nkitools.chip.generations import chips_with
from nkitools.customop.abi import MAX_CORES, Call
from nkitools.customop.arguments import Arguments, take
from nkitools.customop.events import Told, finding_at
from nkitools.customop.judgement import Judgement
from nkitools.customop.run import OperatorRun
from nkitools.customop.sources import parameter_names
from nkitools.customop.symbols import Place, Symbols
from nkitools.options import OPTIONS
from nkitools.record.prints.print_sequence import as_prints
from nkitools.record.run_session import session
from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    from nkitools.customop.library import Library

ORDERS = ("forward", "reverse")
ISOLATIONS = ("process", "none")
DEFAULT_TIMEOUT = 30.0
DEFAULT_MEMORY = 4 << 30
_HOST_STACK = 8192  # beyond that the guide asks for STACK_SIZE
_LETTERS = {"f": "float", "n": "an integer type other than int64_t, or bool", "?": "a type that cannot be passed"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a call is to run; see `Operator.run`."""

    timeout: float = DEFAULT_TIMEOUT
    rules: str = "report"
    order: str | int | Sequence[int] = "forward"
    threads: bool = False
    isolation: str = "process"
    memory_limit: int = DEFAULT_MEMORY
    debug: bool = False

    def __post_init__(self) -> None:
        _one_of("rules", self.rules, OPTIONS["rules"].choices)
        _one_of("isolation", self.isolation, ISOLATIONS)
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or self.timeout < 0:
            raise ValueError(f"timeout: seconds, or 0 for none; it is {self.timeout!r}")
        if self.memory_limit < 0:
            raise ValueError(f"memory_limit: bytes, or 0 for none; it is {self.memory_limit!r}")
        self.cores(multicore=True)

    def cores(self, multicore: bool) -> list[int]:
        """The cores in the order in which they run."""
        if not multicore:
            return [0]
        order = self.order
        if isinstance(order, str):
            _one_of("order", order, ORDERS)
            return list(range(MAX_CORES)) if order == "forward" else list(range(MAX_CORES))[::-1]
        if isinstance(order, int):
            return random.Random(order).sample(range(MAX_CORES), MAX_CORES)
        if sorted(order) != list(range(MAX_CORES)):
            raise ValueError(f"order: 'forward', 'reverse', a seed, or the cores 0..7 in some order; it is {order!r}")
        return list(order)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}: must be one of {', '.join(known)}, it is {value!r}")


class Operator:
    """A custom operator that runs on this host. Call it, or `run` it to learn what happened."""

    def __init__(
        self,
        library: Library,
        name: str,
        *,
        kernel: str,
        numbers: tuple[int, int],
        signatures: tuple[str, str],
        addresses: tuple[int, int],
        symbols: tuple[Symbols, Symbols],
    ) -> None:
        self.library = library
        self.__name__ = self.name = name
        self.signature = signatures[1]
        self._kernel = kernel
        self.numbers = numbers
        # Shapes of whose calls it has been seen that the last thing they do is to free their blocks.
        self.ends_freeing: set[tuple[tuple[int, ...], ...]] = set()
        self._shape_signature = signatures[0]
        self._addresses = addresses
        self.symbols, self.shape_symbols = symbols

    def __call__(self, *arrays: Any) -> Any:
        """The operator's result; NumPy arrays in, NumPy out, torch tensors in, torch out.

        Raises `nkitools.KernelError` at the first error that the rules find.
        """
        __tracebackhide__ = True
        return self.run(*arrays, rules="error").outputs

    def run(
        self,
        *arrays: Any,
        timeout: float = DEFAULT_TIMEOUT,
        rules: str = "report",
        order: str | int | Sequence[int] = "forward",
        threads: bool = False,
        isolation: str = "process",
        memory_limit: int = DEFAULT_MEMORY,
        debug: bool = False,
    ) -> OperatorRun:
        """Run the operator and say what happened: outputs, findings, prints, and what each core did (``cores``).

        ``arrays``: one for each Tensor of the kernel, numbers for its scalars. ``timeout``: seconds after which a
        kernel that is still running is ended (CO103); 0 for none. ``rules``: as of `nkitools.simulate`, but collecting
        by default. ``order``: in which cores run, one after the other: ``forward``, ``reverse``, an int that seeds one,
        or the cores; ``threads``: side by side instead. ``isolation="none"`` runs in this process, without timeout and
        limits: faster for small calls, and a crash is yours. ``memory_limit``: bytes that the call may have.
        ``debug``: run again under AddressSanitizer and UndefinedBehaviorSanitizer, whose reports become findings.

        Raises `nkitools.KernelError` for arguments that the operator does not take, at every level but ``off``'s rules.
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
        judged = Judgement(self, arguments, settings, cores).made()
        run.outputs, run.prints, run.cores = judged.outputs, as_prints(judged.prints), judged.cores
        run.seconds = perf_counter() - began
        findings += judged.findings
        if settings.debug:
            from nkitools.customop.sanitizers import merged, rerun

            findings = merged(findings, rerun(self, arguments, settings, cores))
        return findings

    def prepare(self, call: Call, settings: Settings, cores: Sequence[int]) -> None:
        """Say in a call what is to run, and how."""
        call.op, call.kernel = self.numbers
        call.cores = len(cores)
        call.order[: len(cores)] = cores
        call.multicore = self.library.multicore
        call.threads = settings.threads and self.library.multicore
        call.stack_limit = max(_HOST_STACK, self.library.stack_size or 0)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """What the kernel calls its parameters; () where its source does not say it plainly."""
        return parameter_names(self.library.built.recipe.compute, self._kernel, len(self.signature) - 1)

    def kernel_place(self) -> Place:
        """Where the kernel is defined."""
        return self.symbols.author_place([self._addresses[1]]) or Place(
            self.library.built.recipe.compute[0], 0, self.name
        )

    def shape_place(self) -> Place:
        """Where the shape function is defined."""
        return self.shape_symbols.author_place([self._addresses[0]]) or Place(self.library.built.recipe.shape[0], 0)

    def _standing(self) -> list[Finding]:
        """What is known of the operator before it runs: its signature, and what its sources use."""
        told = []
        for letter in dict.fromkeys(self.signature[1:]):
            if letter in _LETTERS:
                told.append(Told("CO112", f"kernel of operator `{self.name}` has a parameter of {_LETTERS[letter]}"))
            elif letter == "i":
                told.append(_integers(self.name))
        if self.signature[:1] != "t":
            told.append(Told("CO112", f"kernel of operator `{self.name}` does not return a torch::Tensor"))
        place = self.kernel_place() if told else None
        findings = [finding_at(place, each) for each in told if place is not None]
        if self._shape_signature != self.signature:
            findings.append(finding_at(self.shape_place(), _disagreement(self.name)))
        for remark in self.library.built.remarks:
            at = Place(remark.file, remark.line)
            findings.append(finding_at(at, Told("CO112", remark.message, "", "warning"), column=remark.column))
        return findings

    def __repr__(self) -> str:
        return f"<custom operator {self.library.name}.{self.name}>"


def _integers(name: str) -> Told:
    return Told(
        "CO112",
        f"kernel of operator `{name}` has a parameter of int64_t: the guide lists that type, and then says "
        f"that double is "
        "the only number that can be passed",
        "Take a double and convert it in the kernel.",
        "warning",
    )


def _disagreement(name: str) -> Told:
    return Told(
        "CO107",
        f"the shape function of operator `{name}` does not have the parameters of its kernel",
        "Give both the same parameter types.",
    )
