"""What NKI 0.7 changed of instructions that 0.6 has: engines, reductions, limits, kinds of dependencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import float64, held, sample
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

COMMANDS, ENGINES = nisa.reduce_cmd, nisa.engine
SINCE = "is public since NKI 0.7; this is NKI 0.6"
X = np.ones((32, 8), np.float32)


# --- activation and activate2 on the GpSimd Engine -------------------------------------------------------------------


FUNCTIONS = {"square": np.square, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "copy": lambda x: x}
ENGINE_OF = st.sampled_from([ENGINES.scalar, ENGINES.gpsimd])


@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.sampled_from([nl.float32, nl.bfloat16, nl.int8]),
    ENGINE_OF,
    st.integers(1, 40),
    st.sampled_from([0.5, -2.0]),
    st.integers(0, 99),
)
def test_an_activation_computes_the_same_on_both_engines(
    name: str, dtype: Any, engine: Any, size: int, scale: float, seed: int
) -> None:
    """``op(data * scale + bias)``, as a float64 reference has it; the record names the engine."""
    x, bias = sample((64, size), low=-2, high=2, seed=seed), sample((64, 1), seed=seed + 1)
    dst, op = empty(x.shape, dtype), getattr(nl, name)
    issued = issue(nisa.activation, dst, op, tile(x), bias=tile(bias), scale=scale, engine=engine, chip="trn3")
    expected = held(FUNCTIONS[name](float64(x) * scale + float64(bias)), dtype).astype(np.float64)
    # A result beside a limit of rounding may be cast to the next number.
    step = 1.0 if dtype is nl.int8 else 2.0**-7 * np.abs(expected).max() if dtype is nl.bfloat16 else 2e-5
    assert np.abs(issued.dst.astype(np.float64) - expected).max() <= step
    assert issued.instruction.engine == ("gpsimd" if engine is ENGINES.gpsimd else "scalar")
    if engine is ENGINES.gpsimd:
        assert issued.instruction.cycles == 150 + size


PAIRS = {"multiply": np.multiply, "add": np.add, "subtract": np.subtract, "bypass": lambda x, _: x}


@given(
    st.sampled_from([("multiply", "add"), ("multiply", "subtract"), ("add", "bypass"), ("subtract", "bypass")]),
    ENGINE_OF,
    st.integers(1, 40),
    st.integers(0, 99),
)
def test_activate2_computes_the_same_on_both_engines(pair: tuple[str, str], engine: Any, size: int, seed: int) -> None:
    """``op((data op0 imm0) op1 imm1)`` on the engine that the record names."""
    x, column = sample((64, size), low=-2, high=2, seed=seed), sample((64, 1), seed=seed + 1)
    first, second = pair
    args = (empty(x.shape), nl.relu, tile(x), tile(column), 1.5, getattr(nl, first), getattr(nl, second))
    issued = issue(nisa.activate2, *args, engine=engine, chip="trn3")
    results = PAIRS[second](PAIRS[first](float64(x), float64(column)), 1.5)
    np.testing.assert_allclose(issued.dst, np.maximum(results, 0), rtol=1e-5, atol=1e-5)
    assert issued.instruction.engine == ("gpsimd" if engine is ENGINES.gpsimd else "scalar")


SUM: dict[str, Any] = {"reduce_op": nl.add, "reduce_res": empty((32, 1)), "reduce_cmd": COMMANDS.reset_reduce}
ENGINE_REFUSED: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "the Vector Engine": ("NK206", "engine.vector", empty((32, 8)), {"engine": ENGINES.vector}),
    "no engine": ("NK609", "engine", empty((32, 8)), {"engine": "gpsimd"}),
    "before NeuronCore-v4": ("NK606", "NeuronCore-v3", empty((32, 8)), {"engine": ENGINES.gpsimd, "chip": "trn2"}),
    "into PSUM": ("NK206", "PSUM", empty((32, 8), memory="psum"), {"engine": ENGINES.gpsimd}),
    "a reduction": ("NK206", "reduces", empty((32, 8)), {"engine": ENGINES.gpsimd, **SUM}),
    "before NKI 0.7": ("NK609", SINCE, empty((32, 8)), {"engine": ENGINES.scalar, "version": "0.6"}),
}


@pytest.mark.parametrize("case", ENGINE_REFUSED)
def test_engines_that_an_activation_does_not_run_on(case: str) -> None:
    """One finding, of the rule of wrong engines, of chips or of versions."""
    rule, named, dst, kwargs = ENGINE_REFUSED[case]
    finding = refusal(nisa.activation, dst, nl.relu, tile(X), **{"chip": "trn3", **kwargs})
    assert finding.rule == rule
    assert named in finding.message


# --- scalar_tensor_tensor with a reduction ---------------------------------------------------------------------------

REDUCERS: dict[str, Any] = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}


@given(
    st.sampled_from(sorted(REDUCERS)), st.integers(1, 9), st.sampled_from([nl.float32, nl.bfloat16]), st.integers(0, 99)
)
def test_two_operators_and_a_reduction(name: str, size: int, dtype: Any, seed: int) -> None:
    """``reduce_res`` is the reduction of the results before their cast, along all free dimensions."""
    x, y = sample((48, 2, size), seed=seed), sample((48, 2, size), seed=seed + 1)
    results = (float64(x) * 0.5).astype(np.float32) - y
    issued = issue(
        nisa.scalar_tensor_tensor,
        empty(x.shape, dtype),
        tile(x),
        nl.multiply,
        0.5,
        nl.subtract,
        tile(y),
        reduce_op=getattr(nl, name),
        reduce_res=empty((48, 1)),
    )
    np.testing.assert_array_equal(issued.dst, held(results, dtype))
    expected = REDUCERS[name](float64(results), axis=(1, 2))[:, None]
    np.testing.assert_allclose(issued.views["reduce_res"], expected, rtol=1e-5, atol=1e-5)
    assert issued.instruction.cycles == 64 + 64


def test_a_reduction_goes_on_from_tile_to_tile() -> None:
    """``reset_reduce`` begins, ``reduce`` goes on; a call without ``reduce_res`` leaves the registers alone."""

    def body() -> list[float]:
        data, dst, result, seen = placed(tile(X)), placed(empty((32, 8))), placed(empty((32, 1))), []

        def call(**kwargs: Any) -> None:
            nisa.scalar_tensor_tensor(dst, data, nl.multiply, 2.0, nl.add, data, **kwargs)
            seen.append(float(result.array[0, 0]) if "reduce_res" in kwargs else 0.0)

        call(reduce_res=result)
        call()
        call(reduce_cmd=COMMANDS.reduce)
        call(reduce_cmd=COMMANDS.reduce, reduce_res=result)
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 1.0, nl.add, result, reduce_cmd=COMMANDS.reduce)
        seen.append(float(result.array[0, 0]))
        return seen

    assert inside(body) == [24, 0, 0, 72, 80]


def test_before_0_7_there_is_no_reduction() -> None:
    """And ``name`` stands in its place."""
    args = (empty((32, 8)), tile(X), nl.multiply, 2.0, nl.add, tile(X))
    finding = refusal(nisa.scalar_tensor_tensor, *args, reduce_res=empty((32, 1)), version="0.6")
    assert finding.rule == "NK609"
    assert finding.message == f"nisa.scalar_tensor_tensor: the argument `reduce_res` {SINCE}"
    assert "nisa.tensor_reduce" in finding.remedy


# --- limits of dimensions that NKI 0.7 states ------------------------------------------------------------------------


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    """A written operand."""
    return tile(np.ones(shape, dtype))


FIVE = (4, 1, 1, 2, 3)
RANKS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "bn_aggr's dst": (nisa.bn_aggr, (empty((4, 1, 1, 2)), ones(4, 6))),
    "tensor_scalar_reduce": (nisa.tensor_scalar_reduce, (empty(FIVE), ones(*FIVE), nl.add, 1.0, nl.add, empty((4, 1)))),
    "tensor_copy_predicated": (nisa.tensor_copy_predicated, (empty(FIVE), 1.0, ones(*FIVE, dtype=np.uint8))),
}


@pytest.mark.parametrize("case", RANKS)
def test_more_dimensions_than_0_7_states(case: str) -> None:
    """NK110 since 0.7, also where no version is said; 0.6 states no number and computes."""
    instruction, args = RANKS[case]
    for version in ("0.7", "auto"):
        finding = refusal(instruction, *args, version=version)
        assert finding.rule == "NK110"
        assert instruction.__name__ in finding.message
    assert issue(instruction, *args, version="0.6").rules == []


# --- depends_on ------------------------------------------------------------------------------------------------------


def depending(**kwargs: Any) -> Any:
    """A kernel whose second instruction depends on the first one."""

    def kernel() -> None:
        dst = nl.ndarray((32, 8), nl.float32, nl.sbuf)
        first = nisa.memset(dst, 1.0)
        assert nisa.memset(dst, 2.0).depends_on(first, **kwargs) is not None

    return kernel


@pytest.mark.parametrize("kind", nisa.dependency)
def test_kinds_of_dependencies(kind: Any) -> None:
    """Both run without a finding under 0.7, and are refused under 0.6 with what to write."""
    assert nkitools.simulate(depending(kind=kind), nki_version="0.7").findings == []
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(depending(kind=kind), nki_version="0.6")
    assert caught.value.finding.rule == "NK609"
    assert caught.value.finding.message == f"depends_on: the argument `kind` {SINCE}"


def test_a_dependency_without_a_kind_is_announced_to_go() -> None:
    """A hint since 0.7, with the kind that keeps the behaviour; nothing under 0.6."""
    (found,) = nkitools.simulate(depending(), nki_version="0.7").findings
    assert (found.rule, found.severity) == ("NK618", "hint")
    assert "nisa.dependency.runtime" in found.remedy
    assert nkitools.simulate(depending(), nki_version="0.6").findings == []


def test_what_is_no_kind_is_refused() -> None:
    """NK609."""
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(depending(kind="runtime"))
    assert caught.value.finding.rule == "NK609"


def test_the_order_of_a_schedule_holds_in_loops_too() -> None:
    """A wait on what another loop issued is refused; ``schedule`` is no wait."""

    def kernel(kind: Any) -> None:
        dst, handles = nl.ndarray((32, 8), nl.float32, nl.sbuf), []
        nl.fori_loop(0, 2, lambda i: handles.append(nisa.memset(dst, 1.0)))
        nisa.memset(dst, 2.0).depends_on(handles[-1], kind=kind)

    run = nkitools.simulate(kernel, nisa.dependency.schedule)
    assert [each.rule for each in run.findings] == ["NK622"]  # the body appends to a list from outside
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, nisa.dependency.runtime)
    assert caught.value.finding.rule == "NK601"
