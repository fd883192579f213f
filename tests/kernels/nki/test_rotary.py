"""The rotary embedding kernels against multiplication by complex numbers in complex128."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import rotary as kernel_module
from kernels.nki.rotary import rotary, rotary_isa
from tests.kernels.mutants import mutant

KERNELS = [rotary, rotary_isa]
SHAPES = [(1, 1, 2), (128, 8, 128), (130, 3, 64), (257, 33, 128), (5, 2, 4096)]  # sequence, heads, head
UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(ml_dtypes.bfloat16): 2.0**-8}  # relative change by rounding, at most


def tables(sequence: int, head: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Cosine and sine of each place times each frequency, as models have them (base 10000)."""
    angles = np.arange(sequence)[:, None] * 10000.0 ** (-2 * np.arange(head // 2) / head)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def case(shape: tuple[int, int, int], dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    """An embedding and its tables."""
    embedding = np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)
    return embedding, *tables(shape[0], shape[2])


def as_complex(embedding: Any, interleaved: bool) -> npt.NDArray[np.complex128]:
    """A pair as one complex number, [sequence, heads, head / 2]."""
    wide = embedding.astype(np.float64)
    if interleaved:
        return wide[..., 0::2] + 1j * wide[..., 1::2]
    first, second = np.split(wide, 2, axis=-1)
    return first + 1j * second


def assert_turned(measured: Any, embedding: Any, cosine: Any, sine: Any, interleaved: bool = False) -> None:
    """Real and imaginary parts agree.

    Two products and their sum are rounded to float32, each to a relative UNIT, and the result to the embedding's dtype;
    no part is larger than the sum of the magnitudes of its products.
    """
    pairs, turn = as_complex(embedding, interleaved), cosine.astype(np.float64) + 1j * sine.astype(np.float64)
    expected = pairs * turn[:, None, :]
    got = as_complex(measured, interleaved)
    by_cosine, by_sine = np.abs(cosine)[:, None, :], np.abs(sine)[:, None, :]
    real = np.abs(pairs.real) * by_cosine + np.abs(pairs.imag) * by_sine
    imaginary = np.abs(pairs.imag) * by_cosine + np.abs(pairs.real) * by_sine
    relative = UNIT[measured.dtype] + 3 * UNIT[np.dtype(np.float32)]
    assert measured.dtype == embedding.dtype
    assert np.all(np.abs(got.real - expected.real) <= relative * real)
    assert np.all(np.abs(got.imag - expected.imag) <= relative * imaginary)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("interleaved", [False, True], ids=["halves", "interleaved"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rotary(run_kernel: Callable[..., Any], kernel: Any, interleaved: bool, shape: tuple[int, int, int]) -> None:
    """Any sequence and any number of heads, in both layouts."""
    arguments = case(shape)
    assert_turned(run_kernel(kernel, *arguments, interleaved=interleaved), *arguments, interleaved)


@pytest.mark.parametrize("kernel", KERNELS)
def test_heads_that_fit_into_no_row_together(run_kernel: Callable[..., Any], kernel: Any) -> None:
    """They are turned some at a time."""
    arguments = case((3, 40, 2048))
    assert_turned(run_kernel(kernel, *arguments), *arguments)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("interleaved", [False, True], ids=["halves", "interleaved"])
def test_bfloat16(run_kernel: Callable[..., Any], kernel: Any, interleaved: bool) -> None:
    """bfloat16 comes out as bfloat16, within half a step of it."""
    arguments = case((130, 5, 128), ml_dtypes.bfloat16)
    assert_turned(run_kernel(kernel, *arguments, interleaved=interleaved), *arguments, interleaved)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sequence", [1, 257, 512])
def test_two_cores_share_the_sequence(run_kernel: Callable[..., Any], kernel: Any, sequence: int) -> None:
    """Each core turns half of the rows, and together they give what one core gives, bit by bit."""
    arguments = case((sequence, 3, 64))
    measured = run_kernel(kernel[2], *arguments)
    assert_turned(measured, *arguments)
    np.testing.assert_array_equal(measured, run_kernel(kernel, *arguments))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_every_chip(kernel: Any, chip: str) -> None:
    """The same on all chips, and no rule has anything to say."""
    arguments = case((200, 33, 128))
    run = nkitools.simulate(kernel, *arguments, chip=chip)
    assert run.findings == []
    assert_turned(run.outputs, *arguments)


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_depend_on_the_distance_alone(run_kernel: Callable[..., Any], kernel: Any) -> None:
    """What rotary embeddings are for: a query times a key is the same wherever the two stand so far apart."""
    vectors = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
    query, key = (np.broadcast_to(each, (300, 1, 64)).copy() for each in vectors)
    cosine, sine = tables(300, 64)
    turned = [run_kernel(kernel, each, cosine, sine)[:, 0, :].astype(np.float64) for each in (query, key)]
    scores = (turned[0][7:] * turned[1][:-7]).sum(axis=1)
    # A part of a pair is off by four roundings of the pair's length (the table's one more), the pair by less than six;
    # so are both vectors of both scores, and by no more.
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert np.ptp(scores) <= 2 * 2 * 6 * 2.0**-24 * lengths.prod()


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_does_not_fit_is_refused(kernel: Any) -> None:
    """An odd head, or tables of another size, are assertions of the kernel."""
    embedding, cosine, sine = case((4, 1, 8))
    with pytest.raises(AssertionError, match="even"):
        nkitools.simulate(kernel, embedding[:, :, :7].copy(), cosine, sine)
    with pytest.raises(AssertionError, match="tables"):
        nkitools.simulate(kernel, embedding, cosine[:3], sine[:3])


MISTAKES = {
    "turned the other way": ("_combined(turned_x, x, c, y, s, nl.subtract)", "_combined(turned_x, x, c, y, s, nl.add)"),
    "cosine and sine mixed up": ("_combined(turned_y, y, c, x, s, nl.add)", "_combined(turned_y, y, s, x, c, nl.add)"),
    "neighbours taken for halves": ("    if interleaved:\n", "    if not interleaved:\n"),
    "the second core does what the first does": ("program, programs = nl.program_id(0)", "program, programs = 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    arguments = case((200, 2, 32))
    broken = mutant(kernel_module, *MISTAKES[mistake]).rotary_isa
    with pytest.raises((AssertionError, nkitools.KernelError)):
        assert_turned(nkitools.simulate(broken, *arguments, grid=2).outputs, *arguments)


@pytest.mark.parametrize("kernel", [each.__name__ for each in KERNELS])
def test_a_tile_of_rows_left_out_is_reported(kernel: str) -> None:
    """The elements that were never written are named (NK403)."""
    broken = mutant(kernel_module, "range(start, stop, size)]", "range(start, stop - size + 1, size)]")
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(getattr(broken, kernel), *case((150, 1024, 4)))
    assert caught.value.finding.rule == "NK403"
    assert "`result`" in caught.value.finding.message
    assert "`result[128:150, 0:1024, 0:4]` never written (90112 of 614400 elements)" in caught.value.finding.message
    assert "round the number of tiles up" in caught.value.finding.remedy
