"""What production kernels rely on: dtypes, annotations, operator tokens, versions."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Optional, Tuple, Union  # noqa: UP035

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.modern import typing as nt

X = np.arange(32, dtype=np.float32).reshape(8, 4)
NUMPY = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "bool": np.bool_,
}
PACKED = {"float8_e4m3fn_x4": 4, "float8_e5m2_x4": 4, "float4_e2m1fn_x4": 2}


class TestDtypes:
    """Point 10."""

    @pytest.mark.parametrize("name", [*NUMPY, *PACKED, "tfloat32"])
    def test_a_dtype_is_found_by_its_name(self, name: str) -> None:
        """str() is stable, and the last part of it is an attribute of nl."""
        dtype = getattr(nl, name)
        assert str(dtype) == name
        assert getattr(nl, str(dtype).split(".")[-1]) is dtype
        assert dtype == name
        assert dtype in (nl.int32, dtype)
        assert dtype in [name]
        assert dtype not in ("no_such", nl.bool if name != "bool" else nl.int8)
        assert {dtype: 1}[dtype] == {name: 1}[dtype] == 1
        assert copy.deepcopy(dtype) is dtype
        assert pickle.loads(pickle.dumps(dtype)) is dtype

    @pytest.mark.parametrize("name", NUMPY)
    def test_it_acts_as_a_numpy_dtype(self, name: str) -> None:
        """astype, zeros, frombuffer, view, asarray; it equals NumPy's, from both sides."""
        dtype, numpy_dtype = getattr(nl, name), np.dtype(NUMPY[name])
        assert np.dtype(dtype) == numpy_dtype
        assert dtype == numpy_dtype
        assert numpy_dtype == dtype
        assert dtype == NUMPY[name]
        values = np.ones(4, np.float32).astype(dtype)
        assert values.dtype == numpy_dtype
        assert np.zeros((2, 2), dtype).dtype == numpy_dtype
        assert np.asarray([1, 2], dtype=dtype).dtype == numpy_dtype
        again = np.frombuffer(values.tobytes(), dtype=dtype)
        np.testing.assert_array_equal(again, values)
        raw = values.view(np.uint8)
        np.testing.assert_array_equal(raw.view(dtype=dtype), values)
        assert dtype.itemsize == numpy_dtype.itemsize

    @pytest.mark.parametrize("name", PACKED)
    def test_a_packed_dtype_is_a_field_of_that_name(self, name: str) -> None:
        """NumPy has none: it is an unsigned integer under that name, and views from and to integers."""
        dtype, size = getattr(nl, name), PACKED[name]
        assert np.dtype(dtype).names == (name,)
        raw = np.arange(8, dtype=f"<u{size}").reshape(2, 4)
        packed = raw.view(np.dtype(dtype))
        assert (packed.shape, packed.dtype.itemsize) == ((2, 4), size)
        np.testing.assert_array_equal(packed.view(raw.dtype), raw)

    def test_dtypes_differ(self) -> None:
        """From each other, from other names and from NumPy's others; the IEEE float8_e4m3 is not the fn one."""
        names = [*NUMPY, *PACKED, "tfloat32"]
        for first in names:
            assert [first == getattr(nl, second) for second in names].count(True) == 1
            assert [getattr(nl, first) == getattr(nl, second) for second in names].count(True) == 1
        assert nl.float8_e4m3 != "float8e4"
        assert nl.float32 != np.float64
        assert nl.float32 is not None
        assert nl.float32 != None  # noqa: E711 - kernels compare so, as NKI has no `is`
        assert float(ml_dtypes.finfo(nl.float8_e4m3).max) == 240
        assert float(ml_dtypes.finfo(nl.float8_e4m3fn).max) == 448

    @pytest.mark.parametrize("name", NUMPY)
    def test_an_input_has_the_languages_dtype(self, name: str) -> None:
        """`x.dtype == nl.float32`, and str(x.dtype) is the name."""
        seen: list[Any] = []
        nkitools.simulate(lambda x: seen.append(x.dtype), np.zeros((8, 4), NUMPY[name]), chip="trn3")
        assert seen[0] is getattr(nl, name)

    def test_ndarray_takes_numpys(self) -> None:
        """Test wrappers hand on what an array has."""
        seen: list[Any] = []

        def kernel() -> None:
            for dtype in (np.float32, np.dtype("int32"), ml_dtypes.bfloat16, "bfloat16", nl.uint8):
                seen.append(nl.ndarray((8, 4), dtype).dtype)

        nkitools.simulate(kernel)
        assert seen == [nl.float32, nl.int32, nl.bfloat16, nl.bfloat16, nl.uint8]


