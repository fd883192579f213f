"""Every way of issuing an instruction agrees: equal results, rows, dependences, prints and findings of one kernel.

The ways are the careful path; the fast path where it looks the plan up; where the author's line has issued the like
last, so that it adds the row itself; and each of them where an observer looks at the record. Of the legacy dialect also
calls that return values, made anew or again, and values that are brought to where they are assigned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import neuronxcc.nki as nki
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
from nkitools.dialects.stand_in import stand_in_installed
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Row
from nkitools.record.run_listeners import collect_runs
from nkitools.record.watch.watching import observing
from nkitools.rules.catalogue import RULES
from tests import cases
from tests.careful import CAREFUL_FUNCTION, carefully
from tests.dialects.modern.valid_calls import CALLS, CHIPS, valid_call
from tests.fuzz import against_legacy
from tests.fuzz.against_oracle import names_of
from tests.nki_versions import marks_of

# Broken before an instruction is issued, by an import or by the launch; and a kernel that keeps state between its runs.
UNISSUED = {"NK611", "NK613", "NK617"}
# Examples of thousands of instructions run under `make soak` alone.
LARGE = set() if cases.FULL else {"NK105", "NK202", "NK709"}
TURNS = 3  # of one call: the first makes its plan, the second is the first that the fast path takes


@pytest.fixture(scope="module", autouse=True)
def _stand_in() -> Iterator[None]:
    """The builtin simulator's `nki` and `neuronxcc.nki`."""
    was_installed = stand_in_installed()
    nkitools.install_stand_in(prefer="builtin")
    yield
    if not was_installed:
        nkitools.remove_stand_in()


def seen(kernel: Any, *inputs: Any, rules: str = "report", **settings: Any) -> dict[str, Any]:
    """Run a kernel, and return what an author sees of the run, as values that can be compared."""
    inputs = tuple(np.array(each) if isinstance(each, np.ndarray) else each for each in inputs)
    error: str | None = None
    with collect_runs() as runs:
        try:
            nkitools.simulate(kernel, *inputs, rules=rules, **settings)
        except Exception as raised:
            if not hasattr(raised, "finding"):
                raise
            error = f"{type(raised).__name__}: {raised}"
    (run,) = runs
    outputs = run.outputs if isinstance(run.outputs, (list, tuple)) else [run.outputs]
    return {
        "error": error,
        "outputs": [(each.dtype, each.shape, each.tobytes()) for each in outputs if isinstance(each, np.ndarray)],
        "inputs": [each.tobytes() for each in inputs if isinstance(each, np.ndarray)],
        "instructions": list(run.instructions),
        "dependences": [
            (kind, rows.starts.tolist(), rows.sources.tolist())
            for kind in ("flow", "output", "anti")
            if (rows := getattr(run.dependences, kind)) is not None
        ],
        "findings": run.findings,
        "prints": [str(each) for each in run.prints],
    }


