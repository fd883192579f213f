"""``nkitools.sweep``: a kernel over a space of cases, each checked, and kept in a store."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nkitools.authors_code.content import content_of
from nkitools.chip.argument_types import Kernel
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.facts import options
from nkitools.facts.case_space import Space, drawn_points, table_of
from nkitools.facts.generations import chips_with, generation_of
from nkitools.kernel_settings import constants_of, keywords_of
from nkitools.sweeps.answers import left_out_of
from nkitools.sweeps.argument_recipe import ArgumentRecipe
from nkitools.sweeps.checked_call import LAUNCH, ROW, Case, CheckedCall, kind_of, taken
from nkitools.sweeps.local_engine import MEMORY, Ended, LocalEngine
from nkitools.sweeps.reuse import NUMBERS, ReusingCall, Task, digest_of, no_results
from nkitools.sweeps.store import Store

ENGINES = ("local", "ray")
_COMMIT = 0.25  # seconds of results that are written together
_OPTIONS = ("nki_version", "sum_order", "schedule_seed", "memory", "pallas_modes")  # that decide what a run does
# Environment variables that decide it, by the begins of their names.
_VARIABLES = {"nki": ("NKI_", "NEURON_"), "pallas": ("JAX_", "XLA_", "LIBTPU_")}

Progress = Callable[[int, int, int], None]  # how many cases are done, were stored before, and there are


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The result of `nkitools.sweep`.

    ``rows``: one dictionary for each case, in the order of the space: the case's own names, ``chip``, ``outcome``
    (``pass``, ``wrong``, ``undecided``, ``finding``, ``error``, ``timeout``), ``findings``, ``max_error`` (None if
    nothing was compared), ``estimate_us``, ``seconds``, ``low_precision`` and ``remaining`` (both None if the tolerance
    or the dtype's steps pass a case), ``error``, and ``left_out``: the number of elements left out of the comparison,
    since they depend on a choice that rounding may flip; ``max_error`` is over the others. ``stored``: the number of
    rows that were in the store before.
    ``each_time``: why later sweeps cannot reuse cases of this kernel from the store; '' if they can.
    """

    kernel: str
    name: str
    rows: list[dict[str, Any]] = field(repr=False)
    stored: int = 0
    each_time: str = ""

    @property
    def outcomes(self) -> dict[str, int]:
        """Return the number of cases with each outcome."""
        return dict(Counter(row["outcome"] for row in self.rows))

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Return the rows of the cases that do not pass."""
        return [row for row in self.rows if row["outcome"] != "pass"]

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        left_out = left_out_of(self.rows)
        cases = "1 case" if len(self.rows) == 1 else f"{len(self.rows)} cases"
        return f"{self.kernel}: {cases}: {counted}{f'; {left_out}' if left_out else ''}"


def sweep(
    kernel: Kernel,
    space: Space,
    *,
    arguments: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    chips: str | Sequence[str] | None = None,
    engine: str = "local",
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    timeout: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    mutates: str | Sequence[str] = (),
    memory: int = MEMORY,
    address: str | None = None,
) -> Sweep:
    """Run a kernel on every case of a space, in worker processes, with all checks, and return a row for each case.

    - ``space``: the values of each name (a list, a range, or a Hypothesis strategy), as a dictionary or a TOML file.
      All combinations are cases, or ``sample`` different ones drawn with ``seed`` (fewer if there are no more; a
      strategy needs ``sample``). A name is a parameter of ``arguments``, a keyword of the kernel, a constant of its
      module, or ``grid`` or ``ranks`` of the launch.
    - ``arguments(**case)`` returns the kernel's arguments: a tuple, a dictionary by name, or the only argument. It gets
      those names of the case that are its parameters, and a NumPy generator as ``rng`` if it has that parameter. By
      default the arguments come from the table ``arguments`` of the TOML file.
    - ``reference(*arguments)`` returns the right results; names of the case that are further parameters are passed by
      keyword. That of an NKI kernel without ranks gets floating-point arrays in float64. Without it nothing is
      compared: a case passes if it breaks no rule.
    - ``chips``: each case runs on each chip (default: that of `nkitools.simulate`; for Pallas v5e; for a custom
      operator the first chip that has them).
    - ``rtol``, ``atol``: the allowed difference from the reference, as in NumPy; they need one. Without both the steps
      of the result's dtype decide, then the error that the run explains (`Run.tolerance`; for NKI kernels without
      ranks). If that could hide a mistake, the outcome is ``undecided``.
    - ``mutates``: the parameters whose arrays the kernel may change; they are compared with the reference's changes.
    - ``engine``: ``"local"``, processes of this machine, or ``"ray"`` (``nkitools[ray]``); ``address``: its cluster.
    - ``workers``: the number of cases at a time (default: the number of cores). ``timeout``: seconds for a case
      (default: no limit). ``memory``: bytes that a worker may take beside those that it starts with (default: 4 GiB).
    - ``store``: a file that keeps the results, so that a second call goes on where the first one ended. A case runs
      again if the kernel, the data that it reads, its arguments, its reference, options or versions have changed, if it
      had an error or timed out, and if its kernel reads data that nkitools cannot follow, such as a file
      (`StoreWarning`).

    An error of a case is its row. Before anything runs ValueError for a space, a name, a chip, an engine or a tolerance
    that does not fit, and ImportError without Ray for ``"ray"``.
    """
    call = checked_call(kernel, space, arguments, reference, rtol, atol, mutates)
    cases = cases_of(call, space, chips, sample, seed)
    found = run_cases(call, cases, make_engine(engine, workers, timeout, memory, address), store)
    if found.each_time:
        warnings.warn(f"{found.kernel}: {not_reused(found)}", StoreWarning, stacklevel=2)
    return found


class StoreWarning(UserWarning):
    """Warns that cases run each time, since a store cannot know whether they have changed."""


def not_reused(found: Sweep) -> str:
    """Return the sentence of a sweep whose cases are run each time."""
    return f"every sweep runs its cases again, whatever the store has: {found.each_time}"


def checked_call(
    kernel: Kernel,
    space: Space,
    arguments: Callable[..., Any] | None,
    reference: Callable[..., Any] | None,
    rtol: float | None = None,
    atol: float | None = None,
    mutates: str | Sequence[str] = (),
) -> CheckedCall:
    """Return the call of every case. ValueError if there are no arguments."""
    if not callable(kernel):
        raise ValueError(f"kernel: a sweep needs a kernel or a function, it is given {type(kernel).__name__}")
    if arguments is None:
        table = {} if isinstance(space, Mapping) else table_of(space)
        if "arguments" not in table:
            raise ValueError("nothing says the arguments: pass arguments=, or a TOML file with a table [arguments]")
        arguments = ArgumentRecipe(table["arguments"])
    names = (mutates,) if isinstance(mutates, str) else tuple(mutates)
    return CheckedCall(kernel, kind_of(kernel), arguments, reference, rtol, atol, names)


def chips_of(kind: str, chips: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the chips of a sweep by their usual names. ValueError for an unknown chip."""
    given = (chips,) if isinstance(chips, str) else tuple(chips or ())
    if kind == "pallas":
        return given or ("v5e",)
    if kind == "operator":
        return given or (chips_with("custom_operators")[0],)
    for chip in given:
        generation_of(chip, "chips")
    return given or (resolve_chip(),)


