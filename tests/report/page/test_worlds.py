"""Pages of Pallas kernels and of custom operators: their grid and their cores, as the run has them, in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from cpp_ops.relu import build, reference
from docs import generate_gallery
from kernels import gallery
from nkitools.customop import Library, load
from nkitools.pallas.compiled import Compiled, CompiledKernel
from nkitools.report.page.page_data import Gathering
from tests.report.page.browser import Reader
from tests.report.page.test_defects import wait
from tests.report.page.test_truth import written

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

pytestmark = pytest.mark.frameworks

RANDOM = np.random.default_rng(3)
LEFT = RANDOM.integers(-8, 8, (16, 256)).astype(np.float32)  # whose products and sums are exact
RIGHT = RANDOM.integers(-8, 8, (256, 128)).astype(np.float32)


def product(x_ref: Any, y_ref: Any, out_ref: Any, sums: Any) -> None:
    """Adds up the products of blocks."""

    @pl.when(pl.program_id(1) == 0)
    def _() -> None:
        sums[...] = jnp.zeros_like(sums)

    sums[...] += jnp.dot(x_ref[...], y_ref[...])

    @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
    def _() -> None:
        out_ref[...] = sums[...]
        pl.debug_print("row {}", pl.program_id(0))


def multiplied(x: Any, y: Any) -> Any:
    return pl.pallas_call(
        product,
        out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j)), pl.BlockSpec((128, 128), lambda i, j: (j, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x, y)


def copied(x: Any) -> Any:
    """Copies by DMAs: both are started before the first is waited for."""

    def kernel(x_hbm: Any, out_hbm: Any, room: Any, sems: Any) -> None:
        into = [pltpu.make_async_copy(x_hbm.at[pl.ds(8 * at, 8)], room.at[at], sems.at[at]) for at in range(2)]
        out = [pltpu.make_async_copy(room.at[at], out_hbm.at[pl.ds(8 * at, 8)], sems.at[at]) for at in range(2)]
        for copies in (into, out):
            for each in copies:
                each.start()
            for each in copies:
                each.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[pltpu.VMEM((2, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def checked(function: Any, *args: Any) -> Any:
    with nkitools.watching():
        return nkitools.pallas.check(function, *args, modes="tpu_interpret")


def narrow(reader: Reader) -> int:
    """How wide the page is at most in a window of 390 pixels, whatever pane is open."""
    about = {"width": 390, "height": 860, "deviceScaleFactor": 1, "mobile": False}
    reader.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", about)
    panes = [each.get_attribute("id") for each in reader.all(".tabs [role=tab]")]
    width = "document.getElementById(arguments[0]).click(); return document.documentElement.scrollWidth"
    found = max(int(reader.driver.execute_script(width, each)) for each in panes)
    reader.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return found


def test_the_trace_of_a_grid_is_that_of_numpy() -> None:
    """Blocks, sums and stores of each point are what NumPy makes of the same slices."""
    run = checked(multiplied, LEFT, RIGHT)
    (trace,) = run.traces
    assert trace.points == [(0, 0), (0, 1), (1, 0), (1, 1)]
    blocks = [each for each in trace.events if each.kind == "block in"]
    stored = [each for each in trace.events if each.kind == "block out"]
    sums = [
        each for each in trace.events if each.kind == "write" and trace.buffers[each.writes[0].buffer].name == "sums"
    ]
    assert len(blocks) == 8
    for each in blocks:
        (i, j), name = trace.points[each.step], trace.buffers[each.writes[0].buffer].name
        rows, columns = (slice(8 * i, 8 * i + 8), slice(128 * j, 128 * j + 128))
        wanted = LEFT[rows, columns] if name == "x_ref" else RIGHT[columns]
        np.testing.assert_array_equal(each.value, wanted)
    for at, each in enumerate(each for each in sums if not np.array_equal(each.value, np.zeros((8, 128)))):
        i, j = divmod(at, 2)
        wanted = LEFT[8 * i : 8 * i + 8, : 128 * j + 128] @ RIGHT[: 128 * j + 128]
        np.testing.assert_array_equal(each.value, wanted)
    assert [(each.step, each.writes[0].starts) for each in stored] == [(1, (0, 0)), (3, (8, 0))]
    assert nkitools.pallas.check(multiplied, LEFT, RIGHT, modes="tpu_interpret").traces == []


def test_the_grid_is_stepped(reader: Reader, tmp_path: Path) -> None:
    """Blocks over the arrays, vector memory and prints of a point; a wrong element leads to the point that wrote it."""
    run, expected = checked(multiplied, LEFT, RIGHT), LEFT @ RIGHT
    kernel = CompiledKernel("product", True, 3 << 19, 16 << 20)
    run.compiled, run.left_out = {"v5e": Compiled("v5e", (kernel,))}, {"device": "no TPU"}
    expected[9, 3] += 1
    reader.open(written(run, tmp_path, expected))
    assert "program_id(0)=1, program_id(1)=1" in reader.text(".card.error")
    assert "device: no TPU" in reader.text("#pane")
    reader.click(".card.error .go", "Show the first wrong tile")
    assert "out_ref[8:16, 0:128]" in reader.text(".inspector h2")
    reader.press("6")
    assert "at (1, 1)" in reader.text("#pane .tools h3")
    words = reader.text("#pane")
    for block in ("x_ref[8:16, 128:256]", "y_ref[128:256, 0:128]", "out_ref[8:16, 0:128]"):
        assert block in words
    assert "1536 KiB of 16384 KiB" in words
    assert reader.text("#pane ul.plain").startswith("row 1")
    # A point before: another block of x, the sums of the first half.
    reader.driver.execute_script("document.querySelector('[aria-label=\"step before\"]').click()")
    wait(lambda: "at (1, 0)" in reader.text("#pane .tools h3"))
    assert "x_ref[8:16, 0:128]" in reader.text("#pane")
    assert "none at this point" in reader.text("#pane ul.plain")
    held = """const { contentOf, traces, run } = window.nkitools, [trace] = traces;
        const [storage] = trace.buffers.find(([each, kind]) => kind === 'scratch');
        const last = trace.first + trace.count - 1;
        return Array.from(contentOf(storage, trace, last).values);"""
    np.testing.assert_array_equal(np.array(reader.driver.execute_script(held)).reshape(8, 128), LEFT[8:] @ RIGHT)
    assert reader.text("#tab-instructions") == f"Events{len(run.traces[0].events)}"
    assert reader.texts("#tab-time, #tab-memory") == []
    assert narrow(reader) <= 390


def test_copies_are_bars_from_start_to_wait(reader: Reader, tmp_path: Path) -> None:
    """What a DMA moves, what started it, and that two of them overlap in the order of events."""
    run = checked(copied, LEFT[:, :128])
    (trace,) = run.traces
    moved = [(at, each) for at, each in enumerate(trace.events) if each.kind == "DMA"]
    assert len(moved) == 4
    assert all(trace.events[each.begun].kind == "DMA start" for _, each in moved)
    first = [each.begun for _, each in moved[:2]]
    assert max(first) < moved[0][0]
    assert sorted(each.writes[0].starts for _, each in moved[2:]) == [(0, 0), (8, 0)]
    found = Gathering(run, None)
    begun = found.columns["event.begun"]
    assert [int(begun[at]) for at, _ in moved] == [each.begun for _, each in moved]
    reader.open(written(run, tmp_path, LEFT[:, :128]))
    reader.press("6")
    label = reader.see("#pane .order canvas").get_attribute("aria-label")
    assert f"{len(trace.events)} events" in label
    assert "wait" in reader.text("#pane .events")


@pytest.fixture(scope="module")
def relu() -> Library:
    return build.library("multicore")


def test_the_cores_of_an_operator(relu: Library, reader: Reader, tmp_path: Path) -> None:
    """Bursts of eight cores cover the output once and have its values; a lane, counters and TCM for each of them."""
    x = RANDOM.standard_normal((1, 20_000)).astype(np.float32)
    with nkitools.watching():
        run = relu.relu_forward.run(x)
    (trace,) = run.traces
    bursts = [each for each in trace.events if each.kind == "tcm_to_tensor"]
    covered = np.zeros(x.size, int)
    for each in bursts:
        (first,), (last,) = each.writes[0].starts, each.writes[0].stops
        covered[first:last] += 1
        np.testing.assert_array_equal(each.value, np.maximum(x[0, first:last], 0))
    assert (covered == 1).all()
    for core in run.cores:
        mine = [each for each in trace.events if each.core == core.core]
        assert sum(each.kind == "tensor_to_tcm" for each in mine) == core.tcm_reads
        assert sum(each.kind == "tcm_to_tensor" for each in mine) == core.tcm_writes
    wrong = reference.relu_forward(x)
    wrong[0, 19_999] += 1
    reader.open(written(run, tmp_path, wrong))
    reader.click(".card.error .go", "Show the first wrong tile")
    assert reader.turn()["core"] == "7"
    reader.press("6")
    assert "8 cores" in reader.see("#pane .order canvas").get_attribute("aria-label")
    assert len(reader.all("#pane .counters tbody tr")) == 8
    assert "core 7 wrote 2\u202f500 of 17500:20000 in 3 bursts" in reader.text("#pane")
    assert "tcm 0 4 KiB" in reader.text("#pane").replace("\n", " ")
    assert narrow(reader) <= 390
    # What is saved has them too.
    run.save(tmp_path / "run.json")
    again = nkitools.load_run(tmp_path / "run.json")
    assert len(Gathering(again, None).tables["traces"][0]["buffers"]) == len(trace.buffers)


TELLING = """\
#include <torch/torch.h>
#include <neuron/neuron-utils.hpp>
torch::Tensor told(const torch::Tensor& x) {
  torch::Tensor out = get_dst_tensor();
  auto from = x.tcm_accessor();
  auto to = out.tcm_accessor();
  float* values = static_cast<float*>(torch::neuron::tcm_malloc(16));
  const size_t core = get_cpu_id();
  from.tensor_to_tcm<float>(values, 4 * core, 4);
  printf("first %f\\n", values[0]);
  if (core == 0) printf("done\\n");
  to.tcm_to_tensor<float>(values, 4 * core, 4);
  torch::neuron::tcm_free(values);
  return out;
}
"""
TOLD_SHAPE = """\
#include <torch/torch.h>
#include "torchneuron/register.h"
torch::Tensor told_shape(const torch::Tensor& x) { return torch::zeros(x.sizes(), torch::kFloat); }
NEURON_LIBRARY(telling, m) { m.def("told", &told_shape, "told"); }
"""


def test_prints_stand_by_core(reader: Reader, tmp_path: Path) -> None:
    """Each core has what it printed, with its own values; the counters say how many."""
    sources = {"told.cpp": TELLING, "shape.cpp": TOLD_SHAPE}
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    library = load("telling", [tmp_path / "told.cpp"], [tmp_path / "shape.cpp"], multicore=True)
    x = RANDOM.integers(0, 99, (1, 32)).astype(np.float32)
    with nkitools.watching():
        run = library.told.run(x)
    reader.open(written(run, tmp_path, x))
    reader.press("6")
    told = {}
    for card in reader.all("#pane article"):
        name, *lines = card.text.split("\n")
        told[name] = lines
    first = {f"core {core}": [f"first {x[0, 4 * core]:g}"] for core in range(8)}
    printed = {name: told[name] for name in first}
    assert printed == {**first, "core 0": [*first["core 0"], "done"]}
    assert [row.text.split()[-1] for row in reader.all("#pane .counters tbody tr")] == ["2", *"1" * 7]
    assert {each.rule for each in run.findings} == {"CO115"}  # on the device only core 0 prints


def test_the_gallery_shows_the_grid_and_the_cores(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture of the page at the last block that was stored; without the compiler a sentence in place of times."""
    monkeypatch.setattr(generate_gallery, "why_not", lambda: "libtpu is not here")
    pictures = generate_gallery.Pictures(tmp_path, tmp_path / "page.html", reader.driver)
    grouped, boxes = (
        next(each for each in examples if each.name == name)
        for examples, name in ((gallery.PALLAS, "grouped_matmul_int8"), (gallery.OPERATORS, "giou"))
    )
    width, height = reader.driver.get_window_size().values()
    lines = generate_gallery.pallas_section((grouped,), pictures)
    assert "The times would be the TPU compiler's: libtpu is not here." in lines
    assert reader.text(".inspector h2").split("\n") == ["block out", "out[256:384, 0:512]"]
    assert "at (2, 0, 0)" in reader.text("#pane .tools h3")
    lines += generate_gallery.operator_section((boxes,), pictures)
    assert reader.text(".inspector h2").split("\n") == ["tcm_to_tensor", "output[16256:16384]"]
    assert reader.turn()["core"] == "7"
    assert "It rests on what C++ stored, if anything, in tcm 2[0:512] read by giou.cpp" in reader.text(".trail")
    assert "tcm 2[0:512] as C++ left it" in reader.text(".inspector").replace("\n", " ")
    assert "never written" not in reader.text(".inspector")
    assert "agrees with the reference" in reader.text("header")
    reader.driver.set_window_size(width, height)
    shown = re.findall(r"\]\((\w+\.png)\)", "\n".join(lines))
    assert shown == ["gallery_pallas_grouped_matmul_int8.png", "gallery_cpp_giou.png"]
    for each in shown:
        assert (tmp_path / each).read_bytes().startswith(b"\x89PNG")


