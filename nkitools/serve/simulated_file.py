"""A kernel of a file, simulated: findings, outputs, and what each line wrote, as plain data."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.comparison.compared_arrays import ComparedArrays, numbers_of, shown
from nkitools.comparison.form import RETURNS_NONE, must_be_another
from nkitools.comparison.rule import stated_rule
from nkitools.facts import options
from nkitools.kernel_file import Asked, BadRequest, asked
from nkitools.kernel_settings import without_settings
from nkitools.launch.kept_arguments import changes_fail
from nkitools.launch.simulate import simulate
from nkitools.precision.independent_reference import independent_of_run
from nkitools.precision.judgement import Judged, judged, known_errors
from nkitools.precision.runs import copied
from nkitools.precision.tied_choices import TiedChoices
from nkitools.record.explained_errors import ExplainedError
from nkitools.record.saved.encoding import leaves
from nkitools.report.findings import with_suggestions
from nkitools.report.run_json import described
from nkitools.rules.finding import KernelError
from nkitools.serve.child_process import MEMORY
from nkitools.serve.read_files import files_read
from nkitools.targets.imports import stand_in

if TYPE_CHECKING:
    from nkitools.record.run import Run

Plain = dict[str, Any]
_SHORT = 3.0  # seconds of the processor: edits are tried for shorter runs alone
_MOST_PRINTS = 50
_MOST_TILES = 2000
# Fields of an estimate that its text states, too.
_IN_TEXT = frozenset({"assumed", "critical_path", "gaps", "how_good", "named_bounds", "roofline", "traffic"})


def simulated(request: Plain) -> Plain:
    """Simulate a kernel of a file.

    ``file``, ``kernel``; ``arguments``: in place of the file's ``inputs``, see `arguments_of`; ``settings``, by name;
    ``chip`` and ``nki_version``. Returns ``error``, a sentence if there is no run, else an empty text; and the data of
    `described` for the run, with ``suggestions`` beside each finding, ``outputs``, ``tiles``, and the ``files`` that it
    has read. With ``try_edits`` suggestions of errors have ``tried``, see `tried_edits`, if the run was short.
    """
    began = time.process_time()

    def look(run: Run, this: Asked) -> Plain:
        found = of_run(run)
        if request.get("try_edits") and time.process_time() - began < _SHORT:
            from nkitools.serve.tried_edits import tried

            made = tried(run.findings, this.kernel, lambda: _run(this, request.get("chip")))
            found["findings"] = with_suggestions(run.findings, made)
        return found

    with files_read() as files:
        found = answered(request, look)
    return {**found, "files": sorted(files)}


def estimated(request: Plain) -> Plain:
    """Simulate a kernel of a file and estimate its time on ``chips``: ``estimates``, and ``text`` of the first.

    The estimates leave out idle engines, and what the text says more briefly.
    """
    from nkitools.report.estimate_text import estimate_text

    found: Plain = {"estimates": [], "text": ""}
    for chip in request["chips"]:
        answer = answered(request | {"chip": chip}, lambda run, _: {"estimate": run.estimate()})
        if "estimate" not in answer:
            return answer
        plain = {name: each for name, each in answer["estimate"].as_plain().items() if name not in _IN_TEXT}
        plain["engines"] = [each for each in plain["engines"] if each["busy_us"]]
        found["estimates"].append(plain)
        found["text"] = found["text"] or estimate_text(answer["estimate"])
    return found


def compared(request: Plain) -> Plain:
    """Simulate a kernel of a file and compare its outputs with what the function ``against`` of the file returns.

    ``outputs``: for each its ``outcome`` (pass, wrong, undecided), whether it ``agrees``, ``max_error``, and the first
    element that is apart: by ``rtol`` and ``atol``, else by the error that the run's dtypes and sums explain.
    ``undecided``: they explain as much as a mistake might make; state a tolerance. A kernel that breaks a rule agrees
    with nothing: ``why`` names the rule.
    """

    def look(run: Run, this: Asked) -> Plain:
        function = this.file.function(request["against"])
        must_be_another(this.kernel, function)
        function = without_settings(function, request.get("settings") or {})
        args, kwargs = this.args, this.kwargs
        with independent_of_run(run, args, kwargs):
            expected = function(*copied(args), **copied(kwargs))
        every = [(name, each) for name, each in leaves(run.outputs) if isinstance(each, np.ndarray)]
        named = dict(leaves(expected))
        is_named = isinstance(expected, Mapping) and named.keys() == {name for name, _ in every}
        wanted = [named[name] for name, _ in every] if is_named else list(named.values())
        findings = with_suggestions(run.findings)
        if expected is None:
            return {"error": RETURNS_NONE.replace("the reference", request["against"]), "findings": findings}
        if len(every) != len(wanted):
            said = f"{request['against']} returns {len(wanted)} arrays, the kernel {len(every)}"
            return {"error": said, "findings": findings}
        if not every:
            return {"error": f"{run.kernel} returns no array: nothing is compared", "findings": findings}
        rule = stated_rule(request.get("rtol"), request.get("atol"))
        explained = cache(lambda: list(known_errors(run).values()))
        pairs = zip(every, wanted, strict=True)
        ties = TiedChoices(function, tuple(args), dict(kwargs))
        found = [
            judged(
                name,
                np.asarray(one),
                np.asarray(other),
                rule,
                partial(_of_output, explained, place),
                others=partial(ties.of, place),
            )
            for place, ((name, one), other) in enumerate(pairs)
        ]
        return {**_verdict(run, found), "findings": findings}

    with changes_fail():
        return answered(request, look)


def _verdict(run: Run, found: list[Judged]) -> Plain:
    """Return whether a run agrees, the largest of the tolerances, and its outputs, compared."""
    broken = next((each for each in run.findings if each.severity == "error"), None)
    rows = [_row(each) for each in found]
    why = {} if broken is None else {"why": f"the kernel breaks a rule, {broken.rule}: {broken.message}"}
    rtol, atol = (
        max(limits) for limits in zip(*((each.elements.rtol, each.elements.atol) for each in found), strict=True)
    )
    agrees = broken is None and all(each["agrees"] for each in rows)
    return {"agrees": agrees, **why, "rtol": rtol, "atol": atol, "outputs": rows}


def _of_output(explained: Callable[[], list[ExplainedError]], place: int) -> ExplainedError | None:
    return explained()[place] if place < len(explained()) else None


def _row(found: Judged) -> Plain:
    """Return one output, compared, as plain data; a number that JSON does not have is None."""
    elements = found.elements
    row: Plain = {"agrees": found.outcome == "pass", "outcome": found.outcome}
    row |= {"why": found.why} if found.why else {}
    row |= {"left_out": found.left_out} if found.left_out else {}
    if elements.message:
        return {**row, "why": elements.message}
    error = found.max_error
    row |= {"max_error": error if np.isfinite(error) else None, "wrong": elements.count}
    if elements.count:
        first = {"is": _plain(elements.actual, elements), "should_be": _plain(elements.expected, elements)}
        row |= {"first": list(elements.first), **first}
    return row


def _plain(array: np.ndarray[Any, Any], found: ComparedArrays) -> float | str:
    """Return the first differing element of an array as a number; as text if JSON has no such number."""
    number = complex(numbers_of(array)[found.first])
    return number.real if not number.imag and np.isfinite(number) else shown(array, found.first)


def reasons(request: Plain) -> Plain:
    """Simulate a kernel of a file, and return what the element ``index`` of ``output`` was made of, as ``text``."""

    def look(run: Run, _: Asked) -> Plain:
        try:
            found = run.why(request["output"], tuple(request["index"]))
        except (IndexError, TypeError) as error:
            return {"error": str(error)}
        return {"text": found.text(), "exact": found.is_exact}

    return answered(request, look)


def answered(request: Plain, answer: Callable[[Run, Asked], Plain]) -> Plain:
    """Run a kernel and return the result of ``answer(run, asked)``; or ``error`` if there is no run."""
    version = request.get("nki_version") or str(options.value("nki_version"))
    try:
        with stand_in("always"), options.override(nki_version=version), _asked(request) as this:
            return answer(_run(this, request.get("chip")), this)
    except (BadRequest, ValueError) as error:
        return {"error": _words(error)}
    except SyntaxError as error:
        return {"error": f"{error.filename}:{error.lineno}: {error.msg}"}
    except KernelError as error:
        return {"error": str(error), "findings": with_suggestions([error.finding])}
    except MemoryError as error:
        said = f"it needs more memory than a call may have ({MEMORY >> 30} GiB)"
        return {"error": f"{said}: {error}" if str(error) else said}
    except Exception as error:  # the author's own: it is reported, with the author's line
        return {"error": f"{type(error).__name__}: {_words(error)}", "traceback": _frames(error)}


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the author's own class of errors
        return "(its text raises an error of its own)"


def _asked(request: Plain) -> AbstractContextManager[Asked]:
    given = request.get("arguments")
    arguments = None if given is None else arguments_of(given)
    return asked(request["file"], request["kernel"], settings=request.get("settings"), arguments=arguments)


def _run(this: Asked, chip: str | None) -> Run:
    own, named = copied((this.args, this.kwargs))  # a kernel may write into its arguments
    return simulate(this.kernel, *own, chip=chip or None, rules="report", **named)


def arguments_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by name: an object with ``shape`` becomes an array, everything else stays.

    Beside ``shape``: ``dtype`` (float32), and ``fill``, a number or ``random`` (from 0 to 1 for floats, 0 and 1 for
    integers; drawn with ``seed``, 0), or ``arange``. ValueError names what is wrong.
    """
    return {name: _array(name, each) if isinstance(each, Mapping) else each for name, each in given.items()}


