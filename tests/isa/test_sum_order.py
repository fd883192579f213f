"""Sums with ``sum_order="chip"``: every float32 sum along free axes, against a loop over the elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from neuronxcc import nki as legacy
from neuronxcc.nki import isa as legacy_isa
from neuronxcc.nki import language as legacy_nl

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.facts import options
from tests.isa.issued import empty, issue, tile
from tests.isa.oracles import held

CHIPS = ("trn1", "trn2", "trn3")
COMMANDS = nisa.reduce_cmd


def one_by_one(values: Any, start: Any = None) -> np.ndarray:
    """The float32 sum of each row (all free dimensions as one, the last fastest), one element after the other."""
    rows = np.asarray(values).astype(np.float32).reshape(len(values), -1)
    total = rows[:, 0] if start is None else np.float32(start) + rows[:, 0]
    for column in rows.T[1:]:
        total = total + column
    return total


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Fractions of one sign, whose sums are rounded at almost every step."""
    return np.random.default_rng(seed).random(shape, np.float32)


@pytest.fixture
def _as_a_chip() -> Any:
    with options.override(sum_order="chip"):
        yield


@pytest.mark.usefixtures("_as_a_chip")
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("shape", "axis"), [((128, 128), 1), ((1, 1000), 1), ((7, 3, 50), 2), ((5, 4, 6, 50), (2, 3))])
def test_a_reduction_adds_in_the_order_of_elements(shape: tuple[int, ...], axis: Any, chip: str) -> None:
    """Over one axis or several, on every chip, of one partition and many; ``negate`` changes the sign alone."""
    x = drawn(*shape)
    kept = shape[: min(np.atleast_1d(axis))]
    expected = one_by_one(x.reshape(int(np.prod(kept)), -1)).reshape(kept)
    assert (expected != x.sum(axis=axis)).any()  # so that the order shows
    for negate in (False, True):
        dst = empty(kept if len(kept) > 1 else (*kept, 1))
        found = issue(nisa.tensor_reduce, dst, nl.add, tile(x), axis, negate, chip=chip).dst
        np.testing.assert_array_equal(found.reshape(kept), -expected if negate else expected)


@pytest.mark.usefixtures("_as_a_chip")
@pytest.mark.parametrize(("given", "result"), [(nl.bfloat16, nl.float32), (nl.float32, nl.bfloat16), (nl.float16,) * 2])
def test_other_dtypes_are_added_in_float32_and_cast_once(given: Any, result: Any) -> None:
    """Inputs are widened, every partial sum is float32, and the last one is rounded to the destination."""
    x = held(drawn(64, 300), given)
    found = issue(nisa.tensor_reduce, empty((64, 1), result), nl.add, tile(x, dtype=given), 1).dst
    np.testing.assert_array_equal(found[:, 0], held(one_by_one(x), result))


@pytest.mark.usefixtures("_as_a_chip")
def test_the_order_is_that_of_the_view() -> None:
    """Of a view with a step the chosen elements; of a transposed one the elements as the view has them."""
    x = drawn(32, 4, 100)
    stepped = tile(x, view=lambda t: t[:, :, 1:100:3])
    found = issue(nisa.tensor_reduce, empty((32, 4)), nl.add, stepped, 2).dst
    np.testing.assert_array_equal(found, one_by_one(x[:, :, 1::3].reshape(128, -1)).reshape(32, 4))
    turned = tile(x, view=lambda t: t.permute((0, 2, 1)))
    found = issue(nisa.tensor_reduce, empty((32, 1)), nl.add, turned, (1, 2)).dst
    np.testing.assert_array_equal(found[:, 0], one_by_one(x.transpose(0, 2, 1)))


@pytest.mark.usefixtures("_as_a_chip")
def test_sums_in_registers_go_on_from_what_these_hold() -> None:
    """Each element is added to the register: to 0 after a reset, to what load_reduce puts there otherwise."""
    x, scale = drawn(64, 2, 150), np.float32(1.25)
    reset = {"reduce_op": nl.add, "reduce_res": empty((64, 1)), "reduce_cmd": COMMANDS.reset_reduce}
    dst = empty(x.shape)
    found = issue(nisa.activation, dst, nl.copy, tile(x), scale=float(scale), **reset).views["reduce_res"]
    np.testing.assert_array_equal(found[:, 0], one_by_one(x * scale))
    load = {**reset, "reduce_cmd": COMMANDS.load_reduce, "reduce_init": 3.5}
    found = issue(nisa.tensor_scalar_reduce, dst, tile(x), nl.multiply, 1.25, **load).views["reduce_res"]
    np.testing.assert_array_equal(found[:, 0], one_by_one(x * scale, 3.5))
    y = drawn(64, 2, 150, seed=1)
    pair = (nl.multiply, 1.25, nl.add, tile(y))
    found = issue(nisa.scalar_tensor_tensor, dst, tile(x), *pair, **reset).views["reduce_res"]
    np.testing.assert_array_equal(found[:, 0], one_by_one(x * scale + y))
    trn3 = {"reduce_res": reset["reduce_res"], "reduce_cmd": COMMANDS.reset_reduce, "chip": "trn3"}
    issued = issue(nisa.exponential, dst, tile(x), **trn3)
    np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], one_by_one(issued.dst))
    stages = {"op0": nl.multiply, "imm0": 1.25, "op1": nl.add, "imm1": 0.0}
    issued = issue(nisa.activate2, dst, nl.copy, tile(x), **stages, **reset, chip="trn3")
    np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], one_by_one(x * scale))