def cases_of(
    call: CheckedCall, space: Space, chips: str | Sequence[str] | None, sample: int | None, seed: int
) -> list[Case]:
    """Return the cases of a space on each chip.

    ValueError for an unknown chip, and for a name that every row already has, or that changes nothing.
    """
    points = drawn_points(space, sample, seed)
    check_names(call, points[0])
    return [Case(point, chip) for point in points for chip in chips_of(call.kind, chips)]


def check_names(call: CheckedCall, values: Mapping[str, Any]) -> None:
    """Raise ValueError for a name of a space that every row already has, or that changes nothing."""
    for name in values:
        if name in ROW:
            raise ValueError(f"{name} of the space is what a row calls something else; give it another name")
    used = {*LAUNCH, *constants_of(call.kernel), *keywords_of(call.kernel, values)}
    used |= call.arguments.axes() if isinstance(call.arguments, ArgumentRecipe) else set(taken(call.arguments, values))
    unused = sorted(set(values) - used)
    if unused:
        raise ValueError(
            f"{', '.join(unused)} of the space: neither a parameter of `arguments`, nor a keyword of the kernel, nor a "
            "constant of its module"
        )


def make_engine(
    engine: str, workers: int | None, timeout: float | None, memory: int, address: str | None = None
) -> Any:
    """Return an engine by its name. ValueError for another one, ImportError without Ray."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; choose one of {', '.join(ENGINES)}")
    if engine == "local":
        if address is not None:
            raise ValueError("address names a cluster of Ray: it takes engine='ray'")
        return LocalEngine(workers=workers, timeout=timeout, memory=memory)
    from nkitools.sweeps.ray_engine import RayEngine

    return RayEngine(workers=workers, timeout=timeout, memory=memory, address=address)


def run_cases(
    call: CheckedCall,
    cases: Sequence[Case],
    engine: Any,
    store: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run the cases that a store has not, and return all of them."""
    identity = Identity.of(call)
    tasks = {identity.base_of(case): case for case in cases}
    name = _digest([identity.plain(), identity.recipe, sorted(tasks)])
    told = _Told()
    with Store(store) as opened:
        opened.begin(name, identity.kernel, identity.file, identity.code, len(tasks), call.as_text())
        known = {} if store is None else opened.reusable(map(identity.case_key, tasks.values()))
        for ended in _written_together(engine.run(_function_of(call, store), _tasks(identity, tasks, known))):
            opened.join(name, told.stored(ended))
            opened.add((identity.stored(*each) for each in ended if not each[1]["is_stored"]), name)
            if progress is not None:
                progress(len(told.hashes), told.count, len(tasks))
        found = opened.rows_of(told.hashes.values())
    of_cases = [(told.hashes.get(identity.base_of(case)), case) for case in cases]
    rows = [row_of(found[key], case.values) for key, case in of_cases if key is not None]
    return Sweep(kernel=identity.kernel, name=name, rows=rows, stored=told.count, each_time=told.unknown)


