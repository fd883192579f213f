"""Every way of issuing an instruction agrees: equal results, rows, dependences, prints and findings of one kernel.

The ways are the careful path; the fast path where it looks the plan up; where the author's line has issued the like
last, so that it adds the row itself; and each of them where an observer looks at the record. Of the legacy dialect also
calls that return values, and values that are brought to where they are assigned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.language as legacy
import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
from nkitools.dialects.stand_in import stand_in_installed
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Row
from nkitools.record.run_listeners import collect_runs
from nkitools.record.watch.watched_record import observing
from nkitools.rules.catalogue import RULES
from tests import cases
from tests.careful import CAREFUL_FUNCTION, carefully
from tests.dialects.modern.valid_calls import CHIPS, NAMES, valid_call
from tests.fuzz import against_legacy
from tests.fuzz.against_oracle import names_of
from tests.nki_versions import marks_of

# Broken before an instruction is issued, by an import or by the launch; and a kernel that keeps state between its runs.
UNISSUED = {"NK611", "NK613", "NK617"}
# Examples of thousands of instructions run under `make soak` alone.
LARGE = set() if cases.FULL else {"NK105", "NK202", "NK709"}
VALUES = (None, 1e38, np.inf, np.nan)  # that all floats are; None: as they are, in which nothing is to be found
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
        "labels": [record.labels for record in run.all_records],
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
    shown: list[tuple[int | None, int, str]] = []

    class Noting(Observer):
        def issued(self, record: Record, row: Row) -> None:
            shown.append((record.rank, row.position, row.plan.name))

    with observing(Noting()):
        found = play()
    issued = [(each.rank, each.name) for each in found["instructions"]]
    firsts = {rank: [other for other, _ in issued].index(rank) for rank, _ in issued}
    of_ranks = [(rank, number - firsts[rank], name) for number, (rank, name) in enumerate(issued)]
    assert sorted(shown, key=lambda each: (each[0] or 0, each[1])) == of_ranks
    return found


def _fit(value: float, array: np.ndarray) -> Any:
    """Return the value; in the place of a large one the largest of an array's dtype."""
    return ml_dtypes.finfo(array.dtype).max if np.isfinite(value) else value


def _spoil(arguments: dict[str, Any], value: float) -> None:
    """Put a value into the floats of tensors that are there, as an instruction before would have left it."""
    for each in arguments.values():
        for tensor in each if isinstance(each, (list, tuple)) else [each]:
            if getattr(getattr(tensor, "dtype", None), "is_float", False) and tensor.storage.full:
                tensor.storage.array[...] = _fit(value, tensor.storage.array)


@pytest.mark.parametrize("of", VALUES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_call_of_each_instruction(name: str, of: float | None) -> None:
    """Every tensor holds the same bytes after three calls, also where the values are evidence that rules look at."""
    held: list[bytes] = []

    def kernel() -> None:
        arguments = valid_call(name)
        if of is not None:
            _spoil(arguments, of)
        call = getattr(nisa, name)
        has_name = "name" in signature(call).parameters
        for turn in range(TURNS):
            call(**arguments, **({"name": f"turn_{turn}"} if has_name else {}))
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
    """Return the first random program of the legacy dialect that has an instruction."""
    found = (program for seed in range(1000) if name in names_of(program := against_legacy.program_of(seed)))
    return next(found)


@pytest.mark.parametrize("of", VALUES, ids=str)
@pytest.mark.parametrize("name", against_legacy.INSTRUCTIONS)
def test_a_program_of_each_instruction_of_the_legacy_dialect(name: str, of: float | None) -> None:
    """Values, and what is brought to where it is assigned, leave the same on each way."""
    program = _program_with(name)
    kernel = nki.jit(against_legacy.kernel_of(program))
    inputs = against_legacy.inputs_of(program)
    if of is not None:
        inputs = [np.full_like(each, _fit(of, each)) if each.dtype.kind not in "iub" else each for each in inputs]
    play = partial(seen, kernel, *inputs, chip=program["chip"])
    fast, careful = both(play)
    assert fast["outputs"]
    assert fast == careful
    assert fast == Context().run(watched, play)


MADE: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda x, _: legacy.copy(x),
    "product": lambda x, y: x * y,
    "sum in bfloat16": lambda x, y: legacy.add(x, y, dtype=legacy.bfloat16),
    "function": lambda x, _: legacy.exp(x),
    "number": lambda x, _: 1e38 * x,
    "comparison": lambda x, y: x > y,
    "matmul": lambda x, y: legacy.matmul(x[:, 0:8], y, transpose_x=True),
}
LARGE_TWICE = 5.8e18  # of these a product of eight by eight is finite, and twice that is not
INFINITE = {*((name, 1e38) for name in ("product", "function", "number", "matmul")), ("matmul", LARGE_TWICE)}


@pytest.mark.parametrize("of", [*VALUES, LARGE_TWICE], ids=str)
@pytest.mark.parametrize("name", MADE)
def test_a_value_of_the_legacy_dialect(name: str, of: float | None) -> None:
    """It is made in each turn of a loop, assigned to a tile twice, and to a part of one, added to one, and read."""
    memory = legacy.psum if name == "matmul" else legacy.sbuf

    def kernel(x: Any, y: Any) -> Any:
        out = legacy.ndarray((TURNS, 3, 8, 16), dtype=legacy.float32, buffer=legacy.shared_hbm)
        for turn in legacy.static_range(TURNS):
            one, other = legacy.load(x), legacy.load(y)
            whole, total = (legacy.zeros((8, 16), dtype=legacy.float32, buffer=memory) for _ in range(2))
            wide = legacy.zeros((8, 32), legacy.float32)
            wide[:, 16:32] = MADE[name](one, other)
            for _ in range(2):
                whole[...] = MADE[name](one, other)
                total += MADE[name](one, other)
            legacy.store(out[turn, 0], whole * 2.0)
            legacy.store(out[turn, 1], wide[:, 16:32])
            legacy.store(out[turn, 2], total * 2.0)
            total[...] = MADE[name](one, other)
        return out

    x, y = _normal(8, 16), -_normal(8, 16)
    if of is not None:
        x = y = np.full_like(x, of)
    play = partial(seen, nki.jit(kernel), x, y)
    fast, careful = both(play)
    assert fast["outputs"]
    assert "NK404" in {each.rule for each in fast["findings"]} or (name, of) not in INFINITE
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
