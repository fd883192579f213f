"""What a kernel's code reads from outside: a change of it is seen, and what may change unseen is never replayed."""

from __future__ import annotations

import functools
import math
import random
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nkitools
from tests.nki_versions import SINCE_0_7

nkitools.install_stand_in(prefer="builtin")

import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

FACTOR = 2.0
TABLE = [3.0]
HELPERS = types.ModuleType("helpers")
HELPERS.factor = 2.0  # type: ignore[attr-defined]
ONES = np.ones((4, 8), np.float32)
calls: list[str] = []
seen = 0


def scaled(x: Any, factor: float) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    nl.store(out, tile)
    return out


def by_global(x: Any) -> Any:
    return scaled(x, FACTOR)


def by_module(x: Any) -> Any:
    return scaled(x, HELPERS.factor)


def by_default(x: Any, factor: float = 2.0) -> Any:
    return scaled(x, factor)


def by_keyword(x: Any, *, factor: float = 2.0) -> Any:
    return scaled(x, factor)


def doubled(number: float) -> float:
    return 2 * number


def by_function(x: Any) -> Any:
    return scaled(x, doubled(1.0))


class Settings:
    factor = 2.0

    @staticmethod
    def twice(number: float) -> float:
        return number * Settings.factor


def by_class(x: Any) -> Any:
    return scaled(x, Settings.twice(1.0))


def by_operator(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.exp(nl.load(x)))
    return out


def by_assertion(x: Any) -> Any:
    assert x.dtype in (nl.float32, nl.bfloat16)
    assert FACTOR == 2 or HELPERS.factor > 0, nl.float32
    return scaled(x, FACTOR)


def _saferepr(value: Any) -> Any:
    return value


def by_a_name_of_pytest(x: Any) -> Any:
    return scaled(x, _saferepr(FACTOR))


def closed_over(factor: float) -> Callable[[Any], Any]:
    def by_closure(x: Any) -> Any:
        return scaled(x, factor)

    return by_closure


def thrice(kernel: Any, *args: Any) -> Any:
    """The third run of a kernel, which is a replay."""
    for _ in range(2):
        nkitools.simulate(kernel, *args)
    run = nkitools.simulate(kernel, *args)
    assert run.replayed.done, run.replayed.reason
    assert (run.outputs == 2).all()
    return run


def assert_new(kernel: Any, *args: Any, value: float = 5) -> None:
    """The next run has the new result, and so has a replay of it."""
    for _ in range(3):
        run = nkitools.simulate(kernel, *args)
        np.testing.assert_allclose(run.outputs, value, rtol=1e-6)
    assert run.replayed.done


