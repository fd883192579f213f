"""``nkitools.sweep``: a kernel over a space of cases, each checked, and kept in a store."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

from nkitools.chip.argument_types import Kernel
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.chip.generations import chips_with, generation_of
from nkitools.sweeps.argument_recipe import ArgumentRecipe
from nkitools.sweeps.checked_call import LAUNCH, RESERVED, Case, CheckedCall, constants_of, kind_of, taken
from nkitools.sweeps.fingerprint import fingerprint
from nkitools.sweeps.local_engine import Ended, LocalEngine
from nkitools.sweeps.space import Space, drawn_points, table_of
from nkitools.sweeps.store import Store
from nkitools.sweeps.variants import keywords_of
from nkitools.sweeps.worker_limits import MEMORY

ENGINES = ("local", "ray")
_COMMIT = 0.25  # seconds of results that are written together
_NUMBERS = ("max_error", "low_precision", "remaining", "estimate_us")

Progress = Callable[[int, int, int], None]  # how many cases are done, were stored before, and there are


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The result of `nkitools.sweep`.

    ``rows``: one dictionary for each case, in the order of the space: the case's own names, ``chip``, ``outcome``
    (``pass``, ``wrong``, ``finding``, ``error``, ``timeout``), ``findings``, ``max_error``, ``estimate_us``,
    ``seconds``, and ``low_precision``, ``remaining``, ``error``. ``stored``: how many of them were in the store before.
    """

    kernel: str
    name: str
    rows: list[dict[str, Any]] = field(repr=False)
    stored: int = 0

    @property
    def outcomes(self) -> dict[str, int]:
        """Return how many cases have each outcome."""
        return dict(Counter(row["outcome"] for row in self.rows))

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Return the rows of the cases that do not pass."""
        return [row for row in self.rows if row["outcome"] != "pass"]

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return f"{self.kernel}: {len(self.rows)} cases: {counted}"


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
    memory: int = MEMORY,
    address: str | None = None,
) -> Sweep:
    """Run a kernel on every case of a space, in worker processes, with all checks, and return a row for each case.

    ``space``: for each name its values (a list, a range, or a Hypothesis strategy), as a dictionary or a TOML file; all
    combinations are cases, or ``sample`` different ones drawn with ``seed``. A name is a parameter of ``arguments``, a
    keyword of the kernel, a constant of its module, or ``grid`` or ``ranks`` of the launch. ``arguments(**case)``
    returns the kernel's arguments, a tuple or a dictionary; by default they come of the table ``arguments`` of the TOML
    file. ``reference(*arguments)`` returns what is right, of floating-point arrays in float64. ``chips``: each case
    runs on each (default: the option's; TPUs for Pallas, v5e by default). A result may differ from the reference as
    ``rtol`` and ``atol`` say, as in NumPy; without both by its dtype's steps, and else by as much as the run explains
    (`Run.tolerance`; of NKI kernels without ranks).

    ``engine``: ``"local"``, processes of this machine, or ``"ray"`` (``nkitools[ray]``), where ``address`` names a
    cluster. ``workers``: how many at a time (default: as many as cores), ``timeout``: seconds of a case, ``memory``:
    bytes that a worker may take. ``store``: a file that keeps what is done; a second call goes on where the first one
    has ended. A case is run again where the kernel, its helpers, its arguments or the versions have changed.

    ValueError for a space or a name that does not fit, before anything runs.
    """
    call = checked_call(kernel, space, arguments, reference, rtol, atol)
    points = drawn_points(space, sample, seed)
    cases = [Case(values, chip) for values in points for chip in chips_of(call.kind, chips)]
    check_names(call, points[0])
    return run_cases(call, cases, make_engine(engine, workers, timeout, memory, address), store)


def checked_call(
    kernel: Kernel,
    space: Space,
    arguments: Callable[..., Any] | None,
    reference: Callable[..., Any] | None,
    rtol: float | None = None,
    atol: float | None = None,
) -> CheckedCall:
    """Return the call that every case makes. ValueError where nothing says the arguments."""
    if not callable(kernel):
        raise ValueError(f"kernel: a sweep needs a kernel or a function, it is given {type(kernel).__name__}")
    if arguments is None:
        table = {} if isinstance(space, Mapping) else table_of(space)
        if "arguments" not in table:
            raise ValueError("nothing says the arguments: pass arguments=, or a TOML file with a table [arguments]")
        arguments = ArgumentRecipe(table["arguments"])
    return CheckedCall(kernel, kind_of(kernel), arguments, reference, rtol, atol)


def chips_of(kind: str, chips: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the chips of a sweep by their usual names. ValueError for one that is not known."""
    given = (chips,) if isinstance(chips, str) else tuple(chips or ())
    if kind == "pallas":
        return given or ("v5e",)
    if kind == "operator":
        return given or (chips_with("custom_operators")[0],)
    for chip in given:
        generation_of(chip, "chips")
    return given or (resolve_chip(),)


def check_names(call: CheckedCall, values: Mapping[str, Any]) -> None:
    """ValueError for a name of a space that a row has already, and for one that changes nothing."""
    for name in values:
        if name in RESERVED:
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
    hashes = [identity.hash_of(case) for case in cases]
    name = _digest([identity.plain(), sorted(hashes)])
    unique = dict(zip(hashes, cases, strict=True))
    with Store(store) as opened:
        opened.begin(name, identity.kernel, identity.file, identity.code, list(unique), call.as_text())
        before = opened.done(unique)
        tasks = [(key, case) for key, case in unique.items() if key not in before]
        done = len(before)
        for ended in _written_together(engine.run(partial(_case_of, call), tasks)):
            opened.add(identity.stored(*each) for each in ended)
            done += len(ended)
            if progress is not None:
                progress(done, len(before), len(unique))
        found = {row["hash"]: row for row in opened.rows(name)}
    rows = [row_of(found[key], case.values) for key, case in zip(hashes, cases, strict=True) if key in found]
    return Sweep(kernel=identity.kernel, name=name, rows=rows, stored=len(before))


def row_of(stored: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a case, as `Sweep` has it."""
    names = (
        "chip",
        "outcome",
        "findings",
        "max_error",
        "estimate_us",
        "seconds",
        "low_precision",
        "remaining",
        "error",
    )
    return {**values, **{name: stored[name] for name in names}}


@dataclass(frozen=True)
class Identity:
    """All that decides the results of a sweep's cases besides the case."""

    kernel: str
    module: str
    file: str
    code: str
    recipe: str
    versions: str

    @classmethod
    def of(cls, call: CheckedCall) -> Identity:
        """Return the identity of a call."""
        inner = getattr(call.kernel, "__wrapped__", call.kernel)
        code = getattr(inner, "__code__", None)
        made, shown = call.arguments, ""
        if isinstance(made, ArgumentRecipe):
            shown = json.dumps(made.table, sort_keys=True, default=str)
        recipe = shown or fingerprint(made)
        tolerance = [call.rtol, call.atol]
        packages = {name: version(name) for name in ("nkitools", "numpy", "ml_dtypes")}
        return cls(
            str(getattr(inner, "__name__", getattr(call.kernel, "name", type(call.kernel).__name__))),
            str(getattr(inner, "__module__", "")),
            "" if code is None else code.co_filename,
            fingerprint(call.kernel),
            _digest([recipe, fingerprint(call.reference), tolerance]) + f" {shown}" * bool(shown),
            json.dumps({**packages, "python": ".".join(map(str, sys.version_info[:2]))}),
        )

    def plain(self) -> list[str]:
        """Return all of it but the file, as texts."""
        return [self.module, self.kernel, self.code, self.recipe, self.versions]

    def hash_of(self, case: Case) -> str:
        """Return the hash of a case."""
        return _digest([*self.plain(), case.chip, shown_values(case.values)])

    def stored(self, key: str, case: Case, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row of a store."""
        values = shown_values(case.values)
        return {
            "hash": key, "kernel": self.kernel, "case_key": _digest([self.module, self.kernel, case.chip, values]),
            "code": self.code, "recipe": self.recipe, "versions": self.versions, "values_json": values,
            "chip": case.chip, "outcome": found["outcome"], "findings": json.dumps(found["findings"]),
            "error": found["error"], **{name: found[name] for name in _NUMBERS}, "seconds": found["seconds"],
            "finished": time.time(),
        }  # fmt: skip


def shown_values(values: Mapping[str, Any]) -> str:
    """Return the values of a case as JSON: what JSON has not, such as a dtype, as its text."""
    return json.dumps(dict(values), default=_text)


def _text(value: Any) -> Any:
    if isinstance(value, type):
        return value.__name__
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else str(value)


def _digest(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _case_of(call: CheckedCall, task: tuple[str, Case]) -> dict[str, Any]:
    return call(task[1])


def _written_together(ended: Iterator[Ended[tuple[str, Case]]]) -> Iterator[list[tuple[str, Case, dict[str, Any]]]]:
    """Yield the results of a quarter of a second together; what is there at an interruption, too."""
    rows: list[tuple[str, Case, dict[str, Any]]] = []
    since = time.monotonic()
    try:
        for each in ended:
            rows.append((*each.task, each.result if not each.reason else _unanswered(each)))
            if time.monotonic() - since >= _COMMIT:
                yield rows
                rows, since = [], time.monotonic()
    except KeyboardInterrupt:
        if rows:
            yield rows
        raise
    if rows:
        yield rows


def _unanswered(ended: Ended[Any]) -> dict[str, Any]:
    """Return the results of a case whose worker has not answered."""
    outcome = "timeout" if ended.reason == "timeout" else "error"
    numbers = dict.fromkeys(_NUMBERS)
    return {"outcome": outcome, "findings": [], "error": ended.error, **numbers, "seconds": round(ended.seconds, 6)}
