"""A run in full precision: what comes out of it, and that everything else is as in a precise one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nkitools
from nkitools.chip.core import current_core
from nkitools.chip.memory import Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.rules.finding import Finding
from tests.issue.test_plans import reachable
from tests.launch.kernels import doubled, doubled_in_place
from tests.precision.modes import BF16, both, full, loaded, run_in, stored, uniform


def tripled(x: Any) -> Any:
    """Three times x, in x's dtype, written into x as well."""
    tile = loaded(x, x.dtype)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=3.0)
    nisa.dma_copy(dst=x, src=tile)
    return stored(tile)


# --- results ---------------------------------------------------------------------------------------------------------


def test_the_run_says_its_precision() -> None:
    """As its kernel's outputs do by their dtype."""
    x = np.full((4, 4), 257, BF16)
    assert [run_in(precision, doubled, x).precision for precision in ("precise", "full")] == ["precise", "full"]
    assert nkitools.simulate(doubled, x).precision == "precise"


def test_an_argument_that_is_written_keeps_its_dtype() -> None:
    """It is rounded, while the result has all digits; as in a precise run nothing else is touched."""
    x = np.full((4, 4), 1.015625, BF16)
    out = full(tripled, x, mutates="x")
    np.testing.assert_array_equal(out, np.float32(3.046875))
    np.testing.assert_array_equal(x, np.asarray(3.046875, BF16))


def test_a_returned_argument_is_wide_too() -> None:
    """Of float32 it is the caller's own array, as in a precise run."""
    x = np.full((4, 4), 129, BF16)
    out = full(doubled_in_place, x)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, 258)
    y = np.ones((4, 4), np.float32)
    assert full(doubled_in_place, y, mutates="x") is y


def test_integers_and_float32_keep_their_dtypes() -> None:
    """Only what is narrower than float32 is widened."""
    for dtype in (np.float32, np.int32, np.uint8, np.int16):
        assert full(doubled, np.ones((4, 4), dtype)).dtype == dtype


def test_torch_tensors_come_back_as_float32() -> None:
    """In kind; an argument that is written into keeps its dtype."""
    torch = pytest.importorskip("torch")
    x = torch.full((4, 4), 1.015625, dtype=torch.bfloat16)
    out = full(tripled, x, mutates="x")
    assert (type(out), out.dtype) == (torch.Tensor, torch.float32)
    assert torch.equal(out, torch.full((4, 4), 3.046875))
    assert torch.equal(x, torch.full((4, 4), 3.046875).to(torch.bfloat16))


def test_jax_arrays_come_back_as_float32() -> None:
    """In kind."""
    jnp = pytest.importorskip("jax.numpy")
    out = full(doubled, jnp.full((4, 4), 1.5, jnp.bfloat16))
    assert out.dtype == jnp.float32
    np.testing.assert_array_equal(np.asarray(out), 3)


def test_a_kernel_may_return_a_dtype_that_its_framework_lacks() -> None:
    """Since it returns float32."""
    torch = pytest.importorskip("torch")
    x = uniform(4, 4)
    np.testing.assert_array_equal(full(lambda x: stored(loaded(x, nl.float8_e4m3)), torch.from_numpy(x)).numpy(), x)


