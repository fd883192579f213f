"""The kernel of a verdict in its own process: its runs, and facts about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from nkitools.authors_code.called_functions import plain_function
from nkitools.authors_code.source_text import running
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.facts import options
from nkitools.kernel_file import BadRequest, check_call, failure
from nkitools.kernel_settings import VARIABLE, constants_set, parameters_of, with_keywords
from nkitools.launch.frameworks import NUMPY, framework_of
from nkitools.launch.kept_arguments import Keeping, changes_fail, must_have_parameters
from nkitools.launch.kernel import as_launch
from nkitools.launch.launch import Launch
from nkitools.launch.nested_arguments import mapped
from nkitools.precision.difference import exact
from nkitools.precision.runs import Half, Values, arrays_in, copied, run_half
from nkitools.report.never_met import met_by, missing_of
from nkitools.rules.finding import Finding, KernelError
from nkitools.sweeps.checked_call import kind_of
from nkitools.targets import simulator_for
from nkitools.targets.imports import stand_in
from nkitools.verdict.cases import Given
from nkitools.verdict.mutants import Mutants
from nkitools.verdict.outside import Outside, outside_of
from nkitools.verdict.reach import Reach, reach_of
from nkitools.verdict.rows import Measured
from nkitools.verdict.subject import Subject


@dataclass(frozen=True)
class Described:
    """The facts about a kernel that is to run. ``mutable``: the parameters that its author has declared mutable."""

    name: str
    kind: str
    parameters: tuple[str, ...]
    mutable: frozenset[str]
    chip: str
    versions: tuple[str, ...]
    outside: Outside


@dataclass(frozen=True)
class Ran:
    """The end of a run.

    ``half``: its results; None if it has none. ``error``: what it raised, as text. ``refuses``: whether the kernel
    itself, or a rule, has stopped it. ``left_out``: the checks that were left out, and why. ``instructions``: how many
    were issued; None if they are not counted.
    """

    half: Half | None
    findings: tuple[Finding, ...] = ()
    error: str = ""
    refuses: bool = False
    left_out: str = ""
    instructions: int | None = None

    @property
    def broken(self) -> list[Finding]:
        """Return the findings that are errors."""
        return [each for each in self.findings if each.severity == "error"]


@dataclass
class Candidate:
    """A kernel, loaded. ``launch``: the chip, the NKI version, the grid and the ranks of its launch."""

    subject: Subject
    launch: Mapping[str, Any] = field(default_factory=dict)
    mutates: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Load the kernel."""
        self._stack = ExitStack()
        self._stack.enter_context(stand_in("always"))
        self.kernel, self.reference = self.subject.candidate(self._stack)
        self.name = str(getattr(self.kernel, "__name__", getattr(self.kernel, "name", "kernel")))
        self.kind = kind_of(self.kernel)
        self._run: Any = None
        self._kept: list[Any] = []  # earlier arguments, so that later ones lie elsewhere in memory
        self._entered: dict[str, Any] = {}
        self._met: dict[str, bool] = {}

    def describe(self) -> Described:
        """Return the facts about the kernel that need no run. BadRequest if ``mutates`` names no parameter of it."""
        parameters = [each for each in parameters_of(self.kernel) if each.kind not in VARIABLE]
        mutable = {each.name for each in parameters if "mutable" in str(each.annotation)}
        is_nki = self.kind == "nki"
        chip = (self.launch.get("chip") or resolve_chip()) if is_nki else ""
        known = [each for each in options.OPTIONS["nki_version"].choices if each != "auto"]
        versions = tuple(known) if is_nki and as_launch(self.kernel).dialect.writes_arguments else ()
        names = tuple(each.name for each in parameters)
        try:
            if self.mutates:
                must_have_parameters(self.name, self.kernel, self.mutates)
        except ValueError as error:
            raise BadRequest(str(error)) from None
        return Described(self.name, self.kind, names, frozenset(mutable), chip, versions, outside_of(self.kernel))

    def called_with(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments, with those settings added that are keywords of the kernel."""
        return with_keywords(self.kernel, args, kwargs, self.settings)

    def run(self, given: Given, how: str = "", mutant: int = -1, launch: Mapping[str, Any] | None = None) -> Ran:
        """Run the kernel on copies of arguments.

        ``how``: '' for a run that later questions are about. ``reference``: while the reference raises. ``frames``:
        while the frames of callers hold other arrays. ``memory``: with arguments elsewhere in memory. ``mutant``: the
        number of a mistake that is made in the kernel; -1 for none. ``launch``: in place of the candidate's own.
        BadRequest if the arguments do not fit the kernel's parameters.
        """
        if self.launch.get("ranks") is None:  # else there is one tuple of arguments for each rank
            check_call(self.name, self.kernel, given.args, given.kwargs)
        try:
            with self._changed(given, how), self.mutants.made(mutant), changes_fail():
                return self._ran(given, how, launch or {})
        except KernelError as error:
            return Ran(None, (error.finding,), str(error), refuses=True)
        except MemoryError as error:
            return Ran(None, error=f"MemoryError: {error}")
        except (Exception, SystemExit) as error:  # whatever the author's kernel raises
            said = f"{type(error).__name__}: {error}"
            return Ran(None, error=failure(error) or said if isinstance(error, Exception) else said, refuses=True)

    @contextmanager
    def _changed(self, given: Given, how: str) -> Iterator[None]:
        without = self._without_reference() if how == "reference" else nullcontext()
        with constants_set(self.kernel, given.constants) if given.constants else nullcontext(), without:
            yield

    @contextmanager
    def _without_reference(self) -> Iterator[None]:
        """Let the reference raise while the block runs; one that uses variables around it stays as it is."""
        function = plain_function(self.reference)
        with ExitStack() as stack:
            with suppress(ValueError):
                stack.enter_context(running([] if function is None else [(function, _absent.__code__)]))
            yield

    def _ran(self, given: Given, how: str, other: Mapping[str, Any]) -> Ran:
        args, kwargs = given.args, given.kwargs
        launch = {**self.launch, **given.launch, **other}
        if self.kind == "pallas" and self._run is not None and not other:
            launch["modes"] = ("interpret",)  # the first run alone is the whole check
        if self.kind != "nki" or launch.get("ranks") is not None:
            return self._ran_elsewhere(args, kwargs, launch)
        asked = {name: each for name, each in launch.items() if name in ("grid", "chip", "nki_version") and each}
        found = as_launch(self.kernel, **asked, rules="report")
        if found.dialect.writes_arguments:
            found = replace(found, keeping=Keeping(frozenset(self.mutates), "error", restores=False))
        if how == "frames":
            args, kwargs = mapped((args, kwargs), _decoy)
            found = replace(found, wrap=self._swapped(found))
        elif how == "memory":
            args, kwargs = mapped((args, kwargs), _elsewhere)
        elif not how:
            found = replace(found, wrap=self._noted(found))
        half = run_half(found, "precise", args, kwargs)
        if not how:
            self._run, self._half, self._met = half.run, half, met_by(half.run)
        self._kept.append((args, kwargs) if how == "memory" else None)
        return _sendable(half)

    def _noted(self, launch: Launch) -> Callable[[Any], Any]:
        """Return a wrapper of the kernel's arguments that keeps their values."""
        self._entered = {}

        def entering(tensor: Any) -> Any:
            self._entered.setdefault(tensor.name, tensor.storage.array.copy())
            return tensor if launch.wrap is None else launch.wrap(tensor)

        return entering

    def _swapped(self, launch: Launch) -> Callable[[Any], Any]:
        """Return a wrapper of the kernel's arguments that puts in the values that `_noted` kept."""

        def entering(tensor: Any) -> Any:
            storage = tensor.storage
            if tensor.name in self._entered:
                values = self._entered[tensor.name].copy()
                values.flags.writeable = storage.array.flags.writeable
                storage.array = values
                storage.forget_windows()
                tensor = type(tensor).whole(storage)
            return tensor if launch.wrap is None else launch.wrap(tensor)

        return entering

    def _ran_elsewhere(self, args: Any, kwargs: Any, launch: Mapping[str, Any]) -> Ran:
        """Run a kernel of ranks, or one that is no NKI kernel, on the simulator of its kind."""
        own, named = copied((args, kwargs))
        before = {name: exact(array) for name, (_, array) in arrays_in("argument", (own, named))}
        taken = {"nki": ("grid", "ranks", "chip", "nki_version"), "pallas": ("chips", "modes")}.get(self.kind, ())
        said = {name: launch[name] for name in taken if launch.get(name)}
        said |= {"mutates": self.mutates} if self.mutates and self.kind == "nki" else {}
        run = simulator_for(self.kernel).run(self.kernel, *own, **{**named, **said}, rules="report")
        after = {name: exact(array) for name, (_, array) in arrays_in("argument", (own, named))}
        changed = {name for name, array in after.items() if not np.array_equal(array, before[name], equal_nan=True)}
        outputs = {
            name: Values(exact(array), str(array.dtype)) for name, (_, array) in arrays_in("output", run.outputs)
        }
        arguments = {name: Values(array, str(array.dtype)) for name, array in after.items()}
        half = Half(run, outputs, arguments, frozenset(changed), frozenset())
        if "modes" not in launch:
            self._run, self._half = run, half
        return _sendable(half)

    def explain(self) -> Any:
        """Return the errors that the last run explains by its dtypes and sums; None if they are unknown."""
        try:
            return self._run.tolerance()
        except (ValueError, AttributeError):
            return None

    def reach(self) -> dict[str, dict[str, Reach]]:
        """Return for each output of the last run the arguments that reach it by instructions; {} if that is unknown."""
        return reach_of(self._run, self._half) if self.kind == "nki" and not self._run.records else {}

    def measure(self) -> Measured | str:
        """Return the cost of the last run, or a text why it is unknown."""
        from nkitools.verdict.costs import measured

        return measured(self._run, self._half, self.kind)

    def met(self) -> str:
        """Return in words the situations that no run of this process has met."""
        return ", ".join(missing_of(self._met))

    @cached_property
    def mutants(self) -> Mutants:
        """The usual mistakes that can be made in the kernel."""
        return Mutants(self.kernel)

    def some_mutants(self, count: int, seed: int) -> list[tuple[int, str]]:
        """Return the numbers of some mistakes, each with its line and change."""
        return self.mutants.sample(count, seed)


def _absent(*args: Any, **kwargs: Any) -> Any:
    raise LookupError("the reference is not here: a kernel must not call it")


def _sendable(half: Half) -> Ran:
    """Return the end of a run in a form that can be sent to another process."""
    run = half.run
    error = "" if run.error is None else f"{type(run.error).__name__}: {run.error}"
    plain: Any = SimpleNamespace(kernel=run.kernel, findings=())
    count = sum(each.count for each in run.all_records) if run.target == "builtin" and run.all_records else None
    left_out = "; ".join(f"{name}: {why}" for name, why in dict(getattr(run, "left_out", None) or {}).items())
    return Ran(replace(half, run=plain, accesses={}), tuple(run.findings), error, left_out=left_out, instructions=count)


def _decoy(value: Any) -> Any:
    """Return an array of the same form with other values."""
    if framework_of(value) is not NUMPY:
        return value
    turned = value[::-1] if value.ndim and len(value) > 1 else value
    return np.ascontiguousarray(turned).copy() if value.dtype.kind in "biu" or value.dtype.names else _halved(turned)


def _halved(value: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray((value.astype(np.float32) / 2).astype(value.dtype))


def _elsewhere(value: Any) -> Any:
    """Return a copy of an array that begins inside of a block of memory."""
    if framework_of(value) is not NUMPY or not value.nbytes:
        return value
    room = np.empty(value.nbytes + 4096, np.uint8)
    start = -room.ctypes.data % 64 + 64 * 7
    copy = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy
