"""The reduce registers that several instructions share: what stays in them, and what is told when nothing is."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.issue import reduce_registers
from tests.isa.issued import empty, placed, tile

COMMANDS = nisa.reduce_cmd
ONES = np.ones((32, 4), np.float32)


def run(body: Callable[..., Any], chip: str = "trn3") -> tuple[Any, list[str]]:
    """What ``body(x, dst, result)`` returns, and the rules that spoke."""
    results: list[Any] = []

    def kernel() -> None:
        results.append(body(placed(tile(ONES)), placed(empty(ONES.shape)), placed(empty((32, 1)))))

    done = nkitools.simulate(kernel, chip=chip)
    return results[0], [finding.rule for finding in done.findings]


def test_the_vector_engines_instructions_share_its_registers() -> None:
    """A sum begun by tensor_scalar_reduce goes on in tensor_scalar_cumulative and ends in exponential."""

    def body(x: Any, dst: Any, result: Any) -> Any:
        nisa.tensor_scalar_reduce(dst, x, nl.multiply, 2.0, nl.add)
        nisa.tensor_scalar_cumulative(dst, x, nl.multiply, nl.add, 1.0, reduce_cmd=COMMANDS.reduce)
        seen = np.array(dst.array)
        nisa.exponential(dst, x, x[:, 0:1], result, COMMANDS.reduce)
        return seen, np.array(result.array)

    (running, total), rules = run(body)
    np.testing.assert_array_equal(running, np.tile([9, 10, 11, 12], (32, 1)))
    np.testing.assert_array_equal(total, np.full((32, 1), 16))
    assert rules == []


def test_engines_have_registers_of_their_own() -> None:
    """The Scalar Engine's sum is not the Vector Engine's."""

    def body(x: Any, dst: Any, result: Any) -> Any:
        nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, nl.add)
        nisa.activation_reduce(dst, nl.copy, x, nl.add, None, scale=10.0)
        nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, nl.add, result, reduce_cmd=COMMANDS.reduce)
        return np.array(result.array)

    total, rules = run(body, chip="trn2")
    np.testing.assert_array_equal(total, np.full((32, 1), 8))
    assert rules == []


def test_each_partition_has_its_own_register() -> None:
    """A call on partitions 32 to 63 leaves the others' registers alone, and finds those of a call on all of them."""
    x = np.ones((64, 3), np.float32)

    def kernel() -> None:
        data, dst, result = placed(tile(x)), placed(empty(x.shape)), placed(empty((64, 1)))
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 1.0, nl.add)
        nisa.tensor_scalar_reduce(dst[32:], data[32:], nl.multiply, 1.0, nl.add, reduce_cmd=COMMANDS.reduce)
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 0.0, nl.add, result, reduce_cmd=COMMANDS.reduce)
        np.testing.assert_array_equal(result.array[:, 0], [3] * 32 + [6] * 32)

    assert nkitools.simulate(kernel).findings == []


Use = Callable[[Any, Any, Any, Any], None]
USES: dict[str, Use] = {
    "tensor_scalar_reduce": lambda x, dst, result, command: nisa.tensor_scalar_reduce(
        dst, x, nl.multiply, 1.0, nl.add, result, reduce_cmd=command
    ),
    "tensor_scalar_cumulative": lambda x, dst, result, command: nisa.tensor_scalar_cumulative(
        dst, x, nl.multiply, nl.add, 1.0, reduce_cmd=command
    ),
    "exponential": lambda x, dst, result, command: nisa.exponential(dst, x, 0.0, result, command),
    "activate2": lambda x, dst, result, command: nisa.activate2(
        dst, nl.copy, x, 0.0, 0.0, nl.bypass, nl.bypass, reduce_op=nl.add, reduce_res=result, reduce_cmd=command
    ),
}


@pytest.mark.parametrize("name", USES)
def test_going_on_from_nothing_is_reported_once(name: str) -> None:
    """NK507, a warning at the first call; the results are NaN. After a reset all is well."""
    use = USES[name]

    def body(x: Any, dst: Any, result: Any) -> Any:
        use(x, dst, result, COMMANDS.reduce)
        use(x, dst, result, COMMANDS.reduce)
        seen = np.array((dst if name == "tensor_scalar_cumulative" else result).array)
        use(x, dst, result, COMMANDS.reset_reduce)
        use(x, dst, result, COMMANDS.reduce)
        return seen

    seen, rules = run(body)
    assert np.isnan(seen).all()
    assert rules == ["NK507"]