def _two_halves(x: Any) -> Any:
    out = nl.ndarray((64, 1), nl.float32, nl.shared_hbm)
    src, dst, total = (nl.ndarray(shape, nl.float32, nl.sbuf) for shape in (x.shape, (64, 100), (64, 1)))
    nisa.dma_copy(dst=src, src=x)
    for half, command in ((0, COMMANDS.reset_reduce), (100, COMMANDS.reduce)):
        part = src[:, half : half + 100]
        nisa.activation(dst, nl.copy, part, reduce_op=nl.add, reduce_res=total, reduce_cmd=command)
    nisa.dma_copy(dst=out, src=total)
    return out


def test_a_second_instruction_adds_on() -> None:
    """reduce after reset_reduce is one sum over both inputs."""
    x = drawn(64, 200)
    found = nkitools.simulate(_two_halves, x, sum_order="chip").outputs
    np.testing.assert_array_equal(found[:, 0], one_by_one(x))


def _language_sums(x: Any) -> Any:
    out = nl.ndarray((x.shape[0], 1), nl.float32, nl.shared_hbm)
    src = nl.ndarray(x.shape, nl.float32, nl.sbuf)
    nisa.dma_copy(dst=src, src=x)
    nisa.dma_copy(dst=out, src=nl.sum(src, axis=[1], keepdims=True))
    return out


@legacy.jit
def _legacy_sums(x: Any) -> Any:
    last = legacy_nl.ndarray((x.shape[0], x.shape[1]), legacy_nl.float32, buffer=legacy_nl.shared_hbm)
    middle = legacy_nl.ndarray((x.shape[0], x.shape[2]), legacy_nl.float32, buffer=legacy_nl.shared_hbm)
    src = legacy_nl.load(x)
    legacy_nl.store(last, legacy_nl.sum(src, axis=2))
    legacy_nl.store(middle, legacy_isa.tensor_reduce(legacy_nl.add, src, axis=1))
    columns = legacy_nl.ndarray((x.shape[0], 1), legacy_nl.float32, buffer=legacy_nl.shared_hbm)
    total = legacy_nl.ndarray((x.shape[0], 1), legacy_nl.float32, buffer=legacy_nl.sbuf)
    legacy_isa.activation_reduce(legacy_nl.copy, src[:, 0, :], reduce_op=legacy_nl.add, reduce_res=total)
    legacy_nl.store(columns, total)
    return last, middle, columns


def test_the_languages_of_both_dialects_follow() -> None:
    """nl.sum of the modern dialect; of the legacy one nl.sum, tensor_reduce along any free axis, activation_reduce."""
    x = drawn(128, 60, 70)
    found = nkitools.simulate(_language_sums, x[:, 0], sum_order="chip").outputs
    np.testing.assert_array_equal(found[:, 0], one_by_one(x[:, 0]))
    last, middle, columns = nkitools.simulate(_legacy_sums, x, sum_order="chip").outputs
    np.testing.assert_array_equal(last, one_by_one(x.reshape(-1, 70)).reshape(128, 60))
    np.testing.assert_array_equal(middle, one_by_one(x.transpose(0, 2, 1).reshape(-1, 60)).reshape(128, 70))
    np.testing.assert_array_equal(columns[:, 0], one_by_one(x[:, 0]))


@pytest.mark.usefixtures("_as_a_chip")
def test_what_is_no_sum_stays() -> None:
    """Maxima and products are as without the option: they have no other order, or this one already."""
    x = drawn(32, 90) + np.float32(0.5)
    for op, fold in ((nl.maximum, np.maximum), (nl.multiply, np.multiply)):
        found = issue(nisa.tensor_reduce, empty((32, 1)), op, tile(x), 1).dst
        expected = x[:, 0]
        for column in x.T[1:]:
            expected = fold(expected, column)
        np.testing.assert_array_equal(found[:, 0], expected)


def test_the_default_is_the_sum_of_numpy() -> None:
    """Pairwise, which is faster and other bits; a run before or after it in the other order changes nothing."""
    x = drawn(128, 128)
    for asked, expected in ((None, x.sum(axis=1)), ("chip", one_by_one(x)), ("fast", x.sum(axis=1))):
        run = nkitools.simulate(_language_sums, x, sum_order=asked)
        np.testing.assert_array_equal(run.outputs[:, 0], expected)
        assert run.settings["sum_order"] == (asked or "fast")
    assert (x.sum(axis=1) != one_by_one(x)).any()


def test_argument_then_override_then_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides, in this order; another word is refused with the choices."""

    def order(**said: str) -> Any:
        return nkitools.simulate(_language_sums, drawn(2, 2), **said).settings["sum_order"]

    monkeypatch.setenv("NKITOOLS_SUM_ORDER", "chip")
    assert order() == "chip"
    with options.override(sum_order="fast"):
        assert order() == "fast"
        assert order(sum_order="chip") == "chip"
    with pytest.raises(ValueError, match="sum_order: must be one of fast, chip, it is 'pairwise'"):
        order(sum_order="pairwise")


def test_a_run_keeps_its_order(tmp_path: Path) -> None:
    """In its file, and in a second run for `why`, whatever the options say then."""
    x = drawn(128, 20_000)
    with options.override(sum_order="chip"):
        run = nkitools.simulate(_language_sums, x)
    run.save(tmp_path / "of.run")
    assert nkitools.load_run(tmp_path / "of.run").settings["sum_order"] == "chip"
    texts = [(f"{ordered:.6g}", f"{fast:.6g}") for ordered, fast in zip(one_by_one(x), x.sum(axis=1), strict=True)]
    row = next(at for at, (ordered, fast) in enumerate(texts) if ordered != fast)
    with options.override(sum_order="fast"):
        assert f"out[{row}, 0] = {texts[row][0]}\n" in str(run.why(0, (row, 0)))
