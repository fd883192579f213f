"""The limits of each generation against AWS's documents, and which chip a launch is for."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from nkitools.chip.chosen_chip import resolve_chip
from nkitools.facts import options
from nkitools.facts.generations import (
    DEFAULT_CHIP,
    FIELDS,
    GENERATIONS,
    KIB,
    V2,
    V3,
    V4,
    Clocks,
    Generation,
    generation_of,
    replace,
)

MIB = 1024 * KIB

VARIABLES = ("NKITOOLS_CHIP", "NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that runs the tests does not say which chip."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("generation", "clocks"),
    [(V2, Clocks(2.8, 1.12, 1.4, 1.4)), (V3, Clocks(2.4, 0.96, 1.2, 1.2)), (V4, Clocks(2.4, 1.2, 1.2, 1.2))],
    ids=lambda value: getattr(value, "name", ""),
)
def test_engine_clocks(generation: Generation, clocks: Clocks) -> None:
    """Tables "Frequency (GHz)" of the three architecture guides: Tensor, Vector, Scalar, GpSimd."""
    assert generation.clocks == clocks


@pytest.mark.parametrize(("generation", "total"), [(V2, 24), (V3, 28), (V4, 32)])
def test_sbuf_sizes(generation: Generation, total: int) -> None:
    """ "24MiB SBUF", "28MiB (or, 128 partitions of 224KiB)", "32 MiB (up from 28 MiB in NeuronCore-v3)": the guides."""
    assert generation.partitions == 128
    assert generation.partitions * generation.sbuf_partition_bytes == total * MIB


@pytest.mark.parametrize("generation", [V2, V3, V4])
def test_psum_sizes(generation: Generation) -> None:
    """ "PSUM is organized into 128 partitions, each consisting of 16KB", "8 PSUM banks, with each bank holding up to
    512 32-bit values" (Trainium/Inferentia2 guide); "the PSUM capacity remains the same at 2 MiB" (Trainium2 and 3
    guides).
    """
    assert generation.psum_banks == 8
    assert generation.psum_bank_bytes == 512 * 4
    assert generation.psum_partition_bytes == 16 * KIB
    assert generation.partitions * generation.psum_partition_bytes == 2 * MIB


@pytest.mark.parametrize(("generation", "bytes_per_partition"), [(V2, 176), (V3, 208), (V4, 240)])
def test_usable_sbuf(generation: Generation, bytes_per_partition: int) -> None:
    """The legacy direct-allocation guide: [0, 192 KiB - 16 KiB) on NeuronCore-v2; the others are taken to be alike."""
    assert generation.sbuf_usable_bytes == bytes_per_partition * KIB


@pytest.mark.parametrize(("generation", "float32", "bfloat16"), [(V2, 512, 512), (V3, 512, 512), (V4, 4096, 8192)])
def test_moving_free_sizes(generation: Generation, float32: int, bfloat16: int) -> None:
    """nc_matmul, Tile size: "On NeuronCore-v2 and -v3, the free dimension size of moving tile must not exceed 512 [...]
    Starting NeuronCore-v4, [it] can go up to 4096 for float32 dst or 8192 for bfloat16 dst".
    """
    assert generation.moving_fmax("float32") == float32
    assert generation.moving_fmax("bfloat16") == bfloat16


@pytest.mark.parametrize("generation", [V2, V3, V4])
def test_stationary_free_size(generation: Generation) -> None:
    """nc_matmul, Tile size: "The free dimension size of stationary must not exceed 128 when tiling mode is off"."""
    assert generation.stationary_fmax == 128


def test_matmul_dtypes() -> None:
    """nc_matmul, Data types: "float8_e4m3/float8_e5m2/bfloat16/float16/tfloat32/float32. Starting NeuronCore-v4,
    float8_e4m3fn [...]"; "dst tile must be a float32 tile in NeuronCore-v2 and NeuronCore-v3. Starting NeuronCore-v4,
    dst can either be a float32 or bfloat16 tile".
    """
    inputs = {"float8_e4m3", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float32"}
    assert V2.matmul_input_dtypes == V3.matmul_input_dtypes == inputs
    assert V4.matmul_input_dtypes == inputs | {"float8_e4m3fn"}
    assert V2.matmul_output_dtypes == V3.matmul_output_dtypes == {"float32"}
    assert V4.matmul_output_dtypes == {"float32", "bfloat16"}


def test_matmul_modes() -> None:
    """nc_matmul, Tiling mode: "2x 64 row tiles (NeuronCore-v2 or newer), or 4x 32 row tiles (NeuronCore-v3 or
    newer)"; Performance mode: "On NeuronCore-v2, performance mode is not supported"; Transpose mode: "Starting
    NeuronCore-v3 [...] bit-accurate data transpose".
    """
    assert [g.row_tile_sizes for g in (V2, V3, V4)] == [(64, 128), (32, 64, 128), (32, 64, 128)]
    assert [g.double_row_matmul for g in (V2, V3, V4)] == [False, True, True]
    assert [g.exact_transpose for g in (V2, V3, V4)] == [False, True, True]


def test_abilities_of_the_other_engines() -> None:
    """ "DGE is a new hardware block in NeuronCore-v3" (Trainium2 guide); "priority [...] (NeuronCore-v4+ only)"
    (dma_copy); "On NeuronCore v2, tensor_copy is not supported on the Scalar Engine" (tensor_copy).
    """
    assert [g.hardware_dge for g in (V2, V3, V4)] == [False, True, True]
    assert [g.dma_priority for g in (V2, V3, V4)] == [False, False, True]
    assert [g.scalar_engine_copies for g in (V2, V3, V4)] == [False, True, True]


@pytest.mark.parametrize("generation", [V2, V3, V4])
def test_limits_of_single_instructions(generation: Generation) -> None:
    """ "must not exceed 512 (nl.tile_size.bn_stats_fmax)" (bn_stats); "Vector Engine can handle shape [32, 32] or
    smaller" (nc_transpose); start_partition "must be one of 0/32/64/96" (Trainium/Inferentia2 guide, Data Access).
    """
    assert generation.bn_stats_fmax == 512
    assert generation.vector_transpose_max == 32
    assert generation.start_partition_step == 32


@pytest.mark.parametrize(("generation", "bandwidth"), [(V2, 17), (V3, 23), (V4, 33)])
def test_dma_bandwidth(generation: Generation, bandwidth: int) -> None:
    """NKI DMA Bandwidth Guide: 17, 23 and 33 B/ns of an engine, 16 engines of a NeuronCore."""
    assert generation.dma_bytes_per_second == bandwidth * 16 * 1e9


@pytest.mark.parametrize(("generation", "device", "cores"), [(V2, 0.82e12, 2), (V3, 2.9e12, 8), (V4, 4.8e12, 8)])
def test_hbm_bandwidth(generation: Generation, device: float, cores: int) -> None:
    """The share of a core: 820 GB/s for two, 2.9 to 3 TB/s and 4.7 to 4.9 TB/s for eight (the guides)."""
    assert generation.hbm_bytes_per_second == pytest.approx(device / cores, rel=0.01)


def test_every_name_of_a_chip() -> None:
    """ "trn1|inf2|gen2", "trn2|gen3", "trn3|gen4" (nki.jit docstring, NKI 0.6)."""
    names = {V2: {"trn1", "inf2", "gen2"}, V3: {"trn2", "gen3"}, V4: {"trn3", "gen4"}}
    assert {generation: set(generation.chips) for generation in (V2, V3, V4)} == names
    assert {chip: generation_of(chip) for chips in names.values() for chip in chips} == GENERATIONS
    assert [g.version for g in (V2, V3, V4)] == [2, 3, 4]


def test_a_generation_cannot_be_changed() -> None:
    """A table is data that everybody reads."""
    with pytest.raises(FrozenInstanceError):
        V3.partitions = 64  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del V3.partitions
    assert all(isinstance(hash(getattr(V3, name)), int) for name in FIELDS)


def test_a_generation_has_exactly_its_fields() -> None:
    """A field that is missing or mistyped is an error where the table is written; the others are kept."""
    with pytest.raises(TypeError, match=r"fields \['psum_bank'\]"):
        replace(V3, psum_bank=4)
    with pytest.raises(TypeError, match="'version'"):
        Generation(name="NeuronCore-v9")  # type: ignore[call-arg]
    changed = replace(V3, psum_banks=4)
    assert {name for name in FIELDS if getattr(changed, name) != getattr(V3, name)} == {"psum_banks"}
    assert (changed.psum_banks, V3.psum_banks) == (4, 8)


@pytest.mark.parametrize("chip", ["trn9", "TRN2", "", "v3", "trn2 "])
def test_a_name_of_no_chip_is_refused(chip: str) -> None:
    """The message shows the name and the ones that there are."""
    for ask in (generation_of, resolve_chip):
        with pytest.raises(ValueError, match=f"^chip: '{chip}' is not a chip .* Use one of trn1, inf2, gen2, trn2"):
            ask(chip)


def test_what_is_no_text_is_refused() -> None:
    """A generation's table is not a chip's name."""
    with pytest.raises(TypeError, match=r"^chip: must be one of trn1, .*, it is Generation"):
        resolve_chip(V3)  # type: ignore[arg-type]


def test_the_default_is_trn2() -> None:
    """Where nobody says anything."""
    assert resolve_chip() == DEFAULT_CHIP == "trn2"


def test_who_decides_about_the_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument before the option before NEURON_PLATFORM_TARGET_OVERRIDE before NKI_NC_VERSION."""
    monkeypatch.setenv("NKI_NC_VERSION", "gen4")
    assert resolve_chip() == "gen4"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    assert resolve_chip() == "trn1"
    monkeypatch.setenv("NKITOOLS_CHIP", "trn3")
    assert resolve_chip() == "trn3"
    with options.override(chip="inf2"):
        assert resolve_chip() == "inf2"
        assert resolve_chip("gen3") == "gen3"
    assert resolve_chip() == "trn3"


@pytest.mark.parametrize("variable", VARIABLES[1:])
def test_a_variable_that_names_no_chip_is_refused_by_its_name(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the reader finds where it was said; an empty one says nothing."""
    monkeypatch.setenv(variable, "trn9")
    with pytest.raises(ValueError, match=f"^{variable}: 'trn9' is not a chip"):
        resolve_chip()
    assert resolve_chip("trn1") == "trn1"
    monkeypatch.setenv(variable, "")
    assert resolve_chip() == "trn2"
