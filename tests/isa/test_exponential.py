"""nisa.exponential against float64 references: values, dtypes, the running sum, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import float64, held, sample

pytestmark = pytest.mark.usefixtures("each_version")

COMMANDS = nisa.reduce_cmd
X = np.ones((32, 8), np.float32)
V = np.ones((32, 1), np.float32)
DST = empty((32, 8))
INPUTS = (nl.float8_e4m3, nl.float8_e5m2, nl.float16, nl.bfloat16, nl.float32)
INPUTS += (nl.int8, nl.int16, nl.int32, nl.uint8, nl.uint16, nl.uint32)
OUTPUTS = (*INPUTS[:-1], nl.tfloat32)


@pytest.mark.parametrize("maximum", [None, 1.5, "vector"])
def test_the_exponential_of_the_difference(maximum: Any) -> None:
    """``exp(src - max_value)`` to four units in the last place; without a maximum it is exp."""
    x, v = sample((128, 3, 20)), sample((128, 1), seed=1)
    keywords = {} if maximum is None else {"max_value": tile(v) if maximum == "vector" else maximum}
    shift = {None: np.float32(0), "vector": v[:, :, None]}.get(maximum, maximum)
    difference = (float64(x) - float64(np.asarray(shift))).astype(np.float32)
    issued = issue(nisa.exponential, empty(x.shape), tile(x), chip="trn3", **keywords)
    np.testing.assert_array_max_ulp(issued.dst, np.exp(float64(difference)).astype(np.float32), 4)
    assert issued.rules == []


@pytest.mark.parametrize("result", OUTPUTS, ids=str)
@pytest.mark.parametrize("dtype", INPUTS, ids=str)
def test_the_documented_dtypes(dtype: Any, result: Any) -> None:
    """Widened to float32 and cast once on write; float32's own units are the exponential's, not the cast's."""
    x = held(np.arange(-2, 6).reshape(2, 4), dtype)
    issued = issue(nisa.exponential, empty(x.shape, result), tile(x), 1.0, chip="trn3")
    expected = held(np.exp(float64(x) - 1), result)
    if result == nl.float32:
        np.testing.assert_array_max_ulp(issued.dst, expected, 4)
    else:
        np.testing.assert_array_equal(issued.dst, expected)


def test_a_softmax_in_two_tiles() -> None:
    """reset_reduce without a result tile, then reduce with one: the sum of both tiles' float32 results."""
    x = sample((128, 512), nl.bfloat16)
    largest = x.astype(np.float32).max(axis=1, keepdims=True)

    def body() -> tuple[np.ndarray, np.ndarray]:
        src, top = placed(tile(x)), placed(tile(largest))
        dst, total = placed(empty(x.shape, nl.bfloat16)), placed(empty((128, 1)))
        nisa.exponential(dst[:, :256], src[:, :256], top, reduce_cmd=COMMANDS.reset_reduce)
        nisa.exponential(dst[:, 256:], src[:, 256:], top, total, COMMANDS.reduce)
        return np.array(dst.array), np.array(total.array)

    dst, total = inside(body, chip="trn3")
    exponents = np.exp(float64(x) - float64(largest))
    np.testing.assert_array_max_ulp(dst.astype(np.float32), held(exponents, nl.bfloat16).astype(np.float32), 2**16)
    np.testing.assert_allclose(total, exponents.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("initial", [2.5, "vector"])
@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.float8_e4m3], ids=str)
def test_load_reduce_starts_from_a_value(initial: Any, dtype: Any) -> None:
    """A number or a vector plus the sum of this call, read out in the result's dtype."""
    x, v = np.zeros((32, 6), np.float32), np.arange(32, dtype=np.float32)[:, None]
    issued = issue(
        nisa.exponential,
        empty(x.shape),
        tile(x),
        reduce_res=empty((32, 1), dtype),
        reduce_cmd=COMMANDS.load_reduce,
        reduce_init=tile(v) if initial == "vector" else initial,
        chip="trn3",
    )
    wanted = 6 + (v if initial == "vector" else np.full((32, 1), 2.5))
    np.testing.assert_array_equal(issued.views["reduce_res"], held(wanted, dtype))


def test_in_place_with_all_vectors_from_the_same_tile() -> None:
    """Maximum and initial value are read before they are overwritten."""
    x = sample((32, 6))
    data = tile(x)
    first, last = (data.seen(lambda t, c=c: t[:, c : c + 1]) for c in (0, 5))
    issued = issue(nisa.exponential, data, data, first, empty((32, 1)), COMMANDS.load_reduce, last, chip="trn3")
    expected = np.exp(float64((x - x[:, :1]).astype(np.float32)))
    np.testing.assert_allclose(issued.dst, expected, rtol=1e-6)
    np.testing.assert_allclose(issued.views["reduce_res"], expected.sum(axis=1, keepdims=True) + x[:, 5:], rtol=1e-5)


