"""The mixture of experts against float64 NumPy, expert by expert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import moe as kernel_module
from kernels.nki.moe import moe
from tests.kernels.mutants import mutant

Wide = npt.NDArray[np.float64]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
UNIT = 2.0**-24  # what rounding to float32 changes at most, relatively
UNITS = {np.dtype(np.float32): UNIT, BFLOAT16: 2.0**-8}
EXP = 6  # units by which an exponential, or what is made of one, is off at most
SIZES = [(1, 8, 8, 8, 1), (130, 128, 128, 8, 8), (300, 160, 200, 12, 3)]  # tokens, hidden, inner, experts, k
SIZE = (300, 64, 40, 9, 2)


def case(sizes: tuple[int, int, int, int, int], dtype: Any = np.float32) -> tuple[Any, ...]:
    """Tokens, router, gate, up and down, each drawn so that what it makes is of the order of 1; and k."""
    count, hidden, inner, experts, k = sizes
    random = np.random.default_rng(sum(sizes))

    def drawn(*shape: int) -> Any:
        return (random.standard_normal(shape) / np.sqrt(shape[-2])).astype(dtype)

    tokens = random.standard_normal((count, hidden)).astype(dtype)
    weights = (drawn(experts, hidden, inner), drawn(experts, hidden, inner), drawn(experts, inner, hidden))
    return tokens, drawn(hidden, experts), *weights, k


def routing(tokens: Wide, router: Wide, k: int) -> tuple[npt.NDArray[np.intp], Wide, Wide]:
    """The experts of each token, their weights, and by how much, relatively, float32 can be off in these."""
    logits = tokens @ router
    error = (len(router) + 1) * UNIT * (np.abs(tokens) @ np.abs(router)).max(axis=1, keepdims=True)
    chosen = np.argsort(-logits, axis=1, kind="stable")
    ordered = np.take_along_axis(logits, chosen, axis=1)
    if k < logits.shape[1]:
        assert np.all(ordered[:, k - 1 : k] - ordered[:, k : k + 1] > 2 * error), "the case leaves the choice open"
    powers = np.exp(ordered[:, :k] - ordered[:, :1])
    # Numerator and denominator are off by what the differences of two logits are, the exponential and its sum.
    relative = 2 * (2 * error + UNIT * (ordered[:, :1] - ordered[:, k - 1 : k] + EXP + k + 2))
    return chosen[:, :k], powers / powers.sum(axis=1, keepdims=True), relative


def expert_reference(tokens: Wide, gate: Wide, up: Wide, down: Wide, unit: float) -> tuple[Wide, Wide]:
    """What an expert makes of tokens, and by how much it can be off.

    A product of n terms in float32 is off by n + 1 units of the sum of magnitudes; silu is nowhere steeper than 1.1;
    ``unit`` is the dtype's, to which the inner values and the result are rounded.
    """
    opening, values = tokens @ gate, tokens @ up
    off = [(len(gate) + 1) * UNIT * (np.abs(tokens) @ np.abs(each)) for each in (gate, up)]
    silu = opening / (1 + np.exp(-opening))
    off_silu = 1.1 * off[0] + EXP * UNIT * np.abs(silu)
    inner = silu * values
    off_inner = off_silu * np.abs(values) + (np.abs(silu) + off_silu) * off[1]
    off_inner += (np.abs(inner) + off_inner) * (unit + UNIT)
    result = inner @ down
    error = (off_inner + (len(down) + 1) * UNIT * (np.abs(inner) + off_inner)) @ np.abs(down)
    return result, error + (np.abs(result) + error) * unit


def assert_mixture(measured: Any, arguments: tuple[Any, ...]) -> None:
    """The weighted sums agree, and are of the tokens' dtype."""
    (tokens, router, gate, up, down), k = (each.astype(np.float64) for each in arguments[:5]), arguments[5]
    unit = UNITS[arguments[0].dtype]
    chosen, weights, relative = routing(tokens, router, k)
    expected, bound = np.zeros_like(tokens), np.zeros_like(tokens)
    for expert in range(router.shape[1]):
        at, choice = np.nonzero(chosen == expert)
        output, error = expert_reference(tokens[at], gate[expert], up[expert], down[expert], unit)
        weight, changed = weights[at, choice][:, None], relative[at] + (k + 1) * UNIT
        expected[at] += weight * output
        bound[at] += weight * (error + (np.abs(output) + error) * changed)
    bound += (np.abs(expected) + bound) * unit
    assert measured.dtype == arguments[0].dtype
    assert np.all(np.abs(measured.astype(np.float64) - expected) <= bound)


