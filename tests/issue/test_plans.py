"""Plans: what is kept between calls, and that it does not show in values."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.core import current_core
from nkitools.chip.memory import Storage
from nkitools.chip.tensor import NkiTensor
from tests.isa.issued import Tile, empty, inside, issue, placed, tile

X = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
EYE = np.eye(32, dtype=np.float32)


def calls() -> list[tuple[Any, ...]]:
    """One call of every instruction, and of those ways to compute that differ."""
    x, n, half = tile(X), tile(X.astype(np.int32)), tile(X.astype(nl.bfloat16.dtype))
    dst, psum = empty(X.shape), empty((16, 16), memory="psum")
    return [
        (nisa.dma_copy, dst, x),
        (nisa.tensor_copy, dst, half),
        (nisa.memset, dst, 1.0),
        (nisa.memset, empty((4, 4), nl.float8_e5m2_x4), 0),
        (nisa.iota, dst, [[1, 16]]),
        (nisa.tensor_tensor, dst, x, x, nl.add),
        (nisa.tensor_tensor, dst, half, x, nl.add),
        (nisa.tensor_tensor, empty(X.shape, nl.int32), n, n, nl.add),
        (nisa.tensor_tensor, empty(X.shape, nl.int32), n, n, nl.bitwise_and),
        (nisa.tensor_scalar, dst, x, nl.add, 1.0),
        (nisa.tensor_scalar, dst, x, nl.abs, 0, False, nl.add, 1.0),
        (nisa.tensor_scalar, empty(X.shape, nl.int32), n, nl.bitwise_and, 1),
        (nisa.reciprocal, dst, x),
        (nisa.tensor_reduce, empty((32, 1)), nl.add, x, 1),
        (nisa.activation, dst, nl.exp, x, 0.0),
        (nisa.activation, dst, nl.exp, x, None, 1.0, nl.add, empty((32, 1)), nisa.reduce_cmd.reset_reduce),
        (nisa.nc_matmul, psum, x, x),
        (nisa.nc_matmul, empty((16, 32), memory="psum"), x, tile(EYE), False, False, True),
        (nisa.nc_transpose, empty((16, 32), memory="psum"), x),
        (nisa.dma_transpose, empty((16, 32)), x),
        (nisa.rng, empty(X.shape, nl.uint32)),
        (nisa.dropout, dst, x, 0.5),
    ]


def reachable(value: Any, seen: set[int]) -> Iterator[Any]:
    """What a function holds on to: its closure's contents, and what is in them."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    inner: list[Any] = []
    if isinstance(value, FunctionType):
        inner = [cell.cell_contents for cell in value.__closure__ or () if cell.cell_contents is not None]
    elif isinstance(value, (tuple, list)):
        inner = list(value)
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("nkitools"):
        inner = list(vars(value).values())
    for each in inner:
        yield from reachable(each, seen)


@pytest.mark.parametrize("number", range(len(calls())))
def test_a_plan_keeps_no_tensor(number: int) -> None:
    """It outlives the run, and must not keep a run's arrays alive."""
    instruction, *args = calls()[number]

    def body() -> Any:
        before = dict(current_core("a test").plans)
        current_core("a test").plans.clear()
        instruction(*[placed(each) if isinstance(each, Tile) else each for each in args])
        plans = list(current_core("a test").plans.values())
        current_core("a test").plans.update(before)
        return plans

    (plan,) = inside(body, chip="trn1" if instruction is not nisa.nc_matmul else "trn2")
    held = list(reachable(plan.compute, set()))
    assert not [each for each in held if isinstance(each, (NkiTensor, Storage))]
    assert not [each for each in held if isinstance(each, np.ndarray) and each.size > 1]


@pytest.mark.parametrize(("accumulate", "overwrites"), [(False, True), (None, False), (True, False)])
def test_a_matmul_overwrites_where_its_map_has_no_earlier_value(accumulate: bool | None, overwrites: bool) -> None:
    """The element map decides what a plan overwrites: a matmul that does not accumulate overwrites its whole region."""
    operands = tile(np.zeros((16, 16), np.float32), memory="psum"), tile(X), tile(X)

    def body() -> Any:
        core = current_core("a test")
        kept, plans = dict(core.plans), core.plans
        plans.clear()
        nisa.nc_matmul(*(placed(each) for each in operands), accumulate=accumulate)
        found = next(iter(plans.values()))
        plans.update(kept)
        return found

    plan = inside(body, chip="trn3")
    assert plan.overwrites is overwrites
    assert ("dst" in {source.operand for source, _ in plan.elements.of("dst")}) is not overwrites


@pytest.mark.parametrize("number", range(len(calls())))
def test_both_call_forms(number: int) -> None:
    """By position and by keyword."""
    instruction, *args = calls()[number]
    named = instruction.__signature__.bind(*args).arguments
    np.testing.assert_array_equal(issue(instruction, *args).dst, issue(instruction, **named).dst)


