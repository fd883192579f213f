"""The examples of AWS's documents, with the results that they state."""

from __future__ import annotations

import numpy as np

from nkitools.chip.tensor import DynamicSlice, NkiTensor
from tests.chip.models import HBM, SBUF, fill, tensor

Shape = tuple[int, ...]


def test_anatomy_of_a_tensor() -> None:
    """NKI Language Guide, Anatomy of a tensor: a contiguous SBUF tensor."""
    t = tensor((128, 64))
    assert (t.shape, t.strides, t.offset, t.ndim, t.size) == ((128, 64), (64, 1), 0, 2, 128 * 64)
    assert (t.dtype, t.buffer, t.name) == ("float32", SBUF, "")
    assert t.is_contiguous()
    assert not t.is_indirect()


def test_indexing_of_the_guide() -> None:
    """NKI Language Guide, Tensor Indexing: integers, slices, steps and `...` on a (64, 64, 64) SBUF tensor."""
    t = tensor((64, 64, 64))
    shapes: dict[str, tuple[NkiTensor, Shape]] = {
        "t[0, 0, 10]": (t[0, 0, 10], (1, 1)),
        "t[:, 0]": (t[:, 0], (64, 64)),
        "t[:, 0, 10]": (t[:, 0, 10], (64, 1)),
        "t[0:64, 0, 0:64]": (t[0:64, 0, 0:64], (64, 64)),
        "t[:, 0, :]": (t[:, 0, :], (64, 64)),
        "t[:, :, ::2]": (t[:, :, ::2], (64, 64, 32)),
        "t[...]": (t[...], (64, 64, 64)),
        "t[:, ...]": (t[:, ...], (64, 64, 64)),
        "t[0, ..., :]": (t[0, ..., :], (1, 64, 64)),
        "t[0, ...][:, 0:32, :]": (t[0, ...][:, 0:32, :], (1, 32, 64)),
    }
    assert {key: view.shape for key, (view, _) in shapes.items()} == {key: shape for key, (_, shape) in shapes.items()}
    assert tensor((128, 64, 64))[::2, :, ::2].shape == (64, 64, 32)  # About NKI, Memory Architecture and Indexing


def test_indexing_of_the_docstring() -> None:
    """nki.language.NkiTensor.__getitem__ docstring (NKI 0.6)."""
    sb = tensor((128, 64))
    assert sb[:, 0:32].shape == (128, 32)
    assert sb[:, 0:32:2].shape == (128, 16)
    assert sb[..., 0].shape == (128, 1)
    assert sb[DynamicSlice(8, 8), :].shape == (8, 64)


def test_the_partition_dimension_stays_on_chip_only() -> None:
    """NKI Language Guide, The partition dimension is special."""
    t, h = tensor((128, 64, 32)), tensor((4, 128, 32), memory=HBM)
    assert t[0, :, :].shape == (1, 64, 32)
    assert t[:, :, 0].shape == (128, 64)
    assert h[0, :, :].shape == (128, 32)
    assert h[0, 0, 0].shape == (1,)
    assert tensor((5,), memory=HBM)[3].shape == (1,)


def test_view_methods_of_the_docstrings() -> None:
    """The examples of nki.language.NkiTensor's methods (NKI 0.6), each with the shape in its comment."""
    t = tensor((128, 4, 8))
    assert t.permute((0, 2, 1)).shape == (128, 8, 4)
    assert tensor((128, 1, 64)).broadcast(1, 8).shape == (128, 8, 64)
    assert tensor((128, 64)).expand_dim(1).shape == (128, 1, 64)
    assert tensor((128, 1, 64)).squeeze_dim(1).shape == (128, 64)
    assert tensor((128, 24)).reshape_dim(1, (4, 6)).shape == (128, 4, 6)
    assert tensor((128, 24)).reshape_dim(1, (4, -1)).shape == (128, 4, 6)
    assert tensor((128, 24)).reshape_dim(0, (128,)).shape == (128, 24)
    assert tensor((128, 2, 3, 4)).flatten_dims(1, 2).shape == (128, 6, 4)
    assert tensor((128, 4, 6)).reshape((128, 24)).shape == (128, 24)
    assert tensor((128, 4, 6)).reshape((128, 2, 12)).shape == (128, 2, 12)
    assert tensor((128, 24)).rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4}).shape == (128, 6, 4)
    assert tensor((128, 64)).slice(1, 8, 24, 1).shape == (128, 16)
    assert tensor((128, 64)).slice(1, 0, 64, 2).shape == (128, 32)
    assert tensor((128, 8, 64)).select(1, 3).shape == (128, 64)


