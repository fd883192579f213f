"""nl.ndarray, zeros, ones, full and the *_like functions, in every memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside, placed, tile
from tests.isa.oracles import held
from tests.nki_versions import SINCE_0_7

MEMORIES = (nl.sbuf, nl.psum, nl.hbm, nl.private_hbm, nl.shared_hbm)
EVERY = (nl.float32, nl.bfloat16, nl.float8_e4m3, nl.tfloat32, nl.int8, nl.uint32, nl.bool_)


@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
@pytest.mark.parametrize("dtype", EVERY, ids=str)
@pytest.mark.parametrize(("function", "value"), [("zeros", 0), ("ones", 1), ("full", 3)])
def test_a_filled_tensor_is_full(function: str, value: int, dtype: Any, memory: Any) -> None:
    """Every element written, of the shape, dtype and memory asked for."""
    fill = (value,) if function == "full" else ()

    def body() -> Any:
        tensor = getattr(nl, function)((64, 3, 50), *fill, dtype, memory, "named")
        return np.array(tensor.array), tensor.dtype, tensor.buffer, tensor.name, tensor.storage.full

    values, kind, where, name, full = inside(body)
    np.testing.assert_array_equal(values, held(np.full((64, 3, 50), value), dtype))
    assert (kind, where, name, full) == (dtype, memory, "named", True)


def test_a_large_tensor_in_hbm_is_filled_throughout() -> None:
    """Any rank from 1 on, and sizes that no chunk divides."""
    for shape in ((20001,), (300, 77), (2, 3, 4, 5, 6, 7)):
        values = inside(lambda shape=shape: np.array(nl.full(shape, -2.5, nl.float32, nl.shared_hbm).array))
        np.testing.assert_array_equal(values, np.full(shape, -2.5, np.float32))


def test_an_ndarray_is_not_written() -> None:
    """Of no element; sbuf is the default, names and addresses are kept."""

    def body() -> None:
        tensor = nl.ndarray((4, 8), nl.float32)
        assert tensor.buffer == nl.sbuf
        assert tensor.storage.unwritten(tensor.layout, 0).all()
        assert nl.ndarray((4, 8), dtype=nl.int8, buffer=nl.psum, address=(32, 2048)).address == (32, 2048)
        assert nl.ndarray([4, 8], dtype="bfloat16", name=None).dtype == nl.bfloat16
        assert nl.ndarray(shape=(5,), dtype=np.float16, buffer=nl.hbm).shape == (5,)
        assert nl.ndarray((np.int64(4), 8), nl.float32, nl.psum).buffer == nl.psum

    inside(body)


def test_like_another_tensor() -> None:
    """Shape and dtype of the model, unless others are given; zeros are in SBUF, an empty tensor where the model is."""
    model = tile(np.ones((16, 3), nl.bfloat16.dtype), "psum")

    def body() -> None:
        x = placed(model)
        same, other = nl.zeros_like(x), nl.zeros_like(x, nl.int32, nl.psum, "zeros")
        assert (same.shape, same.dtype, same.buffer) == ((16, 3), nl.bfloat16, nl.sbuf)
        assert (other.dtype, other.buffer, other.name) == (nl.int32, nl.psum, "zeros")
        assert not same.array.any()
        assert not other.array.any()
        empty = nl.empty_like(x)
        assert (empty.shape, empty.dtype, empty.buffer) == ((16, 3), nl.bfloat16, nl.psum)
        assert nl.empty_like(x, buffer=nl.shared_hbm).buffer == nl.shared_hbm

    inside(body)


@SINCE_0_7
@pytest.mark.parametrize(
    ("shape", "axes", "turned"),
    [((3, 5), (1, 0), (5, 3)), ((3, 4, 5), (2, 1, 0), (5, 4, 3)), ((2, 3, 4, 5), (3, 1, 2, 0), (5, 3, 4, 2))],
)
def test_like_another_tensor_the_other_way_round(
    shape: tuple[int, ...], axes: tuple[int, ...], turned: tuple[int, ...]
) -> None:
    """A destination in SBUF of the shape that nisa.dma_transpose gives, and at the address that is asked for."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(turned, x.dtype, nl.shared_hbm)
        like = nl.empty_like(x, buffer=nl.sbuf, transpose_axes=axes, address=(0, 512))
        assert (like.shape, like.address) == (turned, (0, 512))
        nisa.dma_transpose(dst=like, src=x, axes=axes)
        nisa.dma_copy(dst=out, src=like)
        return out

    x = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    np.testing.assert_array_equal(nkitools.simulate(kernel, x).outputs, x.transpose(axes))


@pytest.mark.parametrize(
    ("rule", "make"),
    [
        ("NK110", lambda: nl.ndarray((128,), nl.float32)),
        ("NK110", lambda: nl.zeros((128,), nl.float32, nl.psum)),
        ("NK609", lambda: nl.ndarray((), nl.float32, nl.hbm)),
        ("NK609", lambda: nl.ndarray((4, 0), nl.float32)),
        ("NK609", lambda: nl.ndarray((4, -1), nl.float32)),
        ("NK609", lambda: nl.ndarray((4, 2.0), nl.float32)),
        ("NK609", lambda: nl.ndarray("48", nl.float32)),
        ("NK609", lambda: nl.ndarray((4, 8), nl.float32, "sram")),
        ("NK609", lambda: nl.ndarray((4, 8), nl.float32, None)),
        ("NK609", lambda: nl.ndarray((4, 8), nl.float32, address=5)),
        ("NK609", lambda: nl.zeros_like(np.ones(3))),
        ("NK609", lambda: nl.empty_like(3)),
        ("NK609", lambda: nl.full((4, 8), "1", nl.float32)),
        ("NK301", lambda: nl.ndarray((4, 8), np.float64)),
        ("NK301", lambda: nl.ndarray((4, 8), "float31")),
        ("NK301", lambda: nl.full((4, 8), 1, nl.float8_e5m2_x4)),
        ("NK101", lambda: nl.zeros((256, 8), nl.float32)),
    ],
)
def test_what_is_refused(rule: str, make: Any) -> None:
    """Shapes, dtypes and memories that there are not."""
    with pytest.raises(nkitools.KernelError) as caught:
        inside(make)
    assert caught.value.finding.rule == rule


def test_outside_of_a_kernel_there_is_no_memory() -> None:
    """NK611 names the function."""
    for make in (nl.ndarray, nl.zeros, nl.ones):
        with pytest.raises(nkitools.KernelError, match="NK611"):
            make((4, 8), nl.float32)


@pytest.mark.parametrize("name", ["sbuf", "psum", "hbm", "private_hbm", "shared_hbm"])
def test_names_of_memories_as_texts_are_gone(name: str) -> None:
    """NK608, as lint says without running; a run that goes on takes the memory that is meant. Others: NK609."""
    memories = []

    def kernel() -> None:
        tensor = nl.ndarray((4, 8), nl.float32, "".join(name))
        memories.append((tensor.buffer, nl.zeros_like(tensor, buffer=name).buffer))

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel)
    assert caught.value.finding.rule == "NK608"
    assert caught.value.finding.remedy == f"Write nl.{name}."
    assert [each.rule for each in nkitools.simulate(kernel, rules="report").findings] == ["NK608", "NK608"]
    assert memories == [(getattr(nl, name), getattr(nl, name))]
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(lambda: nl.ndarray((4, 8), nl.float32, "dram"))
    assert caught.value.finding.rule == "NK609"
