"""Arguments that are no arrays and are used as tensors: which one, what it is, what to pass."""

from __future__ import annotations

import array
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl

X = np.ones((8, 4), np.float32)


@dataclass
class Config:
    """Settings with what should be arrays."""

    weights: Any


def refusal(kernel: Any, *args: Any, **kwargs: Any) -> nkitools.Finding:
    """The finding of a call."""
    with pytest.raises(TypeError) as raised:
        nki.jit(kernel)(*args, **kwargs)
    assert isinstance(raised.value, nkitools.KernelError)
    return raised.value.finding


def shape_of(x: Any, config: Any = None) -> Any:
    return (x if config is None else config.weights).shape


@pytest.mark.parametrize(
    ("value", "kind", "remedy"),
    [
        ([[1.0, 2.0]], "a list", "Pass a NumPy array: np.array(x, dtype=np.float32)."),
        ((1.0, 2.0), "a tuple", "Pass a NumPy array: np.array(x, dtype=np.float32)."),
        (3.0, "a float", "Pass a NumPy array: np.array(x, dtype=np.float32)."),
        (3, "an int", "Pass a NumPy array: np.array(x, dtype=np.float32)."),
        ("x.npy", "a str", "Pass a NumPy array for `x`."),
        (None, "None", "Pass an array for `x`, or ask `if x is None` in the kernel."),
        (range(4), "a range", "Pass a NumPy array: np.array(x, dtype=np.float32)."),
        (array.array("f", [1.0]), "an array.array", "Pass a NumPy array: np.array(x, dtype=np.float32)."),
        ((each for each in [1.0]), "a generator", "Pass a NumPy array for `x`."),
        ({"x": 1.0}, "a dict", "Pass a NumPy array for `x`."),
        (b"x.npy", "a bytes", "Pass a NumPy array for `x`."),
    ],
)
def test_the_argument_is_named(value: Any, kind: str, remedy: str) -> None:
    """NK609 at the line of the kernel that asks for the attribute."""

    def kernel(x: Any) -> Any:
        return x.shape

    finding = refusal(kernel, value)
    assert finding.message == f"the kernel uses its argument `x` as a tensor (.shape), and it is called with {kind}"
    assert (finding.rule, finding.remedy) == ("NK609", remedy)
    assert (finding.file, finding.line) == (__file__, kernel.__code__.co_firstlineno + 1)


def test_memory_that_has_a_shape_is_no_array() -> None:
    """A memoryview is named where the kernel asks for its dtype."""
    message = refusal(lambda x: nl.ndarray(x.shape, dtype=x.dtype), memoryview(X)).message  # type: ignore[arg-type]
    assert message == "the kernel uses its argument `x` as a tensor (.dtype), and it is called with a memoryview"


def test_so_is_a_part_of_one() -> None:
    """By its place, also where a function that the kernel calls asks."""
    finding = refusal(shape_of, X, config=Config([1.0]))
    assert finding.message.startswith("the kernel uses its argument `config.weights` as a tensor")
    assert "`x[1]`" in refusal(lambda x: x[1].reshape((2, 2)), [X, [1, 2]]).message


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x: [].shape,  # type: ignore[attr-defined]
        lambda x: None.shape,  # type: ignore[attr-defined]
        lambda x, y=None: (lambda other: other.shape)(None),
        lambda x: x.no_such,
        lambda x: Config([1]).weights.shape,
    ],
)
def test_an_authors_own_mistake_is_theirs(kernel: Any) -> None:
    """What is no argument, and what no tensor has, is Python's AttributeError, unchanged."""
    with pytest.raises(AttributeError) as raised:
        nkitools.simulate(kernel, X)
    assert not isinstance(raised.value, nkitools.KernelError)


def test_lists_and_tuples_of_arrays_are_arguments() -> None:
    """Public megakernels take the weights of their layers so; lists of numbers stay as they are."""

    @nki.jit
    def kernel(weights: list[nl.ndarray], groups: list[list[int]]) -> Any:
        assert groups == [[0, 1]]
        total = nl.load(weights[0])
        nisa.tensor_tensor(dst=total, data1=total, data2=nl.load(weights[1]), op=nl.add)
        nl.store(weights[0], total)
        return weights[0]

    first = X.copy()
    assert kernel([first, X], [[0, 1]]) is first
    np.testing.assert_array_equal(first, 2 * X)


def test_what_an_instruction_is_given_instead_of_a_tensor_is_named() -> None:
    """A list that never became a tensor says how it would."""
    finding = refusal(lambda x: nisa.dma_copy(dst=nl.ndarray((1, 2), nl.float32), src=x), [[1.0, 2.0]])
    assert finding.message == "nisa.dma_copy: argument `src` must be a tensor, it is list"
    assert finding.remedy.endswith("A list does not become a tensor: pass a NumPy array of it to the kernel.")