def test_prints_show_the_wide_values_and_the_declared_dtype() -> None:
    """Where the run has them."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.bfloat16)
        nl.device_print("tile", tile)
        nl.device_print("part", tile[:, 2:3])
        nl.device_print("bits", tile.view(nl.uint16))
        return stored(tile)

    x = uniform(4, 8)
    whole, part, bits = run_in("full", kernel, x).prints
    np.testing.assert_array_equal(whole.value, x)
    np.testing.assert_array_equal(part.value, x[:, 2:3])
    np.testing.assert_array_equal(bits.value, x.astype(BF16).view(np.uint16))
    assert (whole.dtype, whole.value.dtype, bits.dtype) == ("bfloat16", np.float32, "uint16")


def test_two_cores_share_the_digits_of_shared_hbm() -> None:
    """Each writes its half of the bfloat16 result."""

    @nkitools.dialects.modern.jit  # type: ignore[untyped-decorator]
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        rows = slice(nl.program_id(0) * 4, nl.program_id(0) * 4 + 4)
        nisa.dma_copy(dst=out[rows, :], src=loaded(x[rows, :], nl.float32))
        return out

    x = uniform(8, 4)
    np.testing.assert_array_equal(full(kernel, x, grid=2), x)


def test_two_cores_exchange_wide_values() -> None:
    """Also where one of them sends from a tile of bytes that it sees as bfloat16, which has no more digits."""

    @nkitools.dialects.modern.jit  # type: ignore[untyped-decorator]
    def kernel(x: Any) -> Any:
        core = nl.program_id(0)
        out = nl.ndarray((2, 4, 8), nl.bfloat16, buffer=nl.shared_hbm)
        mine = loaded(x, nl.bfloat16)
        if core == 1:
            mine = nl.ndarray(x.shape, nl.uint16, buffer=nl.sbuf).view(nl.bfloat16)
            nisa.dma_copy(dst=mine, src=x)
        theirs = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.sbuf)
        nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
        nisa.dma_copy(dst=out[core], src=theirs)
        return out

    x = uniform(4, 8)
    out = full(kernel, x, grid=2)
    np.testing.assert_array_equal(out[0], x.astype(BF16).astype(np.float32))
    np.testing.assert_array_equal(out[1], x)


def test_arguments_that_share_their_memory_see_each_others_writes() -> None:
    """What is written through one is read, rounded, through the other, also where that has been read before."""

    def kernel(whole: Any, part: Any) -> Any:
        before = stored(loaded(part, nl.float32))
        tile = loaded(whole, nl.bfloat16)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.1)
        nisa.dma_copy(dst=whole, src=tile)
        return before, stored(loaded(part, nl.float32)), stored(loaded(whole, nl.float32))

    base = uniform(8, 4).astype(BF16)
    given = base.astype(np.float32)
    expected = given * np.float32(1.1)
    before, part, whole = full(kernel, base, base[2:5])
    np.testing.assert_array_equal(before, given[2:5])
    np.testing.assert_array_equal(whole, expected)
    np.testing.assert_array_equal(part, expected[2:5].astype(BF16).astype(np.float32))


def test_a_read_only_array_cannot_be_written() -> None:
    """NK609, as in a precise run."""
    x = np.ones((4, 4), BF16)
    x.flags.writeable = False
    with pytest.raises(nkitools.KernelError, match="writes into its argument `x`"):
        run_in("full", doubled_in_place, x)


# --- the same in both precisions -------------------------------------------------------------------------------------


def wrong_everywhere(x: Any) -> Any:
    """Breaks rules of shape, memory, dtype and data, and goes on."""
    tile = nl.ndarray((16, 8), nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=tile[:, 0:4], data=loaded(x, nl.bfloat16)[:, 0:4], op0=nl.add, operand0=1.0)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.tensor_reduce(dst=nl.ndarray((16, 1), nl.float32), op=nl.add, data=tile, axis=1)  # NK401
    narrow = loaded(x[:, 0:1], nl.bfloat16)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=narrow)  # NK301: the operand is not float32
    product = nl.ndarray((8, 8), nl.bfloat16, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=tile, moving=tile)  # NK303
    nisa.nc_matmul(dst=product, stationary=tile, moving=loaded(x, nl.float32))  # NK302
    nisa.tensor_copy(dst=tile[8:16, :], src=tile[0:8, :])  # NK108
    return stored(tile)


def test_findings_are_the_same() -> None:
    """Guards look at dtypes as declared, and say everything once."""

    def told(finding: Finding) -> Finding:
        return replace(finding, loops={})

    x = uniform(16, 8)
    precise, wide = (run_in(precision, wrong_everywhere, x, rules="report") for precision in ("precise", "full"))
    assert [told(each) for each in wide.findings] == [told(each) for each in precise.findings]
    assert {finding.rule for finding in wide.findings} == {"NK401", "NK301", "NK303", "NK302", "NK108"}


def test_instructions_are_the_same() -> None:
    """The record holds declared dtypes, their regions, engines and costs."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.bfloat16)
        turned = nl.ndarray((8, 16), nl.bfloat16, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=tile)
        copied = nl.ndarray((8, 16), nl.float8_e5m2, buffer=nl.sbuf)
        nisa.tensor_copy(dst=copied[:, 4:8], src=turned[:, 4:8])
        nisa.memset(dst=copied[:, 0:4], value=1.0)
        return stored(copied[:, 0:8])

    precise, wide = (run_in(precision, kernel, uniform(16, 8)) for precision in ("precise", "full"))
    assert list(wide.instructions) == list(precise.instructions)