def _function_of(call: CheckedCall, store: str | os.PathLike[str] | None) -> Callable[[Task], dict[str, Any]]:
    """Return the function that runs a case, and with a store reuses stored results."""
    if store is None:
        return partial(_always, call)
    function = inspect.unwrap(call.kernel)
    is_rewritten = "@pytest_ar" in getattr(function, "__globals__", {})  # in this process alone, by pytest
    return ReusingCall(call, "" if is_rewritten else content_of(call.kernel).code)


def _always(call: CheckedCall, task: Task) -> dict[str, Any]:
    return {**call(task.case), "hash": task.base, "is_stored": False, "unknown": ""}


def _tasks(identity: Identity, cases: Mapping[str, Case], known: Mapping[str, set[str]]) -> Iterator[Task]:
    for base, case in cases.items():
        yield Task(base, case, frozenset(known.get(identity.case_key(case), ())))


class _Told:
    """The cases that have ended: their hashes, how many were stored before, why one is run each time."""

    def __init__(self) -> None:
        self.hashes: dict[str, str] = {}
        self.count = 0
        self.unknown = ""

    def stored(self, ended: Iterable[tuple[Task, dict[str, Any]]]) -> list[str]:
        """Note finished cases, and return the hashes of those that were stored before."""
        before = []
        for task, found in ended:
            self.hashes[task.base] = found["hash"]
            self.unknown = self.unknown or found["unknown"]
            before += [found["hash"]] * found["is_stored"]
        self.count += len(before)
        return before