def test_registers_do_not_outlive_a_run() -> None:
    """What one kernel has left is nothing to the next."""
    use = USES["tensor_scalar_reduce"]
    assert run(lambda x, dst, result: use(x, dst, result, COMMANDS.reset_reduce))[1] == []
    assert run(lambda x, dst, result: use(x, dst, result, COMMANDS.reduce))[1] == ["NK507"]


def test_only_the_lanes_that_hold_nothing_are_reported() -> None:
    """32 of 64 registers were set; the others are named by number, and theirs alone give NaN."""
    x = np.ones((64, 3), np.float32)
    found: list[np.ndarray] = []

    def kernel() -> None:
        data, dst, result = placed(tile(x)), placed(empty(x.shape)), placed(empty((64, 1)))
        nisa.tensor_scalar_reduce(dst[:32], data[:32], nl.multiply, 1.0, nl.add)
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 1.0, nl.add, result, reduce_cmd=COMMANDS.reduce)
        found.append(np.array(result.array[:, 0]))

    (finding,) = nkitools.simulate(kernel).findings
    np.testing.assert_array_equal(found[0], [6] * 32 + [np.nan] * 32)
    assert (finding.rule, finding.severity) == ("NK507", "warning")
    assert "32 of 64" in finding.message
    assert "Vector Engine" in finding.message


def test_idle_leaves_the_vector_engines_registers_unknown() -> None:
    """Exponential says so of itself; the Scalar Engine's idle leaves its registers as they are."""

    def vector(x: Any, dst: Any, result: Any) -> None:
        USES["exponential"](x, dst, None, COMMANDS.reset_reduce)
        USES["exponential"](x, dst, None, COMMANDS.idle)
        USES["tensor_scalar_reduce"](x, dst, result, COMMANDS.reduce)

    def scalar(x: Any, dst: Any, result: Any) -> Any:
        USES["activate2"](x, dst, None, COMMANDS.reset_reduce)
        USES["activate2"](x, dst, result, COMMANDS.idle)
        return np.array(result.array)

    assert run(vector)[1] == ["NK507"]
    total, rules = run(scalar)
    assert rules == []
    assert (total == 4).all()


@pytest.mark.parametrize("name", ["exponential", "activate2"])
def test_reading_registers_that_hold_nothing(name: str) -> None:
    """``reduce_res`` with idle: NK507 and NaN where nothing was reduced before."""

    def body(x: Any, dst: Any, result: Any) -> Any:
        USES[name](x, dst, result, COMMANDS.idle)
        return np.array(result.array)

    seen, rules = run(body)
    assert rules == ["NK507"]
    assert np.isnan(seen).all()


def test_a_nan_among_the_data_is_a_value() -> None:
    """Only registers that nothing has set are told of, not those that a NaN was reduced into."""
    x = np.full((32, 4), np.nan, np.float32)

    def kernel() -> None:
        data, dst, result = placed(tile(x)), placed(empty(x.shape)), placed(empty((32, 1)))
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 1.0, nl.maximum)
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 1.0, nl.maximum, result, reduce_cmd=COMMANDS.reduce)

    assert nkitools.simulate(kernel).findings == []


def test_256_partitions_reduce_too_and_are_reported_once() -> None:
    """Under rules="report" there are registers enough for the partitions that there are not."""
    x = np.ones((256, 2), np.float32)
    found: list[np.ndarray] = []

    def kernel() -> None:
        data, dst, result = placed(tile(x)), placed(empty(x.shape)), placed(empty((256, 1)))
        nisa.tensor_scalar_reduce(dst[:128], data[:128], nl.multiply, 1.0, nl.add)
        nisa.tensor_scalar_reduce(dst, data, nl.multiply, 1.0, nl.add, result)
        found.append(np.array(result.array))

    done = nkitools.simulate(kernel, rules="report")
    assert [finding.rule for finding in done.findings] == ["NK101"]
    assert (found[0] == 2).all()


# --- going on from another reduction ---------------------------------------------------------------------------------


def _total(dst: Any, x: Any, result: Any, command: Any, operator: Any = nl.add) -> None:
    nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, operator, result, reduce_cmd=command)


def _other_sum(x: Any, dst: Any, result: Any) -> None:
    """A sum of exponentials over two turns, with another instruction's sum between them."""
    between = nl.ndarray((32, 1), dtype=nl.float32)
    for turn in range(2):
        nisa.exponential(dst, x, 0.0, result, COMMANDS.reduce if turn else COMMANDS.reset_reduce)
        _total(dst, x, between, COMMANDS.reset_reduce)


def _other_operator(x: Any, dst: Any, result: Any) -> None:
    """A sum that goes on from maxima."""
    _total(dst, x, None, COMMANDS.reset_reduce, nl.maximum)
    _total(dst, x, result, COMMANDS.reduce)