def test_costs() -> None:
    """A quarter of a cycle for each element, at least 64, and 64 to read the registers out."""
    for elements, result, cycles in ((64, None, 64), (1024, None, 256), (1024, empty((32, 1)), 320)):
        x = np.ones((32, elements), np.float32)
        issued = issue(nisa.exponential, empty(x.shape), tile(x), 0.0, result, COMMANDS.reset_reduce, chip="trn3")
        assert (issued.instruction.engine, issued.instruction.cycles) == ("vector", cycles)


FIVE = np.ones((2, 1, 1, 2, 2), np.float32)
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X)), {}),
    "elements": ("NK109", "`dst`", (empty((32, 4)), tile(X)), {}),
    "256 partitions": ("NK101", "`src`", (empty((256, 2)), tile(np.ones((256, 2), np.float32))), {}),
    "five dimensions": ("NK110", "`src`", (empty((2, 4)), tile(FIVE)), {}),
    "five dimensions out": ("NK110", "`dst`", (empty(FIVE.shape), tile(FIVE.reshape(2, 4))), {}),
    "HBM": ("NK201", "`src`", (DST, tile(X, "hbm")), {}),
    "result in HBM": (
        "NK201",
        "`reduce_res`",
        (DST, tile(X), 0.0, empty((32, 1), memory="hbm"), COMMANDS.reset_reduce),
        {},
    ),
    "result's size": ("NK109", "`reduce_res`", (DST, tile(X), 0.0, empty((32, 2)), COMMANDS.reset_reduce), {}),
    "result's partitions": ("NK102", "`reduce_res`", (DST, tile(X), 0.0, empty((16, 1)), COMMANDS.reset_reduce), {}),
    "result's dtype": (
        "NK301",
        "`reduce_res`",
        (DST, tile(X), 0.0, empty((32, 1), nl.int32), COMMANDS.reset_reduce),
        {},
    ),
    "tfloat32 in": ("NK301", "`src`", (DST, tile(X, dtype=nl.tfloat32)), {}),
    "uint32 out": ("NK301", "`dst`", (empty((32, 8), nl.uint32), tile(X)), {}),
    "packed": ("NK301", "`src`", (DST, tile(np.zeros((32, 8), nl.float8_e5m2_x4.dtype))), {}),
    "maximum's dtype": ("NK301", "`max_value`", (DST, tile(X), tile(V.astype(nl.bfloat16.dtype))), {}),
    "maximum's size": ("NK109", "`max_value`", (DST, tile(X), tile(X)), {}),
    "maximum's partitions": ("NK111", "`max_value`", (DST, tile(X), tile(V[:1])), {}),
    "initial's dtype": (
        "NK301",
        "`reduce_init`",
        (DST, tile(X)),
        {"reduce_cmd": COMMANDS.load_reduce, "reduce_init": tile(V.astype(np.int32))},
    ),
    "reset": ("NK609", "`reduce_cmd`", (DST, tile(X)), {"reduce_cmd": COMMANDS.reset}),
    "unused number": ("NK609", "`reduce_init`", (DST, tile(X)), {"reduce_init": 1.0}),
    "unused vector": (
        "NK609",
        "`reduce_init`",
        (DST, tile(X)),
        {"reduce_init": tile(V), "reduce_cmd": COMMANDS.reset_reduce},
    ),
    "no maximum": ("NK609", "`max_value`", (DST, tile(X), None), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.exponential, *args, chip="trn3", **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_an_unused_initial_value_is_looked_at_in_each_call() -> None:
    """A number is data: that 0 was fine in one call says nothing about the next."""

    def body() -> None:
        x, dst = placed(tile(X)), placed(DST)
        nisa.exponential(dst, x, reduce_init=0.0)
        with pytest.raises(nkitools.KernelError) as caught:
            nisa.exponential(dst, x, reduce_init=3.0)
        assert caught.value.finding.rule == "NK609"

    inside(body, chip="trn3")


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_it_came_with_neuron_core_v4(chip: str) -> None:
    """NK606 before, with the instruction to use instead."""
    finding = refusal(nisa.exponential, DST, tile(X), chip=chip)
    assert finding.rule == "NK606"
    assert "nisa.activation" in finding.remedy
