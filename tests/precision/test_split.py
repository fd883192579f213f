"""``nkitools.precision_split``: the error of each tensor, and how much of it is low precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.precision.difference import Difference
from tests.precision.modes import BF16, loaded, stored, uniform

X = np.full((2, 3), 256, np.float32)


@nki.jit
def one_more(x: Any) -> Any:
    """x + 1 in bfloat16: nothing is added to 256."""
    tile = loaded(x, nl.bfloat16)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    return stored(tile)


def several(x: Any) -> Any:
    """Outputs of three dtypes, in a container."""
    tile = loaded(x, nl.bfloat16)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    return {
        "narrow": stored(tile),
        "wide": stored(loaded(x, nl.float32)),
        "whole": stored(loaded(stored(tile), nl.int32)),
    }


def in_place(x: Any, y: Any) -> None:
    """x + 1 into x, in bfloat16; y is read only."""
    tile = loaded(x, nl.bfloat16)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=x, src=tile)


# --- what it measures ------------------------------------------------------------------------------------------------


def test_an_error_that_is_low_precision() -> None:
    """256 + 1 = 256 in bfloat16: all of the error of 1 is low precision."""
    split = nkitools.precision_split(one_more, X, reference=X + 1)
    (tensor,) = split.tensors
    assert (tensor.name, tensor.dtype, tensor.shape) == ("output", "bfloat16", (2, 3))
    assert tensor.low_precision == Difference(1.0, 1.0, 1 / 257, (0, 0), 6, 6)
    assert (tensor.error, tensor.remaining) == (tensor.low_precision, Difference(0.0, 0.0, 0.0, (0, 0), 0, 6))
    assert tensor.is_low_precision
    assert tensor.verdict == "output (bfloat16): error 1 at [0, 0]: 1 is low precision and 0 is not."


def test_an_error_that_is_the_algorithm() -> None:
    """The reference adds 4, the kernel 1: 3 of the error remain."""
    (tensor,) = nkitools.precision_split(one_more, X, reference=lambda x: x + 4).tensors
    assert tensor.error is not None
    assert tensor.remaining is not None
    assert (tensor.error.max_abs, tensor.low_precision.max_abs, tensor.remaining.max_abs) == (4, 1, 3)
    assert not tensor.is_low_precision
    assert tensor.verdict.endswith(": 1 is low precision and 3 is not; look at the algorithm.")


def test_without_a_reference_the_part_of_low_precision_is_known() -> None:
    """Nothing else is."""
    (tensor,) = nkitools.precision_split(one_more, X).tensors
    assert (tensor.error, tensor.remaining, tensor.low_precision.max_abs) == (None, None, 1)
    assert tensor.verdict == "output (bfloat16): low precision changes it by up to 1, at [0, 0]."
    (tensor,) = nkitools.precision_split(one_more, np.zeros((2, 3), np.float32)).tensors
    assert tensor.verdict == "output (bfloat16): low precision changes nothing."


def test_the_worst_element_is_named() -> None:
    """By its index, where only one is beyond bfloat16's whole numbers."""
    x = np.zeros((4, 8), np.float32)
    x[2, 5] = 256
    (tensor,) = nkitools.precision_split(one_more, x, reference=x + 1).tensors
    assert (tensor.low_precision.index, tensor.low_precision.different) == ((2, 5), 1)
    np.testing.assert_allclose(tensor.low_precision.rms, np.sqrt(1 / 32))


def test_outputs_go_by_their_places() -> None:
    """In containers, with references in the same container or in order; of integers different elements are counted."""
    x = np.full((2, 4), 256, np.float32)
    references = {"wide": x, "whole": x + 1, "narrow": x + 1}
    split = nkitools.precision_split(several, x, reference=references)
    assert [tensor.name for tensor in split.tensors] == ["output['narrow']", "output['wide']", "output['whole']"]
    assert [tensor.error.max_abs for tensor in split.tensors if tensor.error] == [1, 0, 1]
    assert split["output['wide']"].verdict == "output['wide'] (float32): no error."
    assert "; 8 of 8 elements differ" in split["output['whole']"].verdict
    listed = nkitools.precision_split(several, x, reference=[x + 1, x, x + 1])
    assert [tensor.error for tensor in listed.tensors] == [tensor.error for tensor in split.tensors]
    with pytest.raises(KeyError, match=r"output\['wide'\]"):
        split["wide"]


def test_an_argument_that_is_written_is_measured() -> None:
    """By the name of its parameter, with the digits that its dtype does not hold; the caller's array is left alone."""
    x, y = np.full((2, 4), 256, BF16), np.ones((2, 4), np.float32)
    split = nkitools.precision_split(in_place, x, y, reference=lambda x, y: x + y)
    (tensor,) = split.tensors
    assert (tensor.name, tensor.dtype) == ("x", "bfloat16")
    assert tensor.error is not None
    assert tensor.remaining is not None
    assert (tensor.error.max_abs, tensor.low_precision.max_abs, tensor.remaining.max_abs) == (1, 1, 0)
    np.testing.assert_array_equal(x, np.asarray(256, BF16))


def test_a_returned_argument_counts_once() -> None:
    """As an output."""

    def kernel(x: Any) -> Any:
        in_place(x, x)
        return x

    split = nkitools.precision_split(kernel, np.full((2, 4), 256, BF16), reference=np.full((2, 4), 257.0))
    assert [tensor.name for tensor in split.tensors] == ["output"]
    assert split["output"].low_precision.max_abs == 1


def test_one_array_passed_twice_stays_one() -> None:
    """What is written through one parameter is there through the other."""

    def kernel(x: Any, y: Any) -> Any:
        in_place(x, x)
        return stored(loaded(y, nl.float32))

    x = np.zeros((2, 4), np.float32)
    split = nkitools.precision_split(kernel, x, x, reference=np.ones((2, 4)))
    assert split["output"].verdict == "output (float32): no error."


