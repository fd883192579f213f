"""The page's own way back from an element is that of `run.why`, and can be walked with the arrow keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kernels.nki.attention import attention
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.why.asked_elements import asked_of
from nkitools.why.backward import Backward
from tests.report.page.browser import Reader
from tests.report.page.test_defects import passes, wait
from tests.report.page.test_truth import WIDE, watched, written

_STEPS = """const { Slice, run } = window.nkitools, output = run.outputs[arguments[0]];
    const slice = new Slice(), mask = new Uint8Array(output.shape.reduce((a, b) => a * b, 1));
    mask[arguments[1]] = 1;
    slice.askAtEnd(output, mask);
    slice.reach(1e6);
    const marked = (mask) => Array.from(mask.keys()).filter((at) => mask[at]);
    return [slice.isExact, slice.steps.map(({ position, made }) => [position, Object.fromEntries([...made].map(
        ([name, mask]) => [name, marked(mask)]))]), [...slice.leaves.values()].map(({ kind }) => kind).sort()];"""


def back_of(run: Any, output: int, index: tuple[int, ...]) -> dict[int, dict[str, list[int]]]:
    """Return what run.why goes through: by position the flat elements of each result."""
    back = Backward(run)
    back.start(*asked_of(run, output, index))
    bases = run.dependences.bases
    return {
        int(bases[number] + position): {name: np.flatnonzero(mask).tolist() for name, mask in visit.made.items()}
        for (number, position), visit in back.visits.items()
    }


def page_back(reader: Reader, output: int, flat: int) -> Any:
    """Return what the page goes through, whether it is exact, and where the way ends."""
    return reader.driver.execute_script(_STEPS, output, flat)


def pieces(x: Any, y: Any) -> Any:
    """Reductions, transposes, scans, broadcasts, halves of a tile, sums in PSUM and memory that nothing wrote."""
    out = nl.ndarray((128, 64), x.dtype, buffer=nl.shared_hbm)
    a, b, never = nl.load(x[:, 0:64]), nl.load(y[:, 0:128]), nl.ndarray((128, 64), x.dtype)
    row, turned = nl.ndarray((128, 1), x.dtype), nl.ndarray((64, 128), x.dtype, buffer=nl.psum)
    nisa.tensor_reduce(dst=row, op=nl.add, data=a, axis=1)
    nisa.tensor_scalar(dst=a, data=a, op0=nl.subtract, operand0=row)
    nisa.nc_transpose(dst=turned, data=a)
    held = nl.copy(turned)
    total = nl.ndarray((128, 64), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=b, moving=a)
    nisa.nc_matmul(dst=total, stationary=b[0:64, :], moving=held[:, 0:64])
    nisa.tensor_copy(dst=a[:, 0:32], src=total[:, 32:64])
    nisa.tensor_copy(dst=a[0:64, 40:42], src=never[0:64, 0:2])
    nisa.dma_copy(dst=out, src=a)
    return out


def rounds(x: Any) -> Any:
    """Each rank sends the sum of its rows round."""
    mine, total = (nl.ndarray((2, 4), x.dtype, buffer=nl.private_hbm) for _ in range(2))
    out = nl.ndarray((2, 4), x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=mine, src=nl.load(x))
    ncc.all_reduce(srcs=[mine], dsts=[total], replica_group=ncc.ReplicaGroup([[0, 1]]), op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def test_the_way_back_is_that_of_why(reader: Reader, tmp_path: Path) -> None:
    """Instruction by instruction the same elements: two passes over HBM, steps, sums in PSUM, attention, two ranks."""
    random = np.random.default_rng(3)
    sequence = [random.standard_normal((256, 32)).astype(np.float32) for _ in range(3)]
    given = (np.ones((2, 4), np.float32),)
    asked = [
        (watched(passes, WIDE[:, :128], WIDE[:, 128:256], rules="off"), [(5, 70), (127, 0)]),
        (watched(pieces, WIDE[:, :64], WIDE[:, 64:192], rules="off"), [(3, 7), (3, 41), (99, 50)]),
        (watched(attention, *sequence), [(200, 9)]),
        (watched(rounds, given, given, ranks=2), [(1, 2)]),
    ]
    for run, elements in asked:
        reader.open(written(run, tmp_path))
        shape = np.asarray(_first(run.outputs)).shape
        for index in elements:
            exact, steps, _ = page_back(reader, 0, int(np.ravel_multi_index(index, shape)))
            found = dict(steps)
            assert exact
            assert found == back_of(run, 0, index)
            assert len(found) == len(steps)


def test_the_way_is_walked(reader: Reader, tmp_path: Path) -> None:
    """The key w asks for the marked element; the arrows go back and forth, and light what counts."""
    run = watched(passes, WIDE[:, :128], WIDE[:, 128:256], rules="off")
    reader.open(written(run, tmp_path))
    turn = next(at for at, each in enumerate(run.instructions) if each.loops == {"d": 2})
    reader.driver.execute_script(f"location.hash = 'line={run.instructions[turn].line}&turn=d:2&el=9,3'")
    wait(lambda: reader.text(".facts").count("[9, 3]"))
    reader.press("w")
    rows = [" ".join(each.split()) for each in reader.texts(".why .row")]
    assert [each.split()[0] for each in rows] == [str(turn), "2", "end"]
    assert "scratch[0:128, 64:96]" in rows[0]
    assert "x: 1 element" in rows[2]
    reader.press("ARROW_DOWN")
    assert reader.text(".inspector h2").startswith("dma_copy")
    assert "scratch" in reader.text(".inspector h2")
    assert np.float32(reader.text(".numbers td.lit")) == WIDE[9, 67]
    reader.press("ARROW_RIGHT")  # the argument, where the element is [9, 67]
    assert np.float32(reader.text(".numbers td.lit[aria-current]")) == WIDE[9, 67]
    assert len(reader.all(".numbers td.lit")) == 1
    assert "[9, 67]" in reader.text(".facts")
    reader.press("ARROW_LEFT", "ARROW_LEFT")
    assert f"instruction {turn}" in reader.text(".inspector")


def _first(outputs: Any) -> Any:
    return _first(outputs[0]) if isinstance(outputs, (list, tuple)) else outputs
