"""The columns of a run have what its instructions have, one by one."""

from __future__ import annotations

import numpy as np

import nkitools
from nkitools.record.run import Run
from tests.nki_versions import SINCE_0_7
from tests.record.test_instruction_reader import X, nested, runs


def test_columns_of_a_small_kernel() -> None:
    """Questions to a whole run are answered without a loop."""
    columns = nkitools.simulate(nested, X).instructions.columns()
    names, counts = np.unique(columns.instructions["name"], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "dma_copy": 6,
        "tensor_scalar": 9,
        "tensor_tensor": 18,
    }
    on_vector = columns.instructions["engine"] == "vector"
    assert on_vector.sum() == 27
    written = columns.operands[columns.operands["written"]]
    assert written["instruction"].tolist() == list(range(33))
    assert set(written["tensor"]) == {"tile", "out"}
    assert (written["tensor"] == "out").nonzero()[0].tolist() == [10, 21, 32]
    # Turns begin in order: i, then j with its two of _k, three times.
    assert columns.loops["name"].tolist() == (["i"] + ["j", "_k", "_k"] * 3) * 3
    assert columns.loops["outer"][:5].tolist() == [-1, 0, 1, 1, 0]
    assert columns.loops["value"][:10].tolist() == [0, 1, 0, 1, 3, 0, 1, 5, 0, 1]
    assert columns.instructions["loop"][:5].tolist() == [0, 1, 2, 3, 4]


@SINCE_0_7
def test_columns_agree_with_the_instructions() -> None:
    """Over loops, programs and ranks, and in a run out of a file."""
    for each in runs():
        for run in (each, Run.from_json(each.to_json())):
            table, operands, loops = run.instructions.columns()
            assert table.size == len(run.instructions)
            assert operands["instruction"].tolist() == np.repeat(np.arange(table.size), table["operands"]).tolist()
            for entry, one in zip(table, run.instructions, strict=True):
                for name in ("name", "engine", "cycles", "nanoseconds", "file", "line", "program"):
                    assert entry[name] == getattr(one, name)
                assert entry["rank"] == (-1 if one.rank is None else one.rank)
                mine = operands[entry["operand"] : entry["operand"] + entry["operands"]]
                assert len(mine) == len(one.operands)
                for part, operand in zip(mine, one.operands, strict=True):
                    assert part.item()[1:] == tuple(vars(operand).values())
                counters, turn = list[tuple[str, int]](), entry["loop"]
                while turn >= 0:
                    counters.insert(0, (loops["name"][turn], int(loops["value"][turn])))
                    turn = loops["outer"][turn]
                assert dict(counters) == one.loops


def test_a_run_without_a_record_has_empty_columns() -> None:
    """With all fields."""
    columns = Run("kernel", "neuron").instructions.columns()
    assert [each.size for each in columns] == [0, 0, 0]
    assert columns.instructions["name"].tolist() == columns.operands["shape"].tolist() == []