def test_both_runs_are_there() -> None:
    """With their findings, prints and instructions, and announced to whoever collects runs."""
    with nkitools.collect_runs() as runs:
        split = nkitools.precision_split(one_more, X, chip="trn1")
    assert runs == [split.precise, split.full]
    assert [run.precision for run in runs] == ["precise", "full"]
    assert {run.chip for run in runs} == {"trn1"}
    assert len(split.full.instructions) == len(split.precise.instructions) == 3


def test_the_text_is_a_table_and_a_sentence_for_each_tensor() -> None:
    """Whoever prints it sees both."""
    shown = str(nkitools.precision_split(one_more, X, reference=X + 1)).splitlines()
    assert shown == [
        "precision of one_more on trn2",
        "tensor                                     max abs  rms      max relative  at",
        "output bfloat16 [2, 3]  error              1.0e+00  1.0e+00  3.9e-03       [0, 0]",
        "                        low precision      1.0e+00  1.0e+00  3.9e-03       [0, 0]",
        "                        not low precision  0.0e+00  0.0e+00  0.0e+00",
        "output (bfloat16): error 1 at [0, 0]: 1 is low precision and 0 is not.",
    ]


def test_what_stays_rounded_in_full_precision_is_named() -> None:
    """Its rounding counts as not low precision, so the reader must know."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray(x.shape, nl.uint16, buffer=nl.sbuf).view(nl.bfloat16)
        nisa.dma_copy(dst=tile, src=x)
        return stored(tile, nl.float32)

    split = nkitools.precision_split(kernel, uniform(2, 4))
    assert split.full.rounded == {"dma_copy": 2}
    assert str(split).endswith("so that it counts as not low precision: operands of dma_copy (2).")


def test_frameworks_come_as_they_are() -> None:
    """torch in, a reference in torch; jax in, a reference in jax."""
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    x = torch.full((2, 4), 256, dtype=torch.bfloat16)
    seen = []

    def reference(x: Any) -> Any:
        seen.append((type(x), x.dtype))
        return x + 1

    (tensor,) = nkitools.precision_split(one_more, x, reference=reference).tensors
    assert (tensor.dtype, tensor.low_precision.max_abs, tensor.remaining.max_abs) == ("bfloat16", 1, 0)
    assert seen == [(torch.Tensor, torch.float64)]
    (tensor,) = nkitools.precision_split(one_more, jnp.full((2, 4), 256, jnp.bfloat16), reference=reference).tensors
    assert (tensor.low_precision.max_abs, tensor.remaining.max_abs) == (1, 0)


# --- references that do not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "error", "sentence"),
    [
        (X.T, ValueError, r"it has the shape \[3, 2\] for output, which has \[2, 3\]"),
        ((X, X), ValueError, "it holds 2 arrays, the kernel makes 1: output"),
        (np.full((2, 3), np.nan), ValueError, "all 6 elements for output are NaN; what is right there is not known"),
        ("X", TypeError, "it must be or return arrays, it is str"),
        (lambda x: None, TypeError, "the reference returns None: let it return what the kernel should compute"),
    ],
)
def test_a_reference_that_does_not_fit(reference: Any, error: type[Exception], sentence: str) -> None:
    """Whose mistake it is stands first."""
    with pytest.raises(error, match=f"^reference: .*{sentence}"):
        nkitools.precision_split(one_more, X, reference=reference)


def test_a_kernel_without_arrays_to_compare() -> None:
    """It computes nothing that could be judged."""
    with pytest.raises(ValueError, match="nothing has returned and written no arrays to compare"):
        nkitools.precision_split(_named("nothing", lambda x: None), X)


def test_a_broken_rule_is_raised() -> None:
    """As simulate does it; a run that collects its findings and cannot go on is named with the first of them."""

    def kernel(x: Any) -> Any:
        return stored(loaded(x, nl.float32)[:, 0:9])

    with pytest.raises(nkitools.KernelError, match="NK402"):
        nkitools.precision_split(kernel, X)
    with pytest.raises(ValueError, match=r"no arrays to compare\. .*NK402"):
        nkitools.precision_split(kernel, X, rules="report")


def _named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


# --- differences -----------------------------------------------------------------------------------------------------

NUMBERS = arrays.arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6, width=32))


@given(NUMBERS, NUMBERS)
def test_differences_are_those_of_numpy(values: np.ndarray, truth: np.ndarray) -> None:
    """Largest, mean square and relative, each by its definition."""
    found, error = Difference.of(values, truth), np.abs(values - truth)
    assert (found.max_abs, error[found.index]) == (error.max(), error.max())
    np.testing.assert_allclose(found.rms, np.linalg.norm(error) / np.sqrt(12))
    ratios = [float(e / abs(t)) for e, t in zip(error.flat, truth.flat, strict=True) if t]
    assert found.max_relative == max(ratios, default=0.0)
    assert (found.different, found.size) == (sum(values.flat != truth.flat), 12)


def test_differences_of_what_is_not_finite() -> None:
    """Equal infinities and NaN on both sides are none; others are infinite."""
    inf, nan = np.inf, np.nan
    assert Difference.of(np.array([inf, nan, -inf, 1]), np.array([inf, nan, -inf, 1])).different == 0
    for value, truth in ((nan, 1.0), (inf, 1.0), (inf, -inf), (1.0, inf)):
        found = Difference.of(np.array([0.0, value]), np.array([0.0, truth]))
        assert (found.max_abs, found.max_relative, found.index, found.different) == (inf, inf, (1,), 1)