@given(
    arrays.arrays(np.float32, (8, 8), elements=st.floats(-1e3, 1e3, width=32)),
    st.lists(st.sampled_from(["add", "multiply", "maximum", "exp", "matmul", "sum"]), max_size=6),
)
def test_without_low_precision_both_are_the_same_to_the_bit(x: np.ndarray, steps: list[str]) -> None:
    """A kernel of float32 and integers only has nothing to widen."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.float32)
        for step in steps:
            if step == "matmul":
                product = nl.ndarray((8, 8), nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=product, stationary=tile, moving=tile)
                nisa.tensor_copy(dst=tile, src=product)
            elif step == "exp":
                nisa.activation(dst=tile, op=nl.exp, data=tile, scale=-0.01)
            elif step == "sum":
                total = nl.ndarray((8, 1), nl.float32, buffer=nl.sbuf)
                nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
                nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=total)
            else:
                nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=getattr(nl, step))
        return stored(tile), stored(loaded(stored(tile), nl.int32))

    precise, wide = both(kernel, x)
    for one, other in zip(precise, wide, strict=True):
        assert one.tobytes() == other.tobytes()


@given(
    arrays.arrays(np.float32, (4, 8), elements=st.floats(-100, 100, width=32)),
    st.lists(
        st.tuples(st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum"]), st.integers(0, 7)), max_size=8
    ),
)
def test_a_bfloat16_kernel_computes_what_a_float32_kernel_does(x: np.ndarray, steps: list[tuple[str, int]]) -> None:
    """In full precision the dtype of a tile makes no difference, written whole or in part."""

    def kernel(x: Any, dtype: Any) -> Any:
        tile, other = loaded(x, dtype), loaded(x, dtype)
        for op, column in steps:
            nisa.tensor_tensor(
                dst=tile[:, column:], data1=tile[:, column:], data2=other[:, column:], op=getattr(nl, op)
            )
            nisa.tensor_scalar(dst=other, data=tile, op0=nl.multiply, operand0=0.3)
        return stored(tile)

    narrow, wide = (full(lambda x, dtype=dtype: kernel(x, dtype), x) for dtype in (nl.bfloat16, nl.float32))
    np.testing.assert_array_equal(narrow, wide)


def test_kept_plans_hold_no_tensor() -> None:
    """They outlive the run, and must not keep its arrays alive, nor the wide ones beside these."""

    def kernel(x: Any) -> Any:
        core = current_core("a test")
        assert core.full_plans is not None
        core.full_plans.clear()
        core.plans.clear()
        tile = loaded(x, nl.bfloat16)
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        out = stored(tile)
        plans.extend((*core.full_plans.values(), *core.plans.values()))
        return out

    plans: list[Any] = []
    full(kernel, uniform(4, 8))
    assert len(plans) == 8
    held = [each for plan in plans for each in reachable(plan.compute, set())]
    assert not [each for each in held if isinstance(each, (NkiTensor, Storage))]
    assert not [each for each in held if isinstance(each, np.ndarray) and each.size > 1]
