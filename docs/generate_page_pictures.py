"""The pictures of how-to/page.md: pages of real runs, each photographed with the pane that its text speaks of.

``python -m docs.generate_page_pictures FOLDER`` writes them; where Chromium or selenium is missing, the text says so.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from docs.generate_pictures import browser, photograph, selected
from kernels import references
from nkitools.comparison.rule import Rule
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.launch.simulate import simulate
from nkitools.pallas.checking import check
from nkitools.record.watch.watching import watching
from nkitools.report.page.differences import Against
from nkitools.report.page.document import write_page
from nkitools.targets.imports import stand_in

WINDOW = 1280, 1000


class Shot(NamedTuple):
    """A picture: its file, its text, the run, what is right, another run, and the keys that are pressed."""

    name: str
    text: str
    run: Any
    expected: Any = None
    against: Any = None
    keys: tuple[str, ...] = ()
    address: str = ""  # what is selected


def page_pictures(folder: Path) -> str:
    """Write the pictures into a folder, and return Markdown that shows those that could be made."""
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None or find_spec("selenium") is None:
        return "The pictures of pages take Chromium and selenium, which were not there.\n"
    with stand_in("always"), tempfile.TemporaryDirectory() as temporary:
        shots = [*_shots(), *_of_other_worlds()]
        with browser(Path(temporary) / "profile") as driver:
            if driver is None:
                return "The pictures of pages take a Chromium that starts.\n"
            driver.set_window_size(*WINDOW)
            page = Path(temporary) / "page.html"
            for shot in shots:
                write_page(shot.run, page, shot.expected, against=shot.against)
                photograph(driver, page, folder / shot.name, address=shot.address, keys=shot.keys)
    return "\n".join(line for shot in shots for line in (f"![{shot.text}]({shot.name})", "", f"*{shot.text}.*", ""))


def _shots() -> list[Shot]:
    from kernels.nki.attention import attention
    from kernels.nki.softmax import softmax

    random = np.random.default_rng(0)
    rows = [random.standard_normal((512, 64)).astype(np.float32) for _ in range(3)]
    flash = _watched(attention, *rows)
    logits = random.standard_normal((512, 256)).astype(np.float32)
    right, spoiled = (_watched(softmax, each) for each in (logits, _spoiled(logits)))
    before = Against(right, "yesterday.json", Rule())
    halves = [(each.astype(np.float32),) for each in np.split(random.standard_normal((256, 256)), 2)]
    ranks = _watched(shared_sum, *halves, ranks=2)
    last = flash.writes[-1]
    stored = f"#line={last.line}&turn=start:{last.loops['start']}&el=9,4"
    back = ("w", *("ArrowDown",) * 4)
    return [
        Shot(
            "page_why.png", "Why an element is what it is: key w, then the arrow keys", flash, keys=back, address=stored
        ),
        Shot("page_time.png", "Time: lanes of engines and queues, memories on the same axis", flash, keys=("7",)),
        Shot("page_diff.png", "Two runs side by side: the first write that differs", spoiled, right.outputs, before),
        Shot("page_ranks.png", "Two ranks that exchange a sum", ranks, keys=("7",)),
        Shot(
            "page_softmax.png", "A run that agrees with its reference", right, references.softmax(logits), keys=("2",)
        ),
    ]


def _of_other_worlds() -> list[Shot]:
    """Return the pictures of a legacy kernel, of a Pallas kernel and of a custom operator."""
    from kernels.nki.legacy.conv2d import conv2d

    random = np.random.default_rng(1)
    images, filters = random.standard_normal((1, 16, 12, 12)), random.standard_normal((16, 16, 3, 3))
    legacy = _watched(conv2d, images.astype(np.float32), filters.astype(np.float32))
    deep = next(each for each in legacy.writes if len(each.shape) > 3 and np.ptp(np.nan_to_num(each.value)) > 0)
    turn = ",".join(f"{name}:{value}" for name, value in deep.loops.items())
    place = f"#line={deep.line}&turn={turn}&el=5,40"
    shots = [
        Shot("page_legacy.png", "A legacy kernel: a tile of four dimensions, by its own indices", legacy, address=place)
    ]
    return [*shots, *_of_pallas(random), *_of_an_operator(random)]


def _of_pallas(random: Any) -> list[Shot]:
    if find_spec("jax") is None:
        return []
    import jax.numpy as jnp

    from kernels.pallas.matmul import Blocks, matmul

    x, y = (jnp.asarray(random.standard_normal((256, 256)), jnp.bfloat16) for _ in range(2))
    with watching():
        run = check(matmul, x, y, modes="tpu_interpret", blocks=Blocks(128, 128, 128))
    text = "A Pallas kernel: the grid, the block of each operand, vector memory and the order of events"
    way = "A Pallas kernel: the way back from an element, through its sums and the blocks that were read"
    stored = selected(run)
    return [
        Shot("page_grid.png", text, run, address=stored, keys=("6",)),
        Shot("page_grid_why.png", way, run, address=stored, keys=("w", "ArrowDown", "ArrowDown")),
    ]


def _of_an_operator(random: Any) -> list[Shot]:
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        return []
    from cpp_ops.relu.build import library

    values = random.standard_normal((1, 20_000)).astype(np.float32)
    with watching():
        run = library("multicore").relu_forward.run(values)
    text = "A custom operator: what each GpSimd core did, read and wrote"
    return [Shot("page_cores.png", text, run, np.maximum(values, 0), keys=("6",))]


def _watched(kernel: Any, *args: Any, ranks: int | None = None) -> Any:
    with watching():
        return simulate(kernel, *args, chip="trn2", ranks=ranks)


def _spoiled(logits: Any) -> Any:
    """Return the logits with other values in the rows of one turn."""
    other = logits.copy()
    other[256:384] *= 1.5
    return other


def shared_sum(x: Any) -> Any:
    """Return the sum of what the ranks have."""
    mine, total = (nl.ndarray(x.shape, x.dtype, buffer=nl.private_hbm) for _ in range(2))  # type: ignore[attr-defined]
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)  # type: ignore[attr-defined]
    nisa.dma_copy(dst=mine, src=nl.sqrt(nl.abs(nl.load(x))))
    ncc.all_reduce(srcs=[mine], dsts=[total], replica_group=ncc.ReplicaGroup([[0, 1]]), op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


if __name__ == "__main__":
    print(page_pictures(Path(sys.argv[1])))
