"""NK202 and NK203: tensors that do not fit into SBUF or PSUM together, and kernels in which they just do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects import modern as nki
from nkitools.dialects.legacy import language as lnl
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.launch.compile_config import CompileConfig
from tests.history.test_races import line_of

# Bytes of an SBUF partition for a kernel: 192, 224 and 256 KiB, less 16 and 8 bytes.
CAPACITIES = {"trn1": 176 * 1024 - 8, "inf2": 176 * 1024 - 8, "trn2": 208 * 1024 - 8, "trn3": 240 * 1024 - 8}
NO_FALLBACK = CompileConfig(nki_alloc_fallback=False)
LINE = np.ones((128, 1), np.float32)


def spoken(run: Any) -> list[tuple[str, str, int]]:
    """Return what is found but for stores that the next one replaces: the kernels store again and again."""
    return [(each.rule, each.severity, each.line) for each in run.findings if each.rule != "NK506"]


def halves(x: Any, nbytes: int) -> Any:
    """Two tiles that one instruction needs, of so many bytes of each partition between them."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray((128, nbytes // 8), nl.float32)
    second = nl.ndarray((128, nbytes // 4 - nbytes // 8), nl.float32)
    nisa.memset(first, 1.0)
    nisa.memset(second, 2.0)
    nisa.tensor_copy(dst=first[:, 0:1], src=second[:, 0:1])  # the peak: no element of the first is read from before
    nisa.dma_copy(dst=out, src=first[:, 0:1])
    return out


def one_by_one(x: Any, nbytes: int) -> Any:
    """Two tiles that are alive together, of so many bytes of each partition between them, in no instruction both."""
    out = nl.ndarray((2, 128, 1), x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray((128, nbytes // 8), nl.float32)
    second = nl.ndarray((128, nbytes // 4 - nbytes // 8), nl.float32)
    nisa.dma_copy(dst=first[:, 0:1], src=x)
    nisa.dma_copy(dst=second[:, 0:1], src=x)  # the second
    nisa.dma_copy(dst=out[1], src=second[:, 0:1])
    nisa.dma_copy(dst=out[0], src=first[:, 0:1])
    return out


@pytest.mark.parametrize("chip", CAPACITIES)
def test_the_last_byte_fits_and_the_next_does_not(chip: str) -> None:
    """One instruction may use all that there is of a partition, and no float32 more."""
    capacity = CAPACITIES[chip]
    assert spoken(nkitools.simulate(halves, LINE, capacity, chip=chip, rules="report")) == []
    run = nkitools.simulate(halves, LINE, capacity + 4, chip=chip, rules="report")
    assert spoken(run) == [("NK202", "error", line_of(halves, "# the peak"))]
    assert f"{capacity + 4:,} bytes" in run.findings[0].message
    assert f"{capacity:,}" in run.findings[0].message
    with pytest.raises(nkitools.KernelError, match="NK202 sbuf-capacity"):
        nkitools.simulate(halves, LINE, capacity + 4, chip=chip)
    assert spoken(nkitools.simulate(halves, LINE, capacity + 4, chip=chip, rules="off")) == []


@pytest.mark.parametrize("chip", CAPACITIES)
def test_what_no_instruction_needs_at_once_spills(chip: str) -> None:
    """A warning then: how much is too much, which tensors travel, how many bytes, and their time."""
    capacity = CAPACITIES[chip]
    assert spoken(nkitools.simulate(one_by_one, LINE, capacity, chip=chip)) == []
    run = nkitools.simulate(one_by_one, LINE, capacity + 4, chip=chip)
    assert spoken(run) == [("NK202", "warning", line_of(one_by_one, "# the second"))]
    (finding,) = run.findings
    assert "4 bytes of each partition are too many" in finding.message
    assert f"1 x `first` float32 [128, {(capacity + 4) // 8}]" in finding.message
    assert (finding.facts["extent"], finding.facts["limit"]) == (capacity + 4, capacity)
    assert finding.facts["spilled_bytes"] == 2 * 128 * 4  # the one column of the first, out and in again
    assert "(spilling)" in finding.remedy
    assert "NCC_EGCA111" not in finding.remedy
    np.testing.assert_array_equal(run.outputs, np.ones((2, 128, 1)))


@pytest.mark.parametrize("kernel", [halves, one_by_one])
def test_without_the_fallback_what_does_not_fit_is_an_error(kernel: Any) -> None:
    """nki_alloc_fallback=False: what NKI's own allocation has no room for is not compiled; True is the default."""
    capacity = CAPACITIES["trn2"]
    kept = nki.jit(kernel, compile_config=NO_FALLBACK)
    assert spoken(nkitools.simulate(kept, LINE, capacity, rules="report")) == []
    assert [each[:2] for each in spoken(nkitools.simulate(kept, LINE, capacity + 4, rules="report"))] == [
        ("NK202", "error")
    ]
    with pytest.raises(nkitools.KernelError, match="NK202"):
        nkitools.simulate(kept, LINE, capacity + 4)


def test_a_form_that_was_clean_with_the_fallback_is_looked_at_without_it() -> None:
    """The configuration is part of what decides: the same kernel, run before without it, is refused."""
    x = LINE
    for config, severity in ((CompileConfig(), "warning"), (NO_FALLBACK, "error"), (CompileConfig(), "warning")):
        run = nkitools.simulate(nki.jit(one_by_one, compile_config=config), x, CAPACITIES["trn2"] + 4, rules="report")
        assert [each.severity for each in run.findings] == [severity]


def test_tensors_with_an_address_beside_spills_are_named_as_a_risk() -> None:
    """Compilers have refused kernels that place some of their tensors and leave others to them."""

    def kernel(x: Any) -> Any:
        placed = nl.ndarray((128, 1), nl.float32, address=(0, 0))
        nisa.memset(placed, 0.0)
        return one_by_one(x, CAPACITIES["trn2"] + 4)

    (finding,) = nkitools.simulate(kernel, LINE, rules="report").findings
    assert (finding.rule, finding.severity) == ("NK202", "warning")
    assert "NCC_EGCA111" in finding.remedy


def test_the_message_names_what_is_alive() -> None:
    """Each group of tensors by size: name, dtype, shape, how many, where made and in which loop; then the rest."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 1), x.dtype, buffer=nl.shared_hbm)
        weights = nl.ndarray((128, 1024), nl.bfloat16)
        nisa.memset(weights, 0.5)
        blocks = []
        for _i in nl.sequential_range(8):
            block = nl.load(x)  # makes the blocks
            blocks.append(block)
        total = nl.zeros((128, 8192), nl.float32)
        for block in blocks:
            nisa.tensor_tensor(dst=total, data1=total, data2=block, op=nl.add)
        nisa.tensor_scalar(dst=total[:, 0:1024], data=weights, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out, src=total[:, 0:1])
        return out

    run = nkitools.simulate(kernel, np.ones((128, 8192), np.float32), rules="report", nki_version="0.6")
    (finding,) = run.findings
    made, summed, filled = (line_of(kernel, each) for each in ("makes the blocks", "total = ", "weights = "))
    assert finding.line == summed
    # Six blocks fit beside nothing else. Two leave, and a third for the total, each with 128 x 8192 elements.
    assert finding.message == (
        "296,960 bytes of each SBUF partition are needed here by 10 tensors that are alive together; a kernel has "
        "212,984 (224 KiB, less the 16 KiB and 8 bytes that the compiler keeps): `block` float32 [128, 8192] 8 x "
        f"32,768 (line {made}, loop _i=0..7); `total` float32 [128, 8192] 32,768 (line {summed}); `weights` bfloat16 "
        f"[128, 1024] 2,048 (line {filled}). 83,976 bytes of each partition are too many; for want of them the "
        "compiler is foreseen to move to HBM and back 25,165,824 bytes, 62.9 us at 400 GB/s: 3 x `block` float32 "
        f"[128, 8192] (line {made}) 25,165,824"
    )


def test_the_peak_is_reported_with_its_loop() -> None:
    """Of equal needs the first, with the counters of nl ranges around it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(3):
            parts = [nl.load(x[:, nl.ds(j * 16384, 16384)]) for j in nl.affine_range(i + 3)]  # the loads
            for j, part in enumerate(parts):
                nisa.dma_copy(dst=out[:, nl.ds(j * 16384, 16384)], src=part)
        return out

    run = nkitools.simulate(
        kernel, np.ones((128, 5 * 16384), np.float32), chip="trn3", rules="report", nki_version="0.6"
    )
    (finding,) = (each for each in run.findings if each.rule != "NK506")
    assert (finding.rule, finding.line) == ("NK202", line_of(kernel, "# the loads"))
    assert finding.loops == {"i": 2, "j": 4}
    assert "5 x 65,536" in finding.message


def test_a_tile_that_is_used_again_is_free_in_between() -> None:
    """What a full write ends makes room, though the tensor is the same."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 1), x.dtype, buffer=nl.shared_hbm)
        first, second = nl.ndarray((128, 32768), nl.float32), nl.ndarray((128, 32768), nl.float32)
        for tile in (first, second, first):
            nisa.memset(tile, 1.0)
            nisa.dma_copy(dst=out, src=tile[:, 0:1])
        return out

    assert spoken(nkitools.simulate(kernel, LINE, rules="report")) == []


def test_one_tensor_that_is_too_large_is_reported_alone() -> None:
    """Through its slices, which instructions take (NK107 is about what they do not): at its first use."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((1, 1), x.dtype, buffer=nl.shared_hbm)
        other = nl.zeros((128, 1024), nl.float32)
        row = nl.ndarray((1, 62_000), nl.float32)
        for start in range(0, 62_000, 2000):
            nisa.memset(row[:, start : start + 2000], 1.0)  # first use
        nisa.tensor_tensor(dst=row[:, 0:1024], data1=other[0:1, :], data2=row[:, 0:1024], op=nl.add)
        nisa.dma_copy(dst=out, src=row[:, 0:1])
        return out

    run = nkitools.simulate(kernel, LINE, chip="trn3", rules="report")
    assert spoken(run) == [("NK202", "error", line_of(kernel, "# first use"))]
    assert "248,000 bytes of each SBUF partition are needed here by one tensor" in run.findings[0].message
    assert "`row` float32 [1, 62000] 248,000" in run.findings[0].message


def test_a_tile_that_no_instruction_takes_is_reported_once() -> None:
    """NK107 speaks of it, and NK202 has nothing to add."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 1), x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((128, 62_000), nl.float32)
        nisa.dma_copy(dst=out, src=tile[:, 0:1])
        return out

    run = nkitools.simulate(kernel, LINE, rules="report")
    assert [each.rule for each in run.findings] == ["NK107"]


@pytest.mark.parametrize(
    ("partitions", "count", "fits"), [(32, 4, True), (32, 5, False), (64, 2, True), (64, 3, False)]
)
def test_tiles_of_few_partitions_lie_beside_each_other(partitions: int, count: int, fits: bool) -> None:
    """Four of 32 partitions, or two of 64, may have the same bytes; the message says that this is assumed."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((partitions, 1), x.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((partitions, 52 * 1024 - 2), nl.float32) for _ in range(count)]
        for tile in tiles:
            nisa.memset(tile, 1.0)
        for tile in tiles:
            nisa.dma_copy(dst=out, src=tile[:, 0:1])
        return out

    run = nkitools.simulate(kernel, LINE, chip="trn2", rules="report")
    found = [each for each in run.findings if each.rule != "NK506"]  # each tile is stored into one column
    assert [each.rule for each in found] == ([] if fits else ["NK202"])
    assert all("to lie beside each other" in each.message for each in found)


def test_what_the_language_needs_inside_of_a_call_does_not_count() -> None:
    """nl.softmax of 64 KiB of a partition: data and result fit on NeuronCore-v2, whatever lies between them."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        result = nl.softmax(nl.load(x), axis=1)
        nisa.dma_copy(dst=out, src=result)
        return out

    run = nkitools.simulate(kernel, np.ones((128, 20 * 1024), np.float32), chip="trn1", rules="report")
    assert spoken(run) == []


def test_tensors_with_an_address_are_not_summed_up() -> None:
    """Their places are the author's: what lies apart fits, and what shares bytes is judged by NK204."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 1), x.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray((128, 16 * 1024), nl.float32, address=(0, 0))
        nisa.memset(kept, 1.0)
        for _ in range(4):
            tile = nl.ndarray((128, 32 * 1024), nl.float32, address=(0, 64 * 1024))
            nisa.memset(tile, 2.0)
            nisa.tensor_tensor(dst=kept[:, 0:1], data1=kept[:, 0:1], data2=tile[:, 0:1], op=nl.add)
        nisa.dma_copy(dst=out, src=kept[:, 0:1])
        return out

    run = nkitools.simulate(kernel, LINE, chip="trn2", rules="report")
    assert spoken(run) == []
    assert run.outputs[0, 0] == 9


# --- programs --------------------------------------------------------------------------------------------------------


def of_program(x: Any, sizes: tuple[int, int]) -> Any:
    out = nl.ndarray((2, 128, 1), x.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    tiles = [nl.ndarray((128, sizes[me] // 8), nl.float32) for _ in range(2)]
    for tile in tiles:
        nisa.memset(tile, 1.0)  # of each program
    nisa.core_barrier(data=out, cores=(0, 1))
    for tile in tiles:
        nisa.dma_copy(dst=out[me], src=tile[:, 0:1])
    return out


@pytest.mark.parametrize("seed", [None, "0", "1"])
def test_each_program_has_an_sbuf_of_its_own(seed: str | None) -> None:
    """In whatever order they run: two that fill theirs fit, and of those that do not fit each is told once."""
    full, more = 208 * 1024 - 8, 210 * 1024
    with nkitools.facts.options.override(schedule_seed=seed):
        fitting = nkitools.simulate(of_program, LINE, (full, full), grid=2, rules="report")
        second = nkitools.simulate(of_program, LINE, (full, more), grid=2, rules="report")
        both = nkitools.simulate(of_program, LINE, (more, more), grid=2, rules="report")
    assert spoken(fitting) == []
    assert [(each.rule, each.program) for each in second.findings if each.rule != "NK506"] == [("NK202", (1,))]
    assert [(each.rule, each.program) for each in both.findings if each.rule != "NK506"] == [("NK202", (0,))]


# --- PSUM ------------------------------------------------------------------------------------------------------------


def products(a: Any, b: Any, count: int, columns: int) -> Any:
    """So many tiles of so many columns, all summed up before the first is copied out."""
    out = nl.ndarray((count, 128, columns), nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    sums = [nl.ndarray((128, columns), nl.float32, buffer=nl.psum) for _ in range(count)]
    for k in range(2):
        for each in sums:
            nisa.nc_matmul(dst=each, stationary=left, moving=right[:, 0:columns], accumulate=k > 0)  # sums up
    for n, each in enumerate(sums):
        nisa.dma_copy(dst=out[n], src=nl.copy(each))
    return out


@pytest.mark.parametrize(
    ("count", "columns", "fits"), [(8, 512, True), (9, 512, False), (32, 128, True), (33, 128, False)]
)
def test_psum_is_counted_in_bytes(count: int, columns: int, fits: bool) -> None:
    """Eight banks of 512 float32 elements, and four tiles of 128 in each."""
    arrays = np.ones((128, 128), np.float32), np.ones((128, 512), np.float32)
    run = nkitools.simulate(products, *arrays, count, columns, rules="report")
    assert spoken(run) == ([] if fits else [("NK203", "error", line_of(products, "# sums up"))])


@pytest.mark.parametrize(("count", "severities"), [(8, []), (9, ["warning"])])
def test_sums_that_only_wait_are_a_warning(count: int, severities: list[str]) -> None:
    """A compiler may copy each sum as soon as it is complete; production kernels rely on that."""

    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((count, 128, 512), nl.float32, buffer=nl.shared_hbm)
        left, right = nl.load(a), nl.load(b)
        sums = [nl.ndarray((128, 512), nl.float32, buffer=nl.psum) for _ in range(count)]
        for each in sums:
            for k in range(2):
                nisa.nc_matmul(dst=each, stationary=left, moving=right, accumulate=k > 0)
        for n, each in enumerate(sums):
            nisa.dma_copy(dst=out[n], src=nl.copy(each))
        return out

    arrays = np.ones((128, 128), np.float32), np.ones((128, 512), np.float32)
    run = nkitools.simulate(kernel, *arrays)
    assert [(each.rule, each.severity) for each in run.findings] == [("NK203", each) for each in severities]
    assert all("as soon as it is complete" in each.remedy for each in run.findings)
    np.testing.assert_array_equal(run.outputs, np.full((count, 128, 512), 256))


# --- the legacy dialect ----------------------------------------------------------------------------------------------


def summed(count: int, columns: int) -> Any:
    """A legacy kernel that loads so many blocks before it adds up the first."""

    def kernel(x: Any) -> Any:
        out = lnl.ndarray((lnl.par_dim(128), columns), dtype=x.dtype, buffer=lnl.shared_hbm)
        blocks = lnl.ndarray((count, lnl.par_dim(128), columns), dtype=x.dtype, buffer=lnl.sbuf)
        total = lnl.zeros((lnl.par_dim(128), columns), dtype=x.dtype, buffer=lnl.sbuf)
        for i in lnl.affine_range(count):
            blocks[i] = lnl.load(x)  # the last is too much
        for i in lnl.sequential_range(count):
            total[...] = lnl.add(total, blocks[i])
        lnl.store(out, total)
        return out

    return legacy.jit(kernel)


def test_the_legacy_compiler_spills() -> None:
    """What is alive together and does not fit is a warning there, which raises nothing and says what it costs."""
    x = np.ones((128, 8192), np.float32)
    with nkitools.allow_findings("NK612", reason="block dimensions are what is tested"):
        assert spoken(nkitools.simulate(summed(4, 8192), x, chip="trn1", rules="report")) == []
        run = nkitools.simulate(summed(5, 8192), x, chip="trn1")
    kernel = run.findings[0]
    assert (kernel.rule, kernel.severity) == ("NK202", "warning")
    assert "5 x 32,768" in kernel.message
    assert "spilling" in kernel.remedy
    assert run.outputs[0, 0] == 5


def test_blocks_have_lives_of_their_own() -> None:
    """Of a tensor with block dimensions only the tiles that are in use take bytes."""

    def kernel(x: Any) -> Any:
        out = lnl.ndarray((lnl.par_dim(128), 8192), dtype=x.dtype, buffer=lnl.shared_hbm)
        blocks = lnl.ndarray((16, lnl.par_dim(128), 8192), dtype=x.dtype, buffer=lnl.sbuf)
        for i in lnl.affine_range(16):
            blocks[i] = lnl.load(x)
            lnl.store(out, blocks[i])
        return out

    with nkitools.allow_findings("NK612", "NK501", reason="block dimensions are what is tested"):
        run = nkitools.simulate(legacy.jit(kernel), np.ones((128, 8192), np.float32), chip="trn1", rules="report")
    assert spoken(run) == []


def test_operands_of_one_instruction_cannot_be_spilled() -> None:
    """The legacy compiler refuses what it would need at once: an error there, too."""

    def kernel(x: Any) -> Any:
        out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
        tile = lnl.load(x)
        lnl.store(out, lnl.exp(tile))  # both at once
        return out

    run = nkitools.simulate(legacy.jit(kernel), np.ones((128, 24 * 1024), np.float32), chip="trn1", rules="report")
    assert spoken(run) == [("NK202", "error", line_of(kernel, "# both at once"))]
    assert spoken(nkitools.simulate(legacy.jit(kernel), np.ones((128, 22 * 1024), np.float32), chip="trn1")) == []