def _array(name: str, form: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    unknown = set(form) - {"shape", "dtype", "fill", "seed"}
    if unknown or "shape" not in form:
        raise ValueError(
            f"argument {name}: an array has shape, and may have dtype, fill and seed; it has {sorted(form)}"
        )
    shape, dtype = _shape_of(name, form["shape"]), _dtype_of(name, form.get("dtype", "float32"))
    fill, seed = form.get("fill", "random"), form.get("seed", 0)
    if fill == "random":
        if not _is_whole(seed):
            raise ValueError(f"argument {name}: seed is {seed!r}; it must be a whole number from 0 on")
        random = np.random.default_rng(seed)
        is_whole = dtype.kind in "iu"
        return (random.integers(0, 2, shape) if is_whole else random.random(shape, np.float32)).astype(dtype)
    if fill == "arange":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    if isinstance(fill, bool) or not isinstance(fill, (int, float)):
        raise ValueError(f"argument {name}: fill is {fill!r}; it must be a number, 'random' or 'arange'")
    return np.full(shape, float(fill)).astype(dtype)


def _is_whole(value: object) -> bool:
    """Return whether a value is a whole number from 0 on: True and 4.0 are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shape_of(name: str, said: object) -> tuple[int, ...]:
    if not isinstance(said, (list, tuple)) or not all(map(_is_whole, said)):
        raise ValueError(f"argument {name}: shape is {said!r}; it must be a list of whole numbers from 0 on")
    return tuple(said)


def _dtype_of(name: str, said: object) -> np.dtype[Any]:
    import ml_dtypes

    try:
        found = np.dtype(getattr(ml_dtypes, said, said)) if isinstance(said, str) else None
    except TypeError:
        found = None
    if found is None or not (found.kind in "?biufc" or hasattr(ml_dtypes, str(said))):
        raise ValueError(f"argument {name}: dtype is {said!r}; it must be the name of one, float32 or bfloat16 say")
    return found


def of_run(run: Run) -> Plain:
    """Return a run for an agent: findings with suggestions, prints, outputs, and the tiles and costs of each line."""
    found = described(run)
    prints = found["prints"]
    found["findings"] = with_suggestions(run.findings)
    found["prints"], found["prints_left_out"] = prints[:_MOST_PRINTS], max(0, len(prints) - _MOST_PRINTS)
    found["outputs"] = [
        _described_array(name, each) for name, each in leaves(run.outputs) if isinstance(each, np.ndarray)
    ]
    found["tiles"], found["costs"] = _of_lines(run)
    found["error"] = found["error"] or ""
    return found


def _described_array(name: str, array: np.ndarray[Any, Any]) -> Plain:
    values = array.astype(np.float32) if array.dtype.kind not in "fiub" and array.dtype.names is None else array
    is_plain = array.dtype.names is None and array.size > 0
    finite = values[np.isfinite(values)] if is_plain else np.empty(0)
    return {
        "name": name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "min": float(finite.min()) if finite.size else None,
        "max": float(finite.max()) if finite.size else None,
        "nan": int(np.isnan(values).sum()) if is_plain and values.dtype.kind == "f" else 0,
    }


def _of_lines(run: Run) -> tuple[list[Plain], list[Plain]]:
    """Return for each line the tiles that its instructions write, and the costs of its instructions.

    A tile has name, memory, dtype and shape, those of the last turn; a cost the instruction's name, its engine, how
    often it was issued, and the cycles and nanoseconds of the last one.
    """
    found: dict[tuple[str, int, str], Plain] = {}
    costs: dict[tuple[str, int, str], Plain] = {}
    for number, each in enumerate(run.instructions):
        if number >= _MOST_TILES * 10:
            break
        issued = costs.get((each.file, each.line, each.name), {}).get("issued", 0) + 1
        costs[each.file, each.line, each.name] = {
            "file": each.file,
            "line": each.line,
            "name": each.name,
            "engine": each.engine,
            "issued": issued,
            "cycles": each.cycles,
            "nanoseconds": each.nanoseconds,
        }
        for operand in each.operands:
            if operand.written:
                found[each.file, each.line, operand.tensor] = {
                    "file": each.file,
                    "line": each.line,
                    "tensor": operand.tensor,
                    "memory": operand.memory,
                    "dtype": operand.dtype,
                    "shape": list(operand.shape),
                }
    return list(found.values())[:_MOST_TILES], list(costs.values())[:_MOST_TILES]


def _frames(error: BaseException) -> list[str]:
    """Return the author's last lines of a traceback, five at most."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{each.filename}:{each.lineno}: {each.line or ''}" for each in frames if "nkitools/" not in each.filename][
        -5:
    ]