class TestAnnotations:
    """Point 11."""

    def test_ndarray_is_a_type(self) -> None:
        """In every form that is evaluated when a module is imported, and in isinstance."""

        class Holder:
            tile: nl.ndarray

        def kernel(x: nl.ndarray, y: nl.ndarray | None = None) -> tuple[nl.ndarray, ...]: ...  # type: ignore[empty-body]

        forms = [
            lambda: nl.ndarray | None,
            lambda: None | nl.ndarray,
            lambda: nl.ndarray | Tuple[nl.ndarray, int],  # noqa: UP006
            lambda: Optional[nl.ndarray],  # noqa: UP045
            lambda: Union[nl.ndarray, float, None],  # noqa: UP007
            lambda: list[nl.ndarray],
            lambda: dict[str, nl.ndarray],
        ]
        assert all(form() for form in forms)
        seen: list[bool] = []
        nkitools.simulate(lambda x: seen.append(isinstance(x, nl.ndarray)), X)
        assert seen == [True]
        assert not isinstance(X, nl.ndarray)

    def test_typing_declares_shapes(self) -> None:
        """nt.tensor[shape] (migration guide of 0.3): another shape is refused, bare annotations take every one."""

        @nki.jit
        def kernel(x: nt.tensor[8, 4], y: nt.tensor = None, z: nt.mutable_tensor[2] | None = None) -> Any:  # type: ignore[valid-type]
            return x

        assert kernel(X) is X
        assert kernel(x=X, y=X.T) is X
        with pytest.raises(TypeError) as raised:
            kernel(X.T)
        finding = raised.value.finding  # type: ignore[attr-defined]
        assert finding.rule == "NK609"
        assert finding.message == (
            "kernel: parameter `x` is declared as a tensor of shape [8, 4], the argument has [4, 8]"
        )

    def test_other_annotations_promise_nothing(self) -> None:
        """Symbols, dtypes and nt.mutable in the brackets."""
        rows = "rows"

        @nki.jit
        def kernel(x: nt.tensor[rows, 4], y: nt.tensor[nt.mutable], z: nt.tensor[nl.float32] = None) -> Any:  # type: ignore[valid-type]
            return x

        assert kernel(X, X, X) is X


class TestTokens:
    """Point 14."""

    def test_operators_are_keys_and_values(self) -> None:
        """Tables map the author's enum to a token and back; nl.copy is an activation, too."""
        table = {"silu": nl.silu, "copy": nl.copy, "max": nl.maximum}
        back = {token: name for name, token in table.items()}
        assert back[nl.silu] == "silu"
        assert table["max"] == nl.maximum
        assert nl.add != nl.subtract
        assert nl.exp in (nl.exp, nl.relu)

        @nki.jit
        def kernel(x: Any) -> Any:
            tile = nl.load(x)
            nisa.activation(dst=tile, op=table["copy"], data=tile, scale=2.0)
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=table["max"])
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=tile)
            return out

        np.testing.assert_array_equal(kernel(X), 2 * X)


class TestVersions:
    """Point 15."""

    def version(self) -> Any:
        seen: list[Any] = []
        nkitools.simulate(lambda: seen.append(nisa.get_nc_version()))
        assert nisa.get_nc_version() == seen[0]
        return seen[0]

    @pytest.mark.parametrize(
        ("platform", "named", "expected"),
        [
            (None, None, "gen3"),
            (None, "gen2", "gen2"),
            (None, "gen4", "gen4"),
            ("trn1", None, "gen2"),
            ("inf2", "gen4", "gen2"),
            ("gen3", "gen2", "gen3"),
            ("trn3", None, "gen4"),
            ("trn3pre", None, "gen4"),
        ],
    )
    def test_the_environment_says_it(
        self, platform: Any, named: Any, expected: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """NEURON_PLATFORM_TARGET_OVERRIDE before NKI_NC_VERSION before trn2; in a kernel and outside."""
        for variable, value in (("NEURON_PLATFORM_TARGET_OVERRIDE", platform), ("NKI_NC_VERSION", named)):
            monkeypatch.delenv(variable, raising=False)
            if value is not None:
                monkeypatch.setenv(variable, value)
        version = self.version()
        assert version == nisa.nc_version[expected]
        assert (version.name, version.value) == (expected, int(expected[-1]))

    @pytest.mark.parametrize("variable", ["NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"])
    def test_a_wrong_name_is_refused(self, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """It says which variable, and the chips that there are."""
        monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
        monkeypatch.setenv(variable, "trn9")
        with pytest.raises(ValueError, match=f"{variable}: 'trn9' is not a chip .* trn1, inf2, gen2"):
            nki.jit(lambda x: x)(X)

    def test_versions_are_ordered(self) -> None:
        """Among themselves; with a number Python says that they do not compare."""
        gen2, gen3, gen4, *_ = nisa.nc_version
        assert gen2 < gen3 <= gen3 < gen4
        assert gen4 > gen3 >= gen3 > gen2
        assert not gen3 >= gen4
        with pytest.raises(TypeError, match="'>=' not supported between instances of 'nc_version' and 'int'"):
            assert gen3 >= 3
