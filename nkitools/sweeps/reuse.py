"""Reuse of stored cases: found by the content of everything that decides their results.

That is the kernel with the data that it reads, its arguments, and the right results. The arrays are computed again and
compared: whatever `arguments` and `reference` read, a file, the environment, the time, shows in them. A kernel that
reads data which nkitools cannot follow runs each time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from nkitools.authors_code.content import content_of
from nkitools.authors_code.data_content import Content
from nkitools.kernel_settings import constants_of, constants_set
from nkitools.precision.runs import copied, in_float64
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.targets.imports import stand_in

NUMBERS = ("max_error", "low_precision", "remaining", "estimate_us", "left_out")  # of a case's results
_CHANGING = "runs of the kernel change what it reads"
_OTHER = "the file of the kernel, or of a function that it calls, has changed since it was imported; import it again"


class Task(NamedTuple):
    """A case, and the hashes of its stored results. ``base``: the part of the hash that is known before the case is
    made.
    """

    base: str
    case: Case
    known: frozenset[str]


@dataclass(frozen=True)
class ReusingCall:
    """A call that finds out whether a store has its case. ``code``: of the kernel in the process that asks.

    Its results have, beside the call's, ``hash``, ``is_stored`` and ``unknown``: why the case is run each time.
    """

    call: CheckedCall
    code: str = ""

    def __call__(self, task: Task) -> dict[str, Any]:
        """Return the results of a case, or the hash of those that are stored."""
        before = self._kernel(task.case)
        if self.code and before.code != self.code:
            return self._each_time(task, no_results("error", _OTHER), "")
        if before.unknown:
            return self._each_time(task, self.call(task.case), before.unknown)
        stored = self._stored(task, before) if task.known else None
        if stored is not None:
            return {"hash": stored, "is_stored": True, "unknown": ""}
        call, arguments, reference = self._remembering()
        found = call(task.case)
        unknown = arguments.unknown or (reference.unknown if reference is not None else "")
        if unknown or self._kernel(task.case).key != before.key:
            return self._each_time(task, found, unknown or _CHANGING)
        key = _hash(task, before, arguments, reference, has_lines=bool(found["findings"]))
        return {**found, "hash": key, "is_stored": False, "unknown": ""}

    def _kernel(self, case: Case) -> Content:
        """Return the content of the kernel, with the constants of its module as the case has them."""
        with self._constants(case):
            return content_of(self.call.kernel)

    def _constants(self, case: Case) -> Any:
        own = {name: value for name, value in case.values.items() if name in constants_of(self.call.kernel)}
        return constants_set(self.call.kernel, own) if own else nullcontext()

    def _each_time(self, task: Task, found: dict[str, Any], unknown: str) -> dict[str, Any]:
        return {**found, "hash": digest_of(task.base, "each time"), "is_stored": False, "unknown": unknown}

    def _stored(self, task: Task, kernel: Content) -> str | None:
        """Return the hash of stored results of a case with equal arguments and reference; None if there are none."""
        call, arguments, reference = self._remembering()
        is_wide = call.kind == "nki" and "ranks" not in task.case.values
        try:
            with stand_in("always") if call.kind == "nki" else nullcontext(), self._constants(task.case):
                args, kwargs = call.arguments_of(task.case)
                found = _first_known(task, kernel, arguments, None)
                if found is None and reference is not None and not arguments.unknown:
                    values, named = (in_float64 if is_wide else copied)((args, kwargs))
                    call.truth(task.case, *values, **named)
                    found = _first_known(task, kernel, arguments, reference)
        except Exception:  # the run of the case reports it
            return None
        return found

    def _remembering(self) -> tuple[CheckedCall, _Remembered, _Remembered | None]:
        """Return the call with functions that remember their results."""
        arguments = _Remembered(self.call.arguments)
        reference = None if self.call.reference is None else _Remembered(self.call.reference)
        return replace(self.call, arguments=arguments, reference=reference), arguments, reference


class _Remembered:
    """A function that notes the content that it has returned."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self.key = self.unknown = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, remember the content of its result, and return the result."""
        made = self._function(*args, **kwargs)
        content = content_of(made)
        self.key, self.unknown = content.key, content.unknown
        return made


def no_results(outcome: str, error: str, seconds: float = 0.0) -> dict[str, Any]:
    """Return a row for a case without results."""
    numbers = {**dict.fromkeys(NUMBERS), "left_out": 0}
    return {"outcome": outcome, "findings": [], "error": error, **numbers, "seconds": round(seconds, 6)}


def digest_of(*texts: str) -> str:
    """Return a hash of texts."""
    return blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _hash(
    task: Task, kernel: Content, arguments: _Remembered, reference: _Remembered | None, *, has_lines: bool
) -> str:
    """Return the hash of a case's results; ``has_lines``: they have lines, so that the code's text counts too."""
    truth = reference.key if reference is not None else ""
    return digest_of(task.base, kernel.key, arguments.key, truth, kernel.code if has_lines else "")


def _first_known(task: Task, kernel: Content, arguments: _Remembered, reference: _Remembered | None) -> str | None:
    if arguments.unknown or (reference is not None and reference.unknown):
        return None
    hashes = (_hash(task, kernel, arguments, reference, has_lines=each) for each in (False, True))
    return next((each for each in hashes if each in task.known), None)