def row_of(stored: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a case, as `Sweep` has it."""
    return {**values, **{name: stored[name] for name in ROW}}


@dataclass(frozen=True)
class Identity:
    """All that decides the results of a sweep's cases besides the case."""

    kernel: str
    module: str
    file: str
    code: str
    recipe: str
    versions: str
    tolerance: tuple[float | str | None, ...]  # rtol, atol, the parameters that may change

    @classmethod
    def of(cls, call: CheckedCall) -> Identity:
        """Return the identity of a call."""
        inner = getattr(call.kernel, "__wrapped__", call.kernel)
        code = getattr(inner, "__code__", None)
        shown = ""
        if isinstance(call.arguments, ArgumentRecipe):
            shown = json.dumps(call.arguments.table, sort_keys=True, default=str)
        functions = shown or content_of(call.arguments).key, content_of(call.reference).key
        tolerance = (call.rtol, call.atol, *call.mutates)
        return cls(
            str(getattr(inner, "__name__", getattr(call.kernel, "name", type(call.kernel).__name__))),
            str(getattr(inner, "__module__", "")),
            "" if code is None else code.co_filename,
            content_of(call.kernel).key,
            _digest([functions, tolerance]) + f" {shown}" * bool(shown),
            json.dumps(surroundings(call.kind)),
            tolerance,
        )

    def plain(self) -> list[str]:
        """Return the kernel, its content and the surroundings, as texts."""
        return [self.module, self.kernel, self.code, self.versions]

    def case_key(self, case: Case) -> str:
        """Return the key that a case has in sweeps of all versions of the kernel."""
        return _digest([self.module, self.kernel, case.chip, shown_values(case.values)])

    def base_of(self, case: Case) -> str:
        """Return a hash of all that decides a case's results but the kernel and the arrays."""
        return _digest([self.case_key(case), self.tolerance, self.versions])

    def stored(self, task: Task, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row of a store."""
        return {
            "hash": found["hash"], "kernel": self.kernel, "case_key": self.case_key(task.case), "code": self.code,
            "recipe": self.recipe, "versions": self.versions, "values_json": shown_values(task.case.values),
            "chip": task.case.chip, "outcome": found["outcome"], "findings": json.dumps(found["findings"]),
            "error": found["error"], **{name: found[name] for name in NUMBERS}, "seconds": found["seconds"],
            "finished": time.time(),
        }  # fmt: skip


def surroundings(kind: str) -> dict[str, Any]:
    """Return the versions and options that results of cases depend on. ValueError for a wrong option."""
    names = ("nkitools", "numpy", "ml_dtypes", *(("jax", "jaxlib", "libtpu") if kind == "pallas" else ()))
    packages = {name: _version(name) for name in names}
    said = {name: options.value(name) for name in _OPTIONS}
    set_here = {name: os.environ[name] for name in sorted(os.environ) if name.startswith(_VARIABLES.get(kind, ()))}
    return {**packages, "python": ".".join(map(str, sys.version_info[:2])), **said, **set_here}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def shown_values(values: Mapping[str, Any]) -> str:
    """Return the values of a case as JSON; values that JSON lacks, such as a dtype, as text."""
    return json.dumps(dict(values), default=_text)


def _text(value: Any) -> Any:
    if isinstance(value, type):
        return value.__name__
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else str(value)


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _written_together(ended: Iterator[Ended[Task]]) -> Iterator[list[tuple[Task, dict[str, Any]]]]:
    """Yield the results of each quarter of a second together; at an interruption the results so far."""
    rows: list[tuple[Task, dict[str, Any]]] = []
    since = time.monotonic()
    try:
        for each in ended:
            rows.append((each.task, each.result if not each.reason else _unanswered(each)))
            if time.monotonic() - since >= _COMMIT:
                yield rows
                rows, since = [], time.monotonic()
    except KeyboardInterrupt:
        if rows:
            yield rows
        raise
    if rows:
        yield rows


def _unanswered(ended: Ended[Task]) -> dict[str, Any]:
    """Return the results of a case whose worker has not answered."""
    found = no_results("timeout" if ended.reason == "timeout" else "error", ended.error, ended.seconds)
    return {**found, "hash": digest_of(ended.task.base, "unanswered"), "is_stored": False, "unknown": ""}
