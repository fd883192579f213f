"""What production kernels rely on, beside the instructions: settings, assertions, ranges.

Each class is a point that public production kernels need when they run eagerly; test_semantics_kernels.py,
test_semantics_tensors.py, test_semantics_names.py and test_semantics_undocumented.py hold the others.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.nki_versions import SINCE_0_7, WITH_REMOVED_NAMES

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def stored(tile: Any) -> Any:
    """A tile in HBM, to be returned."""
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def scaled(x: Any, factor: float) -> Any:
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    return stored(tile)


class Layout(Enum):
    """An enumeration among the arguments."""

    rows = 1
    columns = 2


class TestObjects:
    """Point 4: NKIObject and its dataclasses."""

    def test_fields_need_no_annotation(self) -> None:
        """Public kernels write dozens of them so; they are set by keyword, and have defaults."""

        @dataclass
        class Buffers(nl.NKIObject):
            tile: Any
            index = None
            scale = 1.0
            name = "none"

            @property
            def doubled(self) -> float:
                return 2 * self.scale

        buffers = Buffers(tile=3, scale=2.0, index=1)
        assert [each.name for each in fields(Buffers)] == ["tile", "index", "scale", "name"]
        assert (buffers.index, buffers.doubled, buffers.name) == (1, 4.0, "none")

    def test_the_decorator_is_optional(self) -> None:
        """Class Support of the language guide: positions, defaults, None for what is left out, __post_init__."""

        class Base(nl.NKIObject):
            x: int
            table: ClassVar[dict[str, int]] = {"a": 1}

        class Derived(Base):
            y: bool = False
            sizes: list[int] = field(default_factory=list)
            z: float = field(default=2.0)

            def __post_init__(self) -> None:
                self.total = (self.x or 0) + self.z

        made = Derived(1, sizes=[3])
        assert (made.x, made.y, made.sizes, made.z, made.total) == (1, False, [3], 2.0, 3.0)
        assert (Derived().x, Derived().sizes, Derived.table) == (None, [], {"a": 1})
        assert Derived().sizes is not Derived().sizes

    def test_a_dataclass_gets_none_for_what_is_left_out(self) -> None:
        """Class Support: with and without the decorator a class is compiled in the same way, ``x = None``."""

        @dataclass
        class Base(nl.NKIObject):
            x: int
            table: ClassVar[dict[str, int]] = {"a": 1}
            y: bool = False
            z: int

        @dataclass
        class Derived(Base):
            w: int
            x: int = 7

        with options.override(nki_version="0.6"):
            made = Derived(z=2)
            assert (made.x, made.y, made.z, made.w) == (7, False, 2, None)
            assert (Base(1).z, Base(y=True).x) == (None, None)
            assert copy.copy(made) == made
        with options.override(nki_version="0.7"):
            assert Derived(1, False, 2, 3).w == 3
            assert copy.copy(made) == made
            with pytest.raises(TypeError) as raised:
                Derived(z=2)
            finding = raised.value.finding  # type: ignore[attr-defined]
            assert (finding.rule, finding.message) == ("NK609", "Derived gets no value for `w`")
            assert finding.remedy == "The call form is Derived(x, y, z, w)."

    @pytest.mark.parametrize("slots", [False, True])
    @pytest.mark.parametrize("version", ["0.6", "auto"])
    def test_a_field_that_is_left_out_is_a_warning_where_no_version_is_said(self, version: str, *, slots: bool) -> None:
        """NK618: since NKI 0.7 Python makes the objects of kernels, and refuses this one; under 0.6 no finding."""

        @dataclass(slots=slots)
        class Sizes(nl.NKIObject):
            rows: int
            tiles: int
            rest: int

        @nki.jit
        def kernel(x: Any) -> Any:
            sizes = Sizes(rows=1, tiles=3)
            return scaled(x, sizes.tiles if sizes.rest is None else 0)

        run = nkitools.simulate(kernel, X, nki_version=version)
        np.testing.assert_array_equal(run.outputs, 3 * X)
        found = [(each.rule, each.severity, each.message) for each in run.findings if each.rule == "NK618"]
        message = (
            "Sizes gets no value for `rest`, which is None; an object without a value for a field was removed in "
            "NKI 0.7; it runs because no version is said"
        )
        assert found == ([] if version == "0.6" else [("NK618", "warning", message)])

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda cls: cls(1, 2, 3), "Sizes takes 2 values and is given 3"),
            (lambda cls: cls(1, rows=2), "Sizes: `rows` is given twice"),
            (lambda cls: cls(rowz=1), "Sizes has no field `rowz`"),
        ],
    )
    def test_wrong_fields_are_refused(self, make: Any, said: str) -> None:
        """NK609, a TypeError, shows the fields and names the neighbour."""

        class Sizes(nl.NKIObject):
            rows: int
            columns: int = 1

        with pytest.raises(TypeError) as raised:
            make(Sizes)
        finding = raised.value.finding  # type: ignore[attr-defined]
        assert (finding.rule, finding.message, finding.file) == ("NK609", said, __file__)
        assert finding.remedy.startswith("The call form is Sizes(rows, columns).")
        assert ("Did you mean rows?" in finding.remedy) == ("rowz" in said)

    def test_an_object_without_fields_takes_what_it_is_given(self) -> None:
        """A bag of attributes; an __init__ of the author's own is theirs."""

        class Own(nl.NKIObject):
            x: int = 1

            def __init__(self, x: int) -> None:
                self.x = 10 * x

        assert nl.NKIObject(a=1, b="two").b == "two"
        assert Own(2).x == 20

    @SINCE_0_7
    def test_equality_is_structural(self) -> None:
        """Language guide, Enumerations: equality in NKI 0.6 is, that of 0.7 is Python's. What is equal hashes alike."""

        class Sizes(nl.NKIObject):
            rows: int
            inner: Any = None

        class Other(nl.NKIObject):
            rows: int
            inner: Any = None

        one = Sizes(1)
        assert one == one
        assert Sizes(1) != Sizes(1)
        with options.override(nki_version="0.6"):
            assert Sizes(1, Sizes(2)) == Sizes(1, Sizes(2))
            assert Sizes(1, Sizes(2)) != Sizes(1, Sizes(3))
            assert Sizes(1) != Other(1)
            assert Sizes(1) != 1
        assert hash(Sizes(1)) == hash(Sizes(1))

    def test_dataclasses_are_pythons(self) -> None:
        """Frozen, eq, order of inherited fields, default factories, nested objects, __post_init__."""

        @dataclass(frozen=True, eq=True)
        class Tile(nl.NKIObject):
            rows: int = 128
            parts: tuple[int, ...] = (1, 2)

        @dataclass(frozen=True)
        class Plan(Tile):
            tiles: list[Tile] = field(default_factory=list)
            inner: Tile = Tile(rows=64)

        @dataclass
        class Checked(nl.NKIObject):
            rows: int
            half: int = 0

            def __post_init__(self) -> None:
                assert self.rows % 2 == 0, "rows must be even"
                self.half = self.rows // 2

        plan = Plan(rows=1, tiles=[Tile()])
        assert (plan.rows, plan.parts, plan.tiles[0].rows, plan.inner.rows) == (1, (1, 2), 128, 64)
        assert Tile(3) == Tile(rows=3)
        assert {Tile(3): "a"}[Tile(3)] == "a"
        with pytest.raises(AttributeError):
            plan.rows = 2  # type: ignore[misc]
        assert Checked(rows=6).half == 3
        with pytest.raises(AssertionError, match="rows must be even"):
            Checked(rows=3)

    def test_their_arrays_become_tensors_in_a_kernel(self) -> None:
        """Also nested; the author's own object keeps its arrays."""

        @dataclass(frozen=True)
        class Weights(nl.NKIObject):
            w: Any
            scale: float = 2.0

        class Config(nl.NKIObject):
            weights: Weights
            layout: Layout

        @nki.jit
        def kernel(config: Config) -> Any:
            assert isinstance(config.weights.w, nl.NkiTensor)
            assert config.layout == Layout.columns
            return scaled(config.weights.w, config.weights.scale)

        config = Config(weights=Weights(X), layout=Layout.columns)
        np.testing.assert_array_equal(kernel(config), 2 * X)
        assert config.weights.w is X