def _other_result(x: Any, dst: Any, result: Any) -> None:
    """The same instruction at another line, into another tile."""
    first = nl.ndarray((32, 1), dtype=nl.float32)
    nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, nl.add, first)
    nisa.tensor_scalar_reduce(dst, x, nl.multiply, 2.0, nl.add, result, reduce_cmd=COMMANDS.reduce)


def _other_activation(x: Any, dst: Any, result: Any) -> None:
    """On the Scalar Engine, whose sum of another instruction was handed out."""
    first = nl.ndarray((32, 1), dtype=nl.float32)
    nisa.activation_reduce(dst, nl.copy, x, nl.add, first)
    nisa.activation(dst, nl.exp, x, reduce_op=nl.add, reduce_res=result, reduce_cmd=COMMANDS.reduce)


def _other_running(x: Any, dst: Any, result: Any) -> None:
    """A running product that goes on from a sum."""
    _total(dst, x, result, COMMANDS.reset_reduce)
    nisa.tensor_scalar_cumulative(dst, x, nl.add, nl.multiply, 0.0, reduce_cmd=COMMANDS.reduce)


def _some_lanes(x: Any, dst: Any, result: Any) -> None:
    """The maxima of the upper half alone stand in the way of the whole sum."""
    _total(dst, x, None, COMMANDS.reset_reduce)
    _total(dst[0:16], x[0:16], None, COMMANDS.reset_reduce, nl.maximum)
    _total(dst, x, result, COMMANDS.reduce)


@pytest.mark.parametrize(
    "body", [_other_sum, _other_operator, _other_result, _other_activation, _other_running, _some_lanes]
)
def test_going_on_from_another_reduction_is_told(body: Any) -> None:
    """NK507, a warning at the line that goes on; it names the instruction that has filled the registers."""
    found: list[Any] = []

    def kernel() -> None:
        body(placed(tile(ONES)), placed(empty(ONES.shape)), placed(empty((32, 1))))

    found = nkitools.simulate(kernel, chip="trn3").findings
    assert [(each.rule, each.severity) for each in found] == [("NK507", "warning")]
    assert "has filled by nl." in found[0].message
    assert "test_reduce_registers.py" in found[0].message


def test_a_result_that_is_gone_is_no_other_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """NK507 though a new array may have the identity that the first result's had: identities are no keys."""
    monkeypatch.setattr(reduce_registers, "id", lambda array: 1, raising=False)

    def kernel() -> None:
        x, dst = placed(tile(ONES)), placed(empty(ONES.shape))
        nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, nl.add, placed(empty((32, 1))))
        gc.collect()
        other = placed(empty((32, 1)))
        nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, nl.add, other, reduce_cmd=COMMANDS.reduce)

    assert [each.rule for each in nkitools.simulate(kernel, chip="trn3").findings] == ["NK507"]


def _in_turns(x: Any, dst: Any, result: Any) -> None:
    """One line in a loop, with a new tile for its result in each turn."""
    for turn in range(3):
        _total(dst, x, nl.ndarray((32, 1), dtype=nl.float32), COMMANDS.reduce if turn else COMMANDS.reset_reduce)


def _unrolled(x: Any, dst: Any, result: Any) -> None:
    """Two lines, one result."""
    nisa.tensor_scalar_reduce(dst, x, nl.multiply, 1.0, nl.add, result)
    nisa.tensor_scalar_reduce(dst, x, nl.multiply, 2.0, nl.add, result, reduce_cmd=COMMANDS.reduce)


def _covered(x: Any, dst: Any, result: Any) -> None:
    """Maxima of half of the lanes, which a sum of all of them has begun anew."""
    _total(dst[0:16], x[0:16], None, COMMANDS.reset_reduce, nl.maximum)
    _total(dst, x, None, COMMANDS.reset_reduce)
    _total(dst, x, result, COMMANDS.reduce)


def _reset_before(x: Any, dst: Any, result: Any) -> None:
    """A reset alone begins any reduction."""
    nisa.activation_reduce(dst, nl.copy, x, nl.add, result)
    nisa.activation(dst, nl.copy, x, reduce_cmd=COMMANDS.reset)
    nisa.activation(dst, nl.exp, x, reduce_op=nl.add, reduce_res=result, reduce_cmd=COMMANDS.reduce)


@pytest.mark.parametrize("body", [_in_turns, _unrolled, _covered, _reset_before])
def test_a_reduction_that_goes_on_from_itself_is_silent(body: Any) -> None:
    """Whatever else the registers have held before it began."""
    assert run(body)[1] == []
