"""The fast path and the careful path agree: equal results, records, prints and findings of one kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
from nkitools.dialects.stand_in import stand_in_installed
from nkitools.record.run_listeners import collect_runs
from nkitools.rules.catalogue import RULES
from tests import cases
from tests.careful import CAREFUL_FUNCTION, carefully
from tests.dialects.modern.valid_calls import CALLS, CHIPS, valid_call
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
        "findings": run.findings,
        "prints": [str(each) for each in run.prints],
    }


def both(play: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``play`` gives on the fast path, with all plans made before, and on the careful path."""
    Context().run(play)
    fast = Context().run(play)
    with carefully():
        return fast, Context().run(play)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_each_instruction(name: str) -> None:
    """Every tensor that takes part holds the same bytes after three calls."""
    held: list[bytes] = []

    def kernel() -> None:
        arguments = valid_call(name)
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
    fast, careful = both(lambda: seen(kernel, *KERNELS[name]()))
    assert fast["outputs"]
    assert len(fast["instructions"]) > 3
    assert fast == careful


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
