"""Registers: 32-bit numbers that Python does not see."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.registers import VirtualRegister
from tests.chip.models import refused

NUMBERS = st.integers(-10_000, 10_000)


@given(NUMBERS, NUMBERS, st.sampled_from([operator.add, operator.sub, operator.mul]))
def test_arithmetic_makes_new_registers(left: int, right: int, function: Callable[..., Any]) -> None:
    """Of registers and integers in either order; the operands keep their values."""
    a, b = VirtualRegister(left), VirtualRegister(right)
    for result in (function(a, b), function(a, right), function(left, b)):
        assert isinstance(result, VirtualRegister)
        assert result.read("a test") == function(left, right)
    assert (a.value, b.value) == (left, right)


@given(NUMBERS, st.integers(1, 100))
def test_quotients_and_remainders(left: int, right: int) -> None:
    """As Python's."""
    a = VirtualRegister(left)
    assert (a // right).value == left // right
    assert (a % VirtualRegister(right)).value == left % right


@pytest.mark.parametrize("divided", [operator.floordiv, operator.mod])
def test_a_division_by_zero_is_refused(divided: Callable[..., Any]) -> None:
    """By a number and by a register: NK609, where Python has ZeroDivisionError."""
    for zero in (0, VirtualRegister(0)):
        with refused("NK609", "a register is divided by 0"):
            divided(VirtualRegister(7), zero)


@pytest.mark.parametrize("value", [0, 1, None])
def test_a_register_has_no_truth_value_outside_of_a_run(value: int | None) -> None:
    """It is refused as inside of one: the number is the device's."""
    with refused("NK602", "the truth value of a register is asked for"):
        bool(VirtualRegister(value))


def test_the_result_of_arithmetic_is_not_frozen() -> None:
    """A loop's counter is, what is computed of it is another register."""
    counter = VirtualRegister(3, frozen=True)
    (counter + 1).write("a test", 7)
    with refused("NK601", "a test writes the counter of a dynamic loop"):
        counter.write("a test", 7)
    assert counter.value == 3


HOST: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "range": range,
    "list index": lambda r: [1, 2, 3][r],
    "less": lambda r: r < 1,
    "less from the left": lambda r: operator.ge(1, r),
    "equal": lambda r: r == 0,
    "not equal": lambda r: r != VirtualRegister(1),
}


@pytest.mark.parametrize("name", HOST)
def test_python_does_not_see_the_value(name: str) -> None:
    """It exists on the device only (NK601)."""
    with refused("NK601", "its value exists only on the device"):
        HOST[name](VirtualRegister(0))


def test_a_register_is_itself_and_no_other_thing() -> None:
    """Identity and hashing stay Python's: kernels ask whether an argument is None, and keep registers in dicts."""
    register = VirtualRegister(1)
    assert register == register
    assert register != None  # noqa: E711
    assert {register: 1}[register] == 1
    assert repr(VirtualRegister(1, frozen=True)) == "VirtualRegister(1, frozen)"


@pytest.mark.parametrize("value", [1 << 32, -(1 << 31) - 1, "1", True])
def test_a_register_holds_32_bits(value: Any) -> None:
    """And numbers only (NK609)."""
    with refused("NK609"):
        VirtualRegister(value)
    with refused("NK609"):
        VirtualRegister(1 << 31) * 2


def test_an_empty_register_has_no_value() -> None:
    """Nothing of it can be computed (NK401)."""
    for use in (lambda r: r + 1, lambda r: r.read("a test"), lambda r: r.integer("a test")):
        with refused("NK401", "never given a value"):
            use(VirtualRegister())


def test_an_address_is_an_integer() -> None:
    """The bits of a float would be taken for one (NK301)."""
    assert VirtualRegister(3).integer("a test") == 3
    with refused("NK301", "a test needs an integer"):
        VirtualRegister(1.5).integer("a test")


def test_other_operands_are_none_of_its() -> None:
    """Python says that it does not know the operation."""
    with pytest.raises(TypeError):
        VirtualRegister(1) + 1.5