def test_reinterpretations_of_the_docstring() -> None:
    """nki.language.NkiTensor.view docstring (NKI 0.6); ``reinterpret_cast`` is the same."""
    t, u = tensor((128, 64)), tensor((128, 256), "uint8")
    assert t.view("uint8").shape == (128, 256)
    assert t.view("int32").shape == (128, 64)
    assert u.view("float32").shape == (128, 64)
    assert u.reinterpret_cast("bfloat16").shape == (128, 128)
    assert u.view("float32").dtype == "float32"
    assert t[:, 0:64:64].view("uint8").shape == (128, 4)  # the one element there is contiguous


def test_composition_of_views() -> None:
    """NKI Language Guide, Composition; NKI Access Patterns, Composition."""
    assert tensor((128, 4, 16))[0:64, :, :].permute((0, 2, 1))[:, 0, :].shape == (64, 4)
    t = tensor((128, 256))
    a = t.slice(dim=0, start=0, end=128).slice(dim=1, start=0, end=256, step=2)
    b = a.slice(dim=0, start=0, end=64).slice(dim=1, start=0, end=64)
    assert b.shape == (64, 64)
    assert b.storage is t.storage


def test_a_slice_is_the_pattern_that_ap_would_give() -> None:
    """NKI Access Patterns, View Primitives Build APs at Specialization Time."""
    t = tensor((128, 64))
    u, v = t.slice(dim=1, start=8, end=24), t.ap(pattern=[[64, 128], [1, 16]], offset=8)
    assert u.get_pattern() == v.get_pattern() == [[64, 128], [1, 16]]
    assert u.offset == v.offset == 8


def test_access_patterns_of_the_documents() -> None:
    """NKI Language Guide, Low-level raw access pattern; NKI Access Patterns, A Concrete Example."""
    t = tensor((128, 1024), "float16")
    assert t.ap(pattern=[(1024, 128), (2, 512)]).shape == (128, 512)
    pattern = t.get_pattern()
    pattern[0][1] = 64
    assert t.ap(pattern=pattern).shape == (64, 1024)
    small = tensor((16, 16), "int32")
    fill(small)
    access = small.ap(pattern=[[16, 16], [1, 8]], offset=8)
    np.testing.assert_array_equal(access.read(), small.array[0:16, 8:16])


def test_an_access_pattern_on_a_view_goes_to_the_storage() -> None:
    """NKI Access Patterns: shape and strides of the view play no part; the outer pattern overrides the inner one."""
    t = tensor((128, 256))
    outer = t.ap(pattern=[[256, 128], [2, 128]]).ap(pattern=[[256, 128], [1, 64]])
    assert outer.get_pattern() == [[256, 128], [1, 64]]
    assert outer.offset == 0


def test_an_offset_is_added_to_the_views_own() -> None:
    """nki.language.NkiTensor.ap docstring (NKI 0.6): None inherits, 0 keeps the base, N shifts it by N elements."""
    t = tensor((128, 64))[:, 8:24]
    assert [t.ap([[64, 128], [1, 4]], offset=offset).offset for offset in (None, 0, 5)] == [8, 8, 13]
    assert t.ap([[64, 128], [1, 4]], offset=-8).offset == 0


def test_reinterpreting_access_patterns() -> None:
    """NKI Access Patterns, Reinterpret Cast: pattern and offset count elements of the new dtype."""
    t = tensor((128, 256), "int32")
    cast = t.ap(pattern=[[512, 128], [1, 512]], offset=0, dtype="bfloat16")
    assert (cast.shape, cast.dtype, cast.strides) == ((128, 512), "bfloat16", (512, 1))
    assert t[:, 3:].ap([[512, 128], [1, 4]], dtype="bfloat16").offset == 6


def test_hbm_takes_any_pattern() -> None:
    """NKI Language Guide: HBM tensors have no partition dimension and accept any pattern, repeats included."""
    h = tensor((4, 6), "int32", HBM)
    fill(h)
    flat = h.array.reshape(-1)
    np.testing.assert_array_equal(h.ap([[0, 3], [5, 4]], offset=2).read(), [[flat[2], flat[7], flat[12], flat[17]]] * 3)
    assert h.ap([[1, 24]]).shape == (24,)


def test_strides_of_views_on_chip_count_the_free_size_of_the_storage() -> None:
    """The partition stride is 64 here whatever the view does to the free dimensions (Anatomy of a tensor)."""
    t = tensor((128, 64))
    assert t[0:1].reshape((1, 8, 8)).strides == (64, 8, 1)
    assert t[0:1, 0:32].reshape((1, 4, 8)).strides == (64, 8, 1)
    assert t.view("uint8").strides == (256, 1)
    assert t[::2].strides == (128, 1)
    assert t[5:, 8:].offset == 5 * 64 + 8
    assert t.expand_dim(1).strides == (64, 64, 1)
    assert t.expand_dim(2).strides == (64, 1, 1)
    assert t.expand_dim(1).broadcast(1, 4).strides == (64, 0, 1)
