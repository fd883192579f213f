"""``nkitools mutate``: mistakes in a kernel, one at a time, and whether the author's tests notice them."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nkitools.edits.candidates import Candidate, candidates_in
from nkitools.edits.source import Source
from nkitools.kernel_settings import check_setting
from nkitools.rules.top_level import bound_names
from nkitools.sweeps.distinguishing import distinguishing
from nkitools.sweeps.tests_of_author import Call, Trial, run_tests

# The mistakes that people make most, and that a test should notice.
USUAL = (
    "shorten-loop", "start-late", "shift-slice", "narrow-slice", "floor-division", "drop-minimum", "drop-mask",
    "swap-operands", "swap-stationary", "forget-accumulate", "change-axis", "swap-indices", "change-dtype",
    "change-operator", "drop-instruction",
)  # fmt: skip


@dataclass(frozen=True)
class Tried:
    """A mutant and its end. ``killed``: what noticed it, '' if it survived. ``differs``: an input on which a survivor
    differs.

    ``unsound``: why the tests failed afterwards without a mistake, '' if they did not.
    """

    mutant: Candidate
    killed: str
    differs: str = ""
    unsound: str = ""

    def line(self, file: str) -> str:
        """Return one line of text."""
        return f"{os.path.basename(file)}:{self.mutant.line}: {self.mutant.kind}: {self.mutant.change}"


_ONCE = (
    "the tests also fail without a mistake once they have run: an earlier run leaves something behind, a file or the "
    "state of a module, so that no number says which mistakes they notice"
)
_failed: Counter[str] = Counter()
"""How often the tests of a file have failed in this process."""


class TestsFail(ValueError):
    """The author's tests do not pass without any mistake."""

    __test__ = False  # pytest takes no class of this name for tests


def mutate(
    file: str,
    kernel: str,
    tests: Sequence[str],
    engine: Any,
    *,
    kinds: Sequence[str] = USUAL,
    settings: Mapping[str, Any] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> list[Tried]:
    """Try every mutant of a kernel, in the order of the text, on an engine of sweeps; ``settings``: of constants.

    `TestsFail` if the tests do not pass as they are, do not run the kernel, or pass only the first time: then failures
    with a mistake would have other reasons.
    """
    text = Path(file).read_text(encoding="utf-8")
    mutants = candidates_in(Source(text, Path(file).stem), kernel, kinds)
    after = _settings_text(text, kernel, settings or {})
    text += after
    as_it_is = partial(_as_it_is, file, text, list(tests), kernel)
    whole = _passing(engine, as_it_is, "the tests do not pass without a mistake")
    if not whole.runs:
        raise TestsFail(f"the tests pass, and run no kernel {kernel} in simulation")
    done: dict[int, Tried] = {}
    work = partial(_tried, file, text, list(tests), kernel, whole.calls, after)
    for ended in engine.run(work, enumerate(mutants)):
        number, mutant = ended.task
        done[number] = ended.result if not ended.reason else Tried(mutant, ended.error)
        if done[number].unsound:
            raise TestsFail(f"{_ONCE}: {done[number].unsound}")
        if progress is not None:
            progress(len(done), 0, len(mutants))
    if any(each.killed for each in done.values()):
        _passing(engine, as_it_is, _ONCE)
    return [done[number] for number in sorted(done)]


def _settings_text(text: str, kernel: str, settings: Mapping[str, Any]) -> str:
    """Return lines to add to a file that set constants to other values. ValueError for unknown constants."""
    bound = bound_names(text) or {}
    for name, value in settings.items():
        statement = bound.get(name)
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.ImportFrom):
            raise ValueError(f"{name} is no constant of the file: the tests say the keywords of {kernel} themselves")
        check_setting(name, value, _literal(statement))
    return "".join(f"\n{name} = {value!r}" for name, value in settings.items()) + "\n" * bool(settings)


def _literal(statement: ast.stmt) -> Any:
    """Return the value of an assignment; None if it is no literal."""
    try:
        return ast.literal_eval(getattr(statement, "value", None) or ast.Constant(None))
    except ValueError:
        return None


def _passing(engine: Any, as_it_is: Callable[[int], Trial], said: str) -> Trial:
    """Return the result of the tests without a mistake; `TestsFail` if they fail."""
    ended = next(iter(engine.run(as_it_is, [0])))
    if ended.reason or ended.result.code:
        raise TestsFail(f"{said}: {ended.error or _why(ended.result)}")
    found: Trial = ended.result
    return found


def _why(trial: Trial) -> str:
    said = {5: "there are none", 4: "pytest does not take them"}
    return trial.output or said.get(trial.code, f"exit code {trial.code}")


def _as_it_is(file: str, text: str, tests: list[str], kernel: str, _task: int) -> Trial:
    return run_tests(file, text, tests, kernel)


def _tried(
    file: str, text: str, tests: list[str], kernel: str, calls: list[Call], after: str, task: tuple[int, Candidate]
) -> Tried:
    mutant = task[1]
    trial = run_tests(file, mutant.text + after, tests)
    if trial.code:
        _failed[file] += 1
        again = run_tests(file, text, tests) if _failed[file].bit_count() == 1 else None  # the 1st, 2nd, 4th, 8th time
        unsound = "" if again is None or not again.code else _why(again)
        return Tried(mutant, trial.output or f"pytest ends with exit code {trial.code}", unsound=unsound)
    return Tried(mutant, "", distinguishing(file, text, mutant.text + after, kernel, calls))
