"""Kernel objects: what is kept of the function, grids, kernels inside kernels."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import language as nl
from nkitools.launch.kernel import KernelObject, as_launch, grid_of
from nkitools.launch.signatures import names_by_position, signature_of
from tests.launch.kernels import doubled, halves, scaled

X = np.arange(512, dtype=np.float32).reshape(128, 4)


def test_a_kernel_keeps_what_its_function_is() -> None:
    """Name, documentation, signature, module and the function itself."""
    assert scaled.__name__ == "scaled"
    assert scaled.__qualname__ == "scaled"
    assert scaled.__doc__ == "x times factor plus offset."
    assert scaled.__module__ == "tests.launch.kernels"
    assert scaled.__wrapped__ is scaled.function
    assert str(inspect.signature(scaled)) == "(x: 'Any', factor: 'float' = 2.0, *, offset: 'float' = 0.0) -> 'Any'"
    assert callable(scaled)
    assert repr(scaled) == "<modern kernel scaled>"
    assert repr(scaled[2]) == "<modern kernel scaled[2]>"


def test_attributes_of_the_function_do_not_replace_the_kernels() -> None:
    """An author's `function.grid = ...` is on the function."""

    def kernel(x: Any) -> Any:
        return x

    kernel.grid = "theirs"  # type: ignore[attr-defined]
    kernel.note = "theirs"  # type: ignore[attr-defined]
    made = nki.jit(kernel)
    assert made.grid == ()
    assert made.note == "theirs"


def test_a_function_without_a_name_can_be_a_kernel() -> None:
    """functools.partial has none."""
    made = nki.jit(functools.partial(doubled.function))
    assert made.__name__ == "partial"
    np.testing.assert_array_equal(made(X), 2 * X)


def test_a_class_is_no_kernel() -> None:
    """Its call makes an object and computes nothing."""
    for way in (nki.jit, nki.simulate):
        with pytest.raises(TypeError, match="it is given the class Path"):
            way(Path)


def test_decorated_twice_it_is_one_kernel() -> None:
    """Options add up, the outer ones win, and the grid stays."""
    inner = nki.jit(halves.function, mode="trace", debug_kernel=True)
    outer = nki.jit(inner[2], mode="auto")
    assert outer.function is halves.function
    assert outer.options == {"mode": "auto", "debug_kernel": True}
    assert outer.grid == (2,)


class TestGrids:
    """`kernel[...]`."""

    @pytest.mark.parametrize("lnc", [2, (2,), [2], np.int64(2)])
    def test_lnc_two_runs_two_programs(self, lnc: Any) -> None:
        """Each with its own id, writing into one shared output; a kernel may be indexed again and again."""
        for _ in range(2):
            out = halves[lnc](X)
            np.testing.assert_array_equal(out[:64], X[:64])
            np.testing.assert_array_equal(out[64:], X[64:] + 10)

    @pytest.mark.parametrize("lnc", [1, (1,)])
    def test_lnc_one_has_no_grid(self, lnc: Any) -> None:
        """program_ndim is 0, as without brackets."""

        @nki.jit
        def kernel(x: Any) -> Any:
            assert (nl.program_ndim(), nl.num_programs(), nl.num_programs(axes=0), nl.program_id(axis=0)) == (
                0,
                1,
                1,
                0,
            )
            return x

        assert kernel[lnc](X) is X
        assert nkitools.simulate(kernel, X, grid=lnc).outputs is X

    def test_simulate_may_give_the_grid(self) -> None:
        """In place of brackets, and over them."""
        np.testing.assert_array_equal(nkitools.simulate(halves, X, grid=2).outputs, halves[2](X))
        np.testing.assert_array_equal(nkitools.simulate(halves[1], X, grid=(2,)).outputs, halves[2](X))

    @pytest.mark.parametrize("grid", [3, 4, 0, -1, (2, 2), (1, 1), (), np.int64(3)])
    def test_other_degrees_are_refused(self, grid: Any) -> None:
        """NK613, which is a ValueError, at the author's line."""
        with pytest.raises(ValueError, match="the LNC degree is 1 or 2") as raised:
            halves[grid]
        assert isinstance(raised.value, nkitools.KernelError)
        assert (raised.value.finding.rule, raised.value.finding.file) == ("NK613", __file__)

    @pytest.mark.parametrize(
        ("grid", "shown"),
        [("2", "'2'"), (2.0, "2.0"), (X, "a ndarray"), (None, "None"), (True, "True"), ([None], "None")],
    )
    def test_what_is_no_number_is_refused(self, grid: Any, shown: str) -> None:
        """NK609, which is a TypeError, at the author's line; arrays are not printed."""
        with pytest.raises(TypeError) as raised:
            halves[grid]
        assert isinstance(raised.value, nkitools.KernelError)
        finding = raised.value.finding
        assert finding.message == f"kernel halves is launched with [{shown}]; the LNC degree is 1 or 2"
        assert (finding.rule, finding.file) == ("NK609", __file__)

    def test_a_grid_is_a_tuple_of_sizes(self) -> None:
        """From nothing, a number, or numbers."""
        assert (grid_of(None), grid_of(3), grid_of([2, np.int32(4)])) == ((), (3,), (2, 4))