def test_a_kept_plan_takes_the_next_calls_numbers_and_tensors() -> None:
    """Immediates and tensors are data; only their kinds and layouts are kept."""

    def body() -> list[np.ndarray]:
        x, y, dst = placed(tile(X)), placed(tile(2 * X)), placed(empty(X.shape))
        seen = []
        for data, number in ((x, 1.0), (y, 1.0), (x, -5.0)):
            nisa.tensor_scalar(dst, data, nl.add, number)
            seen.append(np.array(dst.array))
        nisa.tensor_scalar(dst, x, nl.add, 3)
        return [*seen, np.array(dst.array)]

    for result, expected in zip(inside(body), (X + 1, 2 * X + 1, X - 5, X + 3), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_static_arguments_are_part_of_the_plan() -> None:
    """Another operator, another flag, another axis: another computation."""

    def body() -> list[float]:
        x, dst = placed(tile(X)), placed(empty((32, 1)))
        seen = []
        for op, negate in ((nl.add, False), (nl.add, True), (nl.maximum, False), (nl.maximum, 1)):
            nisa.tensor_reduce(dst, op, x, 1, negate)
            seen.append(float(dst.array[1, 0]))
        return seen

    assert inside(body) == [376, -376, 31, -31]


def test_a_broken_rule_is_reported_in_every_run() -> None:
    """A combination that breaks a rule is never taken from the kept plans."""
    for _ in range(2):
        with pytest.raises(nkitools.KernelError) as caught:
            issue(nisa.tensor_copy, empty((32, 8)), tile(X, view=lambda t: t[:, 0:8]), nisa.engine.scalar, chip="trn1")
        assert caught.value.finding.rule == "NK606"


@pytest.mark.parametrize("rules", ["report", "off"])
def test_legality_does_not_stop_what_can_be_computed(rules: str) -> None:
    """``report`` collects and goes on, ``off`` says nothing; both compute."""
    tall = np.ones((256, 4), np.float32)
    broken: list[tuple[tuple[Any, ...], dict[str, Any], str, Any]] = [
        ((nisa.tensor_tensor, empty(tall.shape), tile(tall), tile(tall), nl.add), {}, "NK101", 2),
        ((nisa.tensor_copy, empty((1, 70000)), tile(np.ones((1, 70000), np.float32))), {}, "NK107", 1),
        ((nisa.memset, empty((64, 4), view=lambda t: t[7:9]), 3.0), {}, "NK108", 3),
        ((nisa.activation, empty(X.shape), nl.copy, tile(np.ones_like(X), "hbm")), {}, "NK201", 1),
        ((nisa.tensor_copy, empty(X.shape), tile(np.ones_like(X))), {"engine": nisa.engine.tensor}, "NK206", 1),
        ((nisa.nc_transpose, empty((16, 32), nl.bfloat16, "psum"), tile(np.ones_like(X))), {}, "NK302", 1),
    ]
    for (instruction, *args), kwargs, rule, value in broken:
        issued = issue(instruction, *args, **kwargs, rules=rules)
        assert (issued.dst.astype(np.float32) == value).all()
        assert issued.rules == ([rule] if rules == "report" else [])


def test_one_cause_is_one_finding_along_a_chain_of_instructions() -> None:
    """256 partitions, said once of the data and of all that is computed from it."""
    tall = np.ones((256, 4), np.float32)

    def kernel() -> None:
        x, y, z = placed(tile(tall)), placed(empty(tall.shape)), placed(empty((256, 1)))
        nisa.activation(y, nl.exp, x)
        nisa.tensor_scalar(y, y, nl.add, 1.0)
        nisa.tensor_reduce(z, nl.add, y, 1)
        nisa.tensor_scalar(y, y, nl.multiply, z)

    run = nkitools.simulate(kernel, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK101"]
    assert "`data`" in run.findings[0].message


SEQUENCES: dict[str, Any] = {
    "shuffle_mask": lambda n: nisa.nc_stream_shuffle(placed(empty((32, 16))), placed(tile(X)), n * 32),
    "pattern": lambda n: nisa.iota(placed(empty((32, 4), nl.int32)), type(n)([type(n)([*n, 4])])),
    "tile_position": lambda n: nisa.nc_matmul(
        placed(empty((16, 16), memory="psum")),
        placed(tile(X)),
        placed(tile(X)),
        tile_position=n * 2,
        tile_size=(32, 32),
    ),
}


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("good_first", [False, True])
def test_sequences_that_only_compare_equal_have_plans_of_their_own(kind: Any, name: str, good_first: bool) -> None:
    """NK609 for 0.0 where integers belong, whether or not the same call with 0 came before."""

    def body() -> None:
        for _ in range(3 * good_first):
            SEQUENCES[name](kind([0]))
        with pytest.raises(nkitools.KernelError) as raised:
            SEQUENCES[name](kind([0.0]))
        assert raised.value.finding.rule == "NK609"

    inside(body)
