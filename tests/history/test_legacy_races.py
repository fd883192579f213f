"""Programs of a legacy grid that touch the same elements (NK502)."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects.legacy import language as lnl
from tests.history.racing import X


class TestLegacyGrids:
    """Instances of the grid may run side by side: err_unexpected_output_dependencies, each writes its own locations."""

    @staticmethod
    def run(kernel: Any, *arrays: Any, grid: Any) -> list[Any]:
        return nkitools.simulate(legacy.jit(kernel), *arrays, grid=grid, rules="report").findings

    def test_each_its_own_tile(self) -> None:
        """The grid of the programming model."""

        def kernel(x: Any) -> Any:
            out = lnl.ndarray((16, 12), dtype=x.dtype, buffer=lnl.shared_hbm)
            i, j = lnl.program_id(0), lnl.program_id(1)
            rows, columns = 4 * i + lnl.arange(4)[:, None], 4 * j + lnl.arange(4)[None, :]
            lnl.store(out[rows, columns], lnl.load(x[rows, columns]))
            return out

        assert self.run(kernel, np.ones((16, 12), np.float32), grid=(4, 3)) == []

    def test_overlapping_tiles(self) -> None:
        """The first program that meets another one's tile is named, with its place in the grid."""

        def kernel(x: Any) -> Any:
            out = lnl.ndarray((16, 7), dtype=x.dtype, buffer=lnl.shared_hbm)
            i, j = lnl.program_id(0), lnl.program_id(1)
            rows, columns = 4 * i + lnl.arange(4)[:, None], 3 * j + lnl.arange(4)[None, :]
            lnl.store(out[rows, columns], lnl.load(x[rows, columns]))
            return out

        (race,) = self.run(kernel, np.ones((16, 7), np.float32), grid=(4, 2))
        assert (race.rule, race.program) == ("NK502", (0, 1))
        assert "program 0, 1 writes 16 elements" in race.message
        assert "that program 0, 0 writes" in race.message
        assert "comes first: `out[0:16, 3]`" in race.message

    def test_masks_count(self) -> None:
        """Of a masked store only its lanes, of a masked load as well."""

        def kernel(x: Any, last: Any) -> Any:
            out = lnl.ndarray((8, 8), dtype=x.dtype, buffer=lnl.shared_hbm)
            p, f = lnl.arange(8)[:, None], lnl.arange(8)[None, :]
            if lnl.program_id(0) == 0:
                lnl.store(out[p, f], lnl.load(x[p, f]), mask=p + f < 8)
            else:
                lnl.store(out[p, f], lnl.load(x[p, f]), mask=p + f > last)
            return out

        assert self.run(kernel, X, 7, grid=(2,)) == []
        (race,) = self.run(kernel, X, 6, grid=(2,))
        assert "writes 8 elements" in race.message
        assert "comes first: `out[0, 7]`, `out[1, 6]`, `out[2, 5]` and 5 more elements" in race.message

    def test_a_program_that_reads_what_a_later_one_writes(self) -> None:
        """A race, although undefined lanes may travel there."""

        def kernel(x: Any) -> Any:
            between = lnl.ndarray((8, 8), dtype=x.dtype, buffer=lnl.shared_hbm)
            out = lnl.ndarray((8, 8), dtype=x.dtype, buffer=lnl.shared_hbm)
            if lnl.program_id(0) == 0:
                lnl.store(out, lnl.load(between))
            else:
                lnl.store(between, lnl.load(x))
            return out

        (race,) = self.run(kernel, X, grid=(2,))
        assert "program 0 reads 64 elements of tensor `between`" in race.message