def both(play: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``play`` gives on the fast path, with all plans made before, and on the careful path."""
    Context().run(play)
    fast = Context().run(play)
    with carefully():
        return fast, Context().run(play)


def watched(play: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what ``play`` gives while an observer looks on, to whom each instruction is shown with its row."""
    shown: list[tuple[int, str]] = []

    class Noting(Observer):
        def issued(self, record: Record, row: Row) -> None:
            shown.append((row.position, row.plan.name))

    with observing(Noting()):
        found = play()
    assert shown == [(number, each.name) for number, each in enumerate(found["instructions"])]
    return found


def _spoil(arguments: dict[str, Any], value: float) -> None:
    """Put a value into the floats of tensors that are there, as an instruction before would have left it."""
    for each in arguments.values():
        for tensor in each if isinstance(each, (list, tuple)) else [each]:
            if getattr(getattr(tensor, "dtype", None), "is_float", False) and tensor.storage.full:
                largest = ml_dtypes.finfo(tensor.storage.array.dtype).max if np.isfinite(value) else value
                tensor.storage.array[...] = largest


@pytest.mark.parametrize("of", [None, 1e38, np.inf, np.nan], ids=["plain", "largest", "infinite", "nan"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_each_instruction(name: str, of: float | None) -> None:
    """Every tensor holds the same bytes after three calls, also where the values are evidence that rules look at."""
    held: list[bytes] = []

    def kernel() -> None:
        arguments = valid_call(name)
        if of is not None:
            _spoil(arguments, of)
        for _ in range(TURNS):
            getattr(nisa, name)(**arguments)
        for value in arguments.values():
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if hasattr(each, "storage"):
                    each.storage.poison_unwritten()  # what was there before the run
                    held.append(each.storage.array.tobytes())

    def play() -> dict[str, Any]:
        held.clear()
        return seen(kernel, chip=CHIPS.get(name, "trn2")) | {"held": list(held)}

    fast, careful = both(play)
    assert fast["instructions"]
    assert fast == careful
    assert fast == Context().run(watched, play)
    with carefully():
        assert fast == Context().run(watched, play)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _boxes(batch: int, count: int) -> np.ndarray:
    corners = np.random.default_rng(count).uniform(0, 200, (batch, count, 2))
    return np.concatenate([corners, corners + 30], axis=2).astype(np.float32)


KERNELS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "matmul": lambda: (_normal(200, 130), _normal(200, 520)),
    "softmax": lambda: (_normal(130, 77),),
    "attention": lambda: (_normal(300, 64), _normal(300, 64), _normal(300, 64)),
    "giou": lambda: (_boxes(129, 513), _boxes(129, 513)[::-1]),
    "legacy.matmul": lambda: (_normal(257, 129), _normal(257, 513)),
    "legacy.softmax": lambda: (_normal(129, 77),),
    "legacy.transpose": lambda: (_normal(129, 257),),
    "legacy.giou": lambda: (_boxes(129, 257).reshape(129, -1), _boxes(129, 257)[::-1].reshape(129, -1)),
    "legacy.conv2d": lambda: (_normal(1, 3, 12, 30), _normal(5, 3, 3, 3)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_an_example_kernel(name: str) -> None:
    """The same output bits, instructions, prints and findings."""
    kernel = getattr(import_module(f"kernels.nki.{name}"), name.rpartition(".")[2])
    play = partial(seen, kernel, *KERNELS[name]())
    fast, careful = both(play)
    assert fast["outputs"]
    assert len(fast["instructions"]) > 3
    assert fast == careful
    assert fast == Context().run(watched, play)


def _program_with(name: str) -> dict[str, Any]:
    """Return a random program of the legacy dialect that has an instruction, the first of a thousand."""
    found = (program for seed in range(1000) if name in names_of(program := against_legacy.program_of(seed)))
    return next(found)


@pytest.mark.parametrize("name", against_legacy.INSTRUCTIONS)
def test_a_program_of_each_instruction_of_the_legacy_dialect(name: str) -> None:
    """Values that are made again, and brought again to where they are assigned, leave what the first ones left."""
    program = _program_with(name)
    kernel = nki.jit(against_legacy.kernel_of(program))
    play = partial(seen, kernel, *against_legacy.inputs_of(program), chip=program["chip"])
    fast, careful = both(play)
    assert fast["outputs"]
    assert fast == careful
    assert fast == Context().run(watched, play)


def _bad_examples() -> list[Any]:
    return [
        pytest.param(example.bad, rule.chips[-1], id=f"{rule.id}-{number}", marks=marks_of(rule.id))
        for rule in RULES.values()
        if rule.id.startswith("NK") and not rule.reporter and rule.id not in UNISSUED | LARGE
        for number, example in enumerate(rule.examples, start=1)
    ]


@pytest.mark.soak
@pytest.mark.parametrize(("source", "chip"), _bad_examples())
def test_a_kernel_that_breaks_a_rule(source: str, chip: str, tmp_path: Path) -> None:
    """The same findings, word by word, and the same error; what is left of the run is the same, too."""
    import nki
    import nki.isa
    import nki.language as nl

    path = tmp_path / "example.py"
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "example", "nki": nki, "nisa": nki.isa, "nl": nl, "np": np}
    exec(compile(source, str(path), "exec"), names)
    kernel, inputs, chip = names["kernel"], names["inputs"], names.get("CHIP", chip)
    for rules in ("report", "error"):
        fast, careful = both(partial(seen, kernel, *inputs, rules=rules, chip=chip))
        assert fast["findings"] or fast["error"]
        assert fast == careful


@pytest.mark.fast_path
def test_the_two_ways_are_two() -> None:
    """The fast path hands one of three equal calls over to the careful path, which else takes all of them."""

    def kernel() -> None:
        arguments = valid_call("tensor_tensor")
        for _ in range(TURNS):
            nisa.tensor_tensor(**arguments)

    def handed_over() -> int:
        calls = []

        def noting(frame: Any, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_name == CAREFUL_FUNCTION:
                calls.append(frame.f_locals["self"].name)

        before = sys.getprofile()
        sys.setprofile(noting)
        try:
            nkitools.simulate(kernel)
        finally:
            sys.setprofile(before)
        return calls.count("tensor_tensor")

    fast, careful = both(lambda: {"calls": handed_over()})
    assert (fast["calls"], careful["calls"]) == (0, TURNS)