@pytest.mark.parametrize("kernel", [by_global, by_a_name_of_pytest])
def test_a_changed_global_gives_the_new_result(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a global variable is compared before each replay, one given to a function of pytest's name too."""
    thrice(kernel, ONES)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert_new(kernel, ONES)


def test_a_changed_closure_gives_the_new_result() -> None:
    """So is that of a variable around the kernel."""
    kernel = closed_over(2.0)
    thrice(kernel, ONES)
    kernel.__closure__[0].cell_contents = 5.0  # type: ignore[attr-defined]
    assert_new(kernel, ONES)


@pytest.mark.parametrize(("kernel", "name", "value"), [
    (by_default, "__defaults__", (5.0,)),
    pytest.param(by_keyword, "__kwdefaults__", {"factor": 5.0}, marks=SINCE_0_7),
])  # fmt: skip
def test_a_changed_default_gives_the_new_result(
    kernel: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults by position and by keyword."""
    thrice(kernel, ONES)
    monkeypatch.setattr(kernel, name, value)
    assert_new(kernel, ONES)


def test_a_changed_module_attribute_gives_the_new_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the author's module, and a function of nki's that a test has replaced."""
    thrice(by_module, ONES)
    monkeypatch.setattr(HELPERS, "factor", 5.0)
    assert_new(by_module, ONES)
    for _ in range(3):
        nkitools.simulate(by_operator, ONES)
    monkeypatch.setattr(nl, "exp", nl.square)
    assert_new(by_operator, 2 * ONES, value=4)


def test_a_changed_function_or_class_gives_the_new_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper under the same name, another code of the same helper, an attribute of a class."""
    thrice(by_function, ONES)
    monkeypatch.setattr(doubled, "__code__", (lambda number: 5 * number).__code__)
    assert_new(by_function, ONES)
    monkeypatch.setitem(globals(), "doubled", lambda number: 7 * number)
    assert_new(by_function, ONES, value=7)
    thrice(by_class, ONES)
    monkeypatch.setattr(Settings, "factor", 5.0)
    assert_new(by_class, ONES)


def test_an_assertion_that_pytest_rewrote_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in test files: the module that an assertion names is handed to pytest, to be shown."""
    assert any(name.startswith("@pytest") for name in by_assertion.__code__.co_names)
    thrice(by_assertion, ONES)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert_new(by_assertion, ONES)


def test_zero_of_another_sign_is_another_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.0 == -0.0, and their products differ; an argument is told apart in the same way."""
    monkeypatch.setitem(globals(), "FACTOR", 0.0)
    for _ in range(3):
        nkitools.simulate(by_global, ONES)
        nkitools.simulate(by_default, ONES, 0.0)
    monkeypatch.setitem(globals(), "FACTOR", -0.0)
    assert np.signbit(nkitools.simulate(by_global, ONES).outputs).all()
    assert np.signbit(nkitools.simulate(by_default, ONES, -0.0).outputs).all()
    assert not nkitools.simulate(by_default, ONES, 0).replayed.done


def reads_list(x: Any) -> Any:
    return scaled(x, TABLE[0])


def prints(x: Any) -> Any:
    print("so far")
    return scaled(x, 2.0)


def draws(x: Any) -> Any:
    return scaled(x, random.random())


def counts(x: Any) -> Any:
    global seen
    seen += 1
    return scaled(x, 2.0)


def keeps(x: Any) -> Any:
    calls.append("kept")
    return scaled(x, 2.0)


def marks(x: Any) -> Any:
    marks.seen = True  # type: ignore[attr-defined]
    return scaled(x, 2.0)


def imports(x: Any) -> Any:
    import time

    return scaled(x, float(time.time() > 0))


def looks_up(x: Any) -> Any:
    return scaled(x, globals()["FACTOR"])


def hands_on(x: Any) -> Any:
    _with(nl, x)
    return scaled(x, 2.0)


def _with(module: Any, x: Any) -> Any:
    return module.load(x)


def numpy_random(x: Any) -> Any:
    return scaled(x, float(np.random.rand()))


@dataclass
class Config:
    factor: float = 2.0


CONFIG = Config()


def reads_object(x: Any) -> Any:
    return scaled(x, CONFIG.factor)


def inner(x: Any) -> Any:
    return keeps(x)


IMPURE = {
    reads_list: "`TABLE`, which reads_list reads, is of class list",
    prints: "prints calls print",
    draws: "`random.random`, which draws reads, is of class builtin_function_or_method",
    counts: "counts changes `seen`|`seen`, which counts reads",
    keeps: "`calls`, which keeps reads, is of class list",
    marks: "`seen` of `marks`, which marks reads, is set",
    imports: "imports imports time",
    looks_up: "looks_up calls globals",
    hands_on: "`nl`, which hands_on reads, is a module",
    numpy_random: "`np.random`, which numpy_random reads, is no part of the kernel",
    reads_object: "`CONFIG`, which reads_object reads, is of class Config",
    inner: "`calls`, which keeps reads, is of class list",
}


@pytest.mark.parametrize("kernel", IMPURE, ids=[kernel.__name__ for kernel in IMPURE])
def test_what_can_change_unseen_is_never_replayed(kernel: Any) -> None:
    """The kernel runs each time, and replay="on" names what it reads or changes."""
    for _ in range(4):
        run = nkitools.simulate(kernel, ONES, rules="off")
        assert not run.replayed.done
    with pytest.raises(ValueError, match=IMPURE[kernel]) as raised:
        nkitools.simulate(kernel, ONES, rules="off", replay="on")
    assert raised.value.args[0].startswith(f"replay='on': a run of kernel {kernel.__name__} cannot be recorded: ")


def test_an_argument_that_can_change_is_named() -> None:
    """An object of the author's as an argument."""
    with pytest.raises(ValueError, match="an argument is of class Config, which can change"):
        nkitools.simulate(lambda x, config: scaled(x, config.factor), ONES, Config(), replay="on")


def pure(x: Any) -> Any:
    rows = [nl.load(x[row : row + 1, :]) for row in range(x.shape[0])]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row, tile in enumerate(rows):
        factor = max(math.floor(2.5), int(np.float32(1.0)))
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=float(factor))
        nl.store(out[row : row + 1, :], _cached(tile))
    return out


@functools.lru_cache(maxsize=4)
def _name(number: int) -> str:
    return f"name {number}"


def _cached(tile: Any) -> Any:
    assert _name(1) == "name 1"
    return tile


def test_builtins_and_functions_of_modules_are_no_hindrance() -> None:
    """Lists made on the way, math, NumPy's scalars, a cached function."""
    thrice(pure, ONES)