class TestInside:
    """A kernel called inside a running kernel."""

    def test_it_runs_inline(self) -> None:
        """In the caller's program, with tensors for arguments, and as one run."""

        @nki.jit
        def outer(x: Any) -> Any:
            return doubled(scaled(x, factor=3.0))

        with nkitools.collect_runs() as runs:
            np.testing.assert_array_equal(outer(X), 6 * X)
        assert [run.kernel for run in runs] == ["outer"]

    def test_a_wrong_call_is_refused_with_the_call_form(self) -> None:
        """NK609 at the calling line of the outer kernel."""

        def outer(x: Any) -> Any:
            return doubled(x, x)

        with pytest.raises(TypeError) as raised:
            nkitools.simulate(outer, X)
        finding = raised.value.finding  # type: ignore[attr-defined]
        assert (finding.rule, finding.message) == ("NK609", "doubled: too many positional arguments")
        assert finding.line == outer.__code__.co_firstlineno + 1

    def test_a_grid_of_its_own_is_refused(self) -> None:
        """NK610: the grid is the host's to give."""
        with pytest.raises(nkitools.KernelError, match=r"doubled is launched with grid \[2\]") as raised:
            nkitools.simulate(lambda x: doubled[2](x), X)
        assert raised.value.finding.rule == "NK610"

    @pytest.mark.parametrize(
        "launch", [lambda x: nki.simulate(doubled)(x), lambda x: nkitools.simulate(doubled, x).outputs]
    )
    def test_a_launch_of_its_own_is_refused(self, launch: Any) -> None:
        """NK610: it would be a run inside a run."""
        with pytest.raises(nkitools.KernelError, match="doubled is launched inside a running kernel") as raised:
            nkitools.simulate(launch, X)
        assert raised.value.finding.rule == "NK610"


def test_a_launch_takes_what_the_caller_decides() -> None:
    """Over what the kernel says itself."""
    launch = as_launch(halves, grid=2, chip="trn1", rules="off")
    assert (launch.name, launch.grid, launch.chip, launch.rules) == ("halves", (2,), "trn1", "off")
    launch = as_launch(halves[2])
    assert (launch.grid, launch.chip, launch.rules) == ((2,), None, None)


def test_a_dialect_says_how_its_kernels_are_launched() -> None:
    """The base class launches the function as it is."""
    launch = KernelObject(doubled.function, (2, 3)).launch()
    assert (launch.function, launch.name, launch.grid) == (doubled.function, "doubled", (2, 3))


def test_a_signature_is_that_of_now() -> None:
    """Of a function whose default, annotation or code has changed since it was last asked for."""

    def function(x: int, y: int = 1) -> None: ...

    assert signature_of(function) is signature_of(function)
    assert names_by_position(function, 1) == ("x", "y")
    function.__defaults__ = (2,)
    assert signature_of(function).parameters["y"].default == 2
    function.__defaults__ = None
    assert (names_by_position(function, 1), names_by_position(function, 3)) == (None, None)
    function.__annotations__["x"] = str
    assert signature_of(function).parameters["x"].annotation is str
    function.__code__ = (lambda x, z: None).__code__
    assert list(signature_of(function).parameters) == ["x", "z"]
    function.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    assert not signature_of(function).parameters
