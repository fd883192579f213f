"""What production kernels rely on: nki.jit in all its forms, and the programs of a launch."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.dialects.modern.test_semantics import Layout, X, scaled, stored
from tests.nki_versions import SINCE_0_7


@dataclass
class Settings(nl.NKIObject):
    """Settings among the arguments."""

    factor: float = 1.0
    layout: Layout = Layout.rows


Named = namedtuple("Named", ["x", "factor"])


class TestKernels:
    """Point 1: nki.jit and its calls."""

    def test_a_method_is_bound_to_its_object(self) -> None:
        """Also under a grid, as a static method, as a class method, and with the object given by hand."""

        class Model:
            factor = 3.0

            @nki.jit
            def forward(self, x: Any) -> Any:
                return scaled(x, self.factor)

            @nki.jit
            @staticmethod
            def inner_static(x: Any) -> Any:
                return scaled(x, 4.0)

            @staticmethod
            @nki.jit
            def outer_static(x: Any) -> Any:
                return scaled(x, 5.0)

            @classmethod
            @nki.jit
            def of_class(cls, x: Any) -> Any:
                return scaled(x, cls.factor)

        model = Model()
        model.factor = 2.0
        np.testing.assert_array_equal(model.forward(X), 2 * X)
        np.testing.assert_array_equal(model.forward[1](X), 2 * X)
        np.testing.assert_array_equal(nki.simulate(model.forward)(x=X), 2 * X)
        np.testing.assert_array_equal(Model.forward(model, X), 2 * X)
        np.testing.assert_array_equal(model.inner_static(X), 4 * X)
        np.testing.assert_array_equal(model.outer_static(X), 5 * X)
        np.testing.assert_array_equal(model.of_class(X), 3 * X)
        assert model.forward.__name__ == "forward"

    def test_a_kernel_that_a_class_only_keeps_is_not_bound(self) -> None:
        """Test classes name the kernel under test so."""
        kernel = nki.jit(lambda x: scaled(x, 2.0))

        class TestKernel:
            kernel_under_test = kernel

        np.testing.assert_array_equal(TestKernel().kernel_under_test(X), 2 * X)

    def test_partials_lambdas_and_callable_objects_are_kernels(self) -> None:
        """Whatever can be called, but for a class, whose call computes nothing."""

        class Scale:
            def __init__(self, factor: float) -> None:
                self.factor = factor

            def __call__(self, x: Any) -> Any:
                return scaled(x, self.factor)

        np.testing.assert_array_equal(nki.jit(functools.partial(scaled, factor=3.0))(X), 3 * X)
        np.testing.assert_array_equal(nki.jit(lambda x: scaled(x, 4.0))(X), 4 * X)
        np.testing.assert_array_equal(nki.jit(Scale(5.0))(X), 5 * X)
        with pytest.raises(TypeError, match=r"nki\.jit decorates a function, it is given the class Scale"):
            nki.jit(Scale)

    def test_a_launch_can_be_repeated_and_its_grid_changed(self) -> None:
        """`kernel[n]` makes a kernel; the one that it is made of stays as it was."""
        kernel = nki.jit(lambda x: x if nl.num_programs() == 2 else scaled(x, 2.0))
        twice = kernel[2]
        for _ in range(2):
            assert twice(X) is X
            np.testing.assert_array_equal(twice[1](X), 2 * X)
            np.testing.assert_array_equal(kernel(X), 2 * X)

    @pytest.mark.parametrize(
        "value",
        [
            *(None, "text", 3, 2.5, True, (1, "a"), {"a": 1}, [1, 2], range(3), nl.add, nl.float32),
            *(Layout.rows, pytest.param(Settings(), marks=SINCE_0_7), Named(1, 2), scaled, Settings, Layout),
        ],
    )
    def test_what_is_no_array_passes_through(self, value: Any) -> None:
        """By position and by keyword, the very same object: also enums, dataclasses, classes and functions."""
        seen: list[Any] = []

        def kernel(x: Any, value: Any, other: Any = None) -> Any:
            seen.extend((value, other))
            return x

        nki.jit(kernel)(X, value, other=value)
        assert all(each is value for each in seen)

    def test_an_inner_kernel_runs_inline_on_tiles(self) -> None:
        """Decorated twice or not, with what only a running kernel has for arguments."""

        @nki.jit
        def twice(tile: Any) -> Any:
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
            return tile

        @nki.jit(mode="trace")
        def outer(x: Any) -> Any:
            return stored(nki.jit(twice)(tile=twice(nl.load(x))))

        np.testing.assert_array_equal(outer(X), 4 * X)

    def test_kernels_are_composed_of_functions(self) -> None:
        """Functions are arguments, values of tables, results, and closures (language guide, Composable Kernels)."""

        def relu(dst: Any, src: Any) -> None:
            nisa.activation(dst=dst, data=src, op=nl.relu)

        def times(factor: float) -> Callable[..., None]:
            return lambda dst, src: nisa.tensor_scalar(dst=dst, data=src, op0=nl.multiply, operand0=factor) and None

        table = {"relu": relu, "double": times(2.0)}

        def tiled(x: Any, tile_fn: Callable[..., None]) -> Any:
            tile = nl.load(x)
            result = nl.ndarray(tile.shape, tile.dtype, nl.sbuf)
            tile_fn(dst=result, src=tile)
            return stored(result)

        kernel = nki.jit(lambda x, name: tiled(x, table[name]))
        np.testing.assert_array_equal(kernel(-X, "relu"), 0 * X)
        np.testing.assert_array_equal(kernel(X, name="double"), 2 * X)
        np.testing.assert_array_equal(nki.jit(tiled)(X, times(3.0)), 3 * X)

    def test_a_wrapper_around_a_kernel_leaves_it_a_kernel(self) -> None:
        """`@my_wrapper @nki.jit` (NKI 0.2 release notes), and functools.wraps keeps what it wraps."""

        def counted(function: Any) -> Any:
            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                calls.append(args)
                return function(*args, **kwargs)

            return call

        calls: list[Any] = []
        kernel = counted(nki.jit(scaled))
        np.testing.assert_array_equal(kernel(X, factor=2.0), 2 * X)
        np.testing.assert_array_equal(nki.simulate(kernel)(X, 3.0), 3 * X)
        assert len(calls) == 2
        assert kernel.__name__ == "scaled"


class TestPrograms:
    """Points 2 and 3: the programs of an LNC launch."""

    def test_without_a_grid_there_is_one_program_and_no_dimension(self) -> None:
        """Helpers ask with the documented keywords."""

        @nki.jit
        def kernel(x: Any) -> Any:
            assert (nl.program_ndim(), nl.num_programs(axes=0), nl.program_id(axis=0)) == (0, 1, 0)
            assert (nl.num_programs(), nl.num_programs(axes=None), nl.program_id()) == (1, 1, 0)
            return x

        assert kernel(X) is X
        assert kernel[1](X) is X

    def test_two_programs_run_the_same_code(self) -> None:
        """Each with its own id."""
        seen: list[tuple[int, int, int]] = []

        @nki.jit
        def kernel(x: Any) -> Any:
            seen.append((nl.program_ndim(), nl.num_programs(axes=0), nl.program_id(axis=0)))
            return x

        kernel[2](X)
        assert seen == [(1, 2, 0), (1, 2, 1)]

    def test_the_kth_shared_allocation_is_one_buffer(self) -> None:
        """Both programs write into it, and program 0 returns it; private_hbm is each program's own."""

        @nki.jit
        def kernel(x: Any) -> Any:
            mine = nl.program_id(0)
            rows = slice(4 * mine, 4 * mine + 4)
            tile = nl.load(x[rows, :])
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=100.0 * mine)
            first = nl.ndarray((8, 4), nl.float32, buffer=nl.shared_hbm)
            second = nl.ndarray((8, 4), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=first[rows, :], src=tile)
            nisa.dma_copy(dst=second[4 - 4 * mine : 8 - 4 * mine, :], src=tile)
            return first, second

        first, second = kernel[2](X)
        expected = X + np.repeat([0, 100], 4)[:, None]
        np.testing.assert_array_equal(first, expected)
        np.testing.assert_array_equal(second, np.concatenate([expected[4:], expected[:4]]))

    def test_a_returned_input_is_the_input_updated(self) -> None:
        """The result is the caller's own array."""

        @nki.jit
        def kernel(x: Any, cache: Any) -> Any:
            nisa.dma_copy(dst=cache, src=x)
            return cache, x

        cache = np.zeros_like(X)
        results = kernel(X, cache)
        assert results[0] is cache
        assert results[1] is X
        np.testing.assert_array_equal(cache, X)