def test_the_page_of_accessors_was_watched(reader: Reader, tmp_path: Path) -> None:
    """Its elements are counted and no value is kept, which the page says in place of a run that was not watched."""
    with nkitools.watching():
        run = build.library("element").relu_forward.run(np.ones((4, 4), np.float32))
    reader.open(written(run, tmp_path))
    assert "No values were kept" not in reader.text("#pane")
    assert "elements of accessors and streams are counted" in reader.text(".inspector")


def test_an_operator_that_is_not_watched_has_its_counters(relu: Library, reader: Reader, tmp_path: Path) -> None:
    """Without a watch nothing is traced, and the page has the counters of the cores."""
    run = relu.relu_forward.run(np.ones((1, 64), np.float32))
    assert run.traces == []
    reader.open(written(run, tmp_path))
    reader.press("6")
    assert "the run was not watched" in reader.text("#pane")
    assert len(reader.all("#pane .counters tbody tr")) == 8


def test_the_dimensions_of_a_legacy_tile(reader: Reader, tmp_path: Path) -> None:
    """A tile of four dimensions: its loop is stepped, and an element has its four indices."""
    from nkitools.dialects import legacy
    from nkitools.dialects.legacy import language as lnl

    def doubled(x: Any) -> Any:
        out = lnl.ndarray(x.shape, x.dtype, buffer=lnl.shared_hbm)
        rows, a, b, c = lnl.mgrid[0:64, 0:2, 0:3, 0:5]
        for t in lnl.affine_range(2):
            tile = lnl.load(x[t * 64 + rows, a, b, c])
            lnl.store(out[t * 64 + rows, a, b, c], tile)
        return out

    x = np.arange(128 * 30, dtype=np.float32).reshape(128, 2, 3, 5)
    with nkitools.watching():
        run = nkitools.simulate(legacy.jit(doubled), x)
    loaded = next(each for each in run.writes if each.loops == {"t": 1})
    page = written(run, tmp_path)
    reader.driver.get("about:blank")
    reader.driver.get(f"{page.absolute().as_uri()}#line={loaded.line}&turn=t:1&el=7,22")
    reader.wait()
    assert reader.turn() == {"t": "1"}
    assert reader.text(".stepper .range") == "affine_range"
    assert "[7, 1, 1, 2]" in reader.text(".facts")
    assert np.float32(reader.text(".numbers td[aria-current]")) == x[64 + 7, 1, 1, 2]
    assert "1,1,2" in reader.texts(".numbers thead th")
    assert narrow(reader) <= 390
    assert "30 columns: 2 \u00d7 3 \u00d7 5, dimensions 1, 2, 3 of [64, 2, 3, 5]" in reader.text(
        ".inspector figcaption"
    )
