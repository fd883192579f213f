"""Device prints as records."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.prints.device_print import Print

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@nki.jit
def printing(x: Any) -> Any:
    for m in range(2):
        nl.device_print("x", x[m : m + 1, 0:3])
    return x


def test_a_print_tells_what_was_printed_and_where() -> None:
    """Prefix, values, shape, dtype, memory, program, counters, file and line."""
    first, second = nkitools.simulate(printing, X).prints
    np.testing.assert_array_equal(second.value, X[1:2, 0:3])
    assert (first.prefix, first.shape, first.dtype, first.memory) == ("x", (1, 3), "float32", "HBM")
    assert (first.program, first.loops, second.loops) == ((), {"m": 0}, {"m": 1})
    line = printing.function.__code__.co_firstlineno + 3
    assert (first.file, first.line) == (__file__, line)
    assert second.place() == f"program 0, m=1, test_device_print.py:{line}"
    assert second.text() == f"x [program 0, m=1, test_device_print.py:{line}] HBM float32 [1, 3]\n[[4. 5. 6.]]"


def test_values_are_copies() -> None:
    """They show what was there then, and nobody changes them later."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        nl.device_print("before", tile)
        nisa.memset(tile, 0)
        nl.device_print("after", tile)

    before, after = nkitools.simulate(kernel, X).prints
    np.testing.assert_array_equal(before.value, X)
    np.testing.assert_array_equal(after.value, np.zeros_like(X))
    assert not np.shares_memory(before.value, after.value)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.int8, np.bool_])
def test_values_keep_their_dtype_and_are_readable(dtype: Any) -> None:
    """bfloat16 and float8, too."""
    (one,) = nkitools.simulate(lambda x: nl.device_print("x", x), X.astype(dtype)).prints
    assert one.value.dtype == dtype
    assert one.dtype == str(np.dtype(dtype))
    assert "4" in one.text() or "True" in one.text() or "1" in one.text()


def test_packed_values_are_shown_as_their_bits() -> None:
    """Four numbers in one element have no single value."""
    packed = np.zeros((2, 2), [("float8_e4m3fn_x4", "<u4")])
    packed["float8_e4m3fn_x4"] = 7
    (one,) = nkitools.simulate(lambda x: nl.device_print("x", x), packed).prints
    assert one.dtype == "float8_e4m3fn_x4"
    assert "(7,)" in one.text()


def test_long_arrays_are_elided() -> None:
    """As NumPy does it, in a few lines."""
    (one,) = nkitools.simulate(lambda x: nl.device_print("x", x), np.ones((128, 512), np.float32)).prints
    assert len(one.text().splitlines()) <= 9
    assert "..." in one.text()


def test_a_place_without_a_file_is_a_program() -> None:
    """A record made by hand, or of two dimensions."""
    assert Print("x", X, X.shape, "float32").place() == "program 0"
    assert Print("x", X, X.shape, "float32", program=(1, 2), loops={"i": 3}).place() == "program 1, 2, i=3"


def test_shape_and_dtype_are_filled_in_each_on_its_own() -> None:
    """What is given stays."""
    flat = X.reshape(-1)
    assert (Print("x", flat, shape=X.shape).shape, Print("x", flat, dtype="int8").dtype) == (X.shape, "int8")
    assert (Print("x", X, dtype="int8").shape, Print("x", X, shape=X.shape).dtype) == (X.shape, "float32")


class TestEcho:
    """AWS's ways in print at once; nkitools' own collect."""

    @pytest.mark.parametrize(
        "way_in", [lambda: printing(X), lambda: nki.simulate(printing)(X), lambda: printing[2](X)[0:1]]
    )
    def test_awss_ways_in_print(self, way_in: Any, capsys: pytest.CaptureFixture[str]) -> None:
        """And the records are the run's all the same."""
        with nkitools.collect_runs() as runs:
            way_in()
        shown = capsys.readouterr().out
        assert shown == "".join(f"{one.text()}\n" for one in runs[0].prints)
        assert shown.startswith("x [program 0, m=0, test_device_print.py:")

    def test_they_print_as_it_happens(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What came before a failure is there."""

        @nki.jit
        def failing(x: Any) -> Any:
            nl.device_print("seen", x)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            failing(X)
        assert "seen [" in capsys.readouterr().out

    def test_simulate_collects(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Whoever asks for the records decides what to show."""
        assert len(nkitools.simulate(printing, X).prints) == 2
        assert capsys.readouterr().out == ""