@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_moe(run_kernel: Callable[..., Any], sizes: tuple[int, int, int, int, int], dtype: Any) -> None:
    """Any number of tokens and sizes that fill no tile."""
    arguments = case(sizes, dtype)
    assert_mixture(run_kernel(moe, *arguments), arguments)


@pytest.mark.parametrize("programs", [1, 2])
def test_all_tokens_choose_the_same_experts(run_kernel: Callable[..., Any], programs: int) -> None:
    """No token is dropped: two experts fill several blocks, the others none. The exponentials of logits overflow."""
    tokens, router, *weights = case(SIZE)
    tokens[:, 0], router[0] = 4, np.where(np.arange(9) == 3, 100, np.where(np.arange(9) == 8, 10, 0))
    arguments = (tokens, router, *weights)
    assert set(routing(tokens.astype(np.float64), router.astype(np.float64), 2)[0].flat) == {3, 8}
    assert_mixture(run_kernel(moe[programs], *arguments), arguments)


@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("sizes", [SIZES[0], SIZE], ids=str)
def test_two_cores(run_kernel: Callable[..., Any], sizes: tuple[int, int, int, int, int], dtype: Any) -> None:
    """Two cores share the blocks, and after the barrier the tokens; the result is that of one core, bit by bit."""
    arguments = case(sizes, dtype)
    measured = run_kernel(moe[2], *arguments)
    assert_mixture(measured, arguments)
    np.testing.assert_array_equal(measured, run_kernel(moe, *arguments))


@pytest.mark.parametrize(("chip", "programs"), [("trn1", 1), ("trn2", 1), ("trn2", 2), ("trn3", 1), ("trn3", 2)])
def test_every_chip(chip: str, programs: int) -> None:
    """The same on all chips, and no rule has anything to say; trn1 has no barrier between cores."""
    arguments = case(SIZE, BFLOAT16)
    run = nkitools.simulate(moe, *arguments, chip=chip, grid=programs)
    assert run.findings == []
    assert_mixture(run.outputs, arguments)


@pytest.mark.parametrize(("experts", "k"), [(7, 1), (8, 9), (8, 0), (513, 2)])
def test_sizes_that_are_refused(experts: int, k: int) -> None:
    """What the instructions cannot search is an assertion of the kernel."""
    with pytest.raises(AssertionError, match="must be"):
        nkitools.simulate(moe, *case((4, 8, 8, experts, k)))


MISTAKES = {
    "the token just before is not counted": ("        offset=-1,\n", "        offset=-2,\n"),
    "tokens of earlier tiles are not counted": (
        "dst=before, data1=before, data2=_product([everywhere], [routed]), op=nl.add",
        "dst=before, data1=before, data2=_product([everywhere], [routed]), op=nl.maximum",
    ),
    "a block belongs to the expert before": ("op0=nl.less_equal", "op0=nl.less"),
    "partly filled blocks are not counted": ("operand0=float(BLOCK - 1))", "operand0=0.0)"),
    "weights of the k best do not add up to 1": (
        "data=weights, op0=nl.multiply, operand0=total",
        "data=weights, op0=nl.multiply, operand0=1.0",
    ),
    "the gate is not opened by its own size": ("op=nl.silu", "op=nl.sigmoid"),
    "every choice is weighted like the first": ("operand0=weights[:, column]", "operand0=weights[:, 0:1]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    arguments = case(SIZE)
    broken = mutant(kernel_module, *MISTAKES[mistake]).moe
    with pytest.raises((AssertionError, nkitools.KernelError)):
        assert_mixture(nkitools.simulate(broken, *arguments).outputs, arguments)


def test_without_the_barrier_a_race_is_reported() -> None:
    """One core reads what the other one writes (NK502)."""
    broken = mutant(kernel_module, "nisa.core_barrier(data=outputs, cores=(0, 1))", "pass").moe
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(broken, *case(SIZE), grid=2)
    assert caught.value.finding.rule == "NK502"
    assert "`outputs`" in caught.value.finding.message


def test_a_tile_of_tokens_left_out_is_reported() -> None:
    """The elements that were never written are named (NK403)."""
    broken = mutant(kernel_module, "range(program, len(tiles), programs)", "range(program, len(tiles) - 1, programs)")
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(broken.moe, *case(SIZE))
    assert caught.value.finding.rule == "NK403"
    assert "`result`" in caught.value.finding.message
    assert "`result[256:300, 0:64]` never written (2816 of 19200 elements)" in caught.value.finding.message