class TestAssertions:
    """Point 5: an author's assertion."""

    def test_its_text_is_unchanged(self) -> None:
        """Production kernels assert with a sentence of their own; no finding is made of it."""

        @nki.jit
        def kernel(x: Any) -> Any:
            assert x.shape[0] % 128 == 0, f"[kernel] rows must be a multiple of 128, got {x.shape[0]}"
            return x

        with pytest.raises(AssertionError) as raised:
            kernel(X)
        # pytest, which rewrites the assertions of this file, adds what was compared.
        assert str(raised.value).splitlines()[0] == "[kernel] rows must be a multiple of 128, got 8"
        assert not isinstance(raised.value, nkitools.KernelError)


class TestRanges:
    """Point 6: loops."""

    @pytest.mark.parametrize("make", [nl.affine_range, nl.sequential_range, nl.static_range, nl.range, range])
    def test_counters_are_integers(self, make: Any) -> None:
        """In min(), %, f-strings, list indices and allocations; start, stop and step as Python's."""

        @nki.jit
        def kernel(x: Any) -> Any:
            tiles = [nl.load(x[row : min(row + 3, 8), :]) for row in make(0, 8, 3)]
            names = [f"tile{i % 2}" for i in make(3)]
            assert [tile.shape[0] for tile in tiles] == [3, 3, 2]
            assert (names, [type(i) for i in make(2)]) == (["tile0", "tile1", "tile0"], [int, int])
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            for i in make(len(tiles)):
                nisa.dma_copy(dst=out[3 * i : 3 * i + tiles[i].shape[0], :], src=tiles[i])
            return out

        np.testing.assert_array_equal(kernel(X), X)

    @WITH_REMOVED_NAMES
    def test_dynamic_loops_take_registers(self) -> None:
        """As bounds; their counter is a register that addresses."""

        @nki.jit
        def kernel(x: Any, count: Any) -> Any:
            number = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
            nisa.dma_copy(dst=number, src=count)
            stop = nisa.register_alloc(number)
            out = nl.zeros(x.shape, x.dtype, buffer=nl.shared_hbm)
            for row in nl.dynamic_range(0, stop, 1):
                tile = nl.ndarray((1, 4), x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile, src=x.ap([[4, 1], [1, 4]], scalar_offset=row, indirect_dim=0))
                nisa.dma_copy(dst=out.ap([[4, 1], [1, 4]], scalar_offset=row, indirect_dim=0), src=tile)
            return out

        expected = np.where(np.arange(8)[:, None] < 5, X, 0)
        np.testing.assert_array_equal(kernel(X, np.array([[5]], np.int32)), expected)

    @WITH_REMOVED_NAMES
    def test_a_while_loop_asks_its_register_again(self) -> None:
        """After each register_load (two public kernels)."""

        @nki.jit
        def kernel(count: Any) -> Any:
            left = nl.load(count)
            turns = nl.zeros((1, 1), nl.int32, buffer=nl.sbuf)
            register = nisa.register_alloc(left)
            while register:
                nisa.tensor_scalar(dst=turns, data=turns, op0=nl.add, operand0=1)
                nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
                nisa.register_load(register, left)
            return stored(turns)

        assert kernel(np.array([[3]], np.int32)).tolist() == [[3]]
        assert kernel(np.array([[0]], np.int32)).tolist() == [[0]]
