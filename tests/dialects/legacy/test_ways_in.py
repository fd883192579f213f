"""How kernels of the dialect are declared and called, without a device, and how they meet the modern one."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import nki as modern
import nki.isa as modern_isa
import nki.language as modern_nl
import numpy as np
import pytest

import nkitools
from nkitools.dialects.legacy.kernels.kernel import NoDevice
from nkitools.facts import versions
from nkitools.facts.options import override
from nkitools.rules.catalogue import RULES
from tests.dialects.legacy.running import random

X = random(8, 16)
WAYS = {
    "jit": nki.jit,
    "trace": nki.trace,
    "baremetal": nki.baremetal,
    "benchmark": nki.benchmark,
    "profile": nki.profile,
}


def copied(x: Any) -> Any:
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.load(x))
    return result


def copied_into(x: Any, result: Any) -> None:
    rows = nl.ds(nl.program_id(0) * 4, 4) if nl.program_ndim() else slice(None)
    nl.store(result[rows, :], nl.load(x[rows, :]))


@pytest.mark.parametrize("name", WAYS)
def test_decorators_with_and_without_arguments(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bare, with empty brackets, with keywords, and called with the function and keywords at once."""
    way = WAYS[name]
    by_reference = name != "jit"
    kernels = [way(copied_into), way()(copied_into), way(additional_compile_opt="-O1")(copied_into)]
    kernels += [way(copied_into, platform_target="trn1")]
    for kernel in (
        [nki.jit(copied), nki.jit()(copied), nki.jit(debug_kernel=True)(copied)] if name == "jit" else kernels
    ):
        result = np.zeros_like(X)
        returned = kernel(X, result) if by_reference else kernel(X)
        np.testing.assert_array_equal(result if by_reference else returned, X)
        assert kernel.__name__ in ("copied", "copied_into")


def test_ways_compose() -> None:
    """A kernel declared one way is run another way, with its grid, and keeps how it gives its results."""
    for name, way in WAYS.items():
        result = np.zeros_like(X)
        if name != "jit":  # whose inputs are immutable
            nki.simulate_kernel(way(copied_into)[2], X, result)
            np.testing.assert_array_equal(result, X)
        np.testing.assert_array_equal(nki.simulate_kernel(way(nki.jit(copied)), X), X)
    again = nki.jit(nki.jit(copied), mode="simulation", platform_target="trn2")
    assert again.mode == "simulation"
    assert nkitools.simulate(again, X).chip == "trn2"
    assert nkitools.simulate(nki.jit(again, platform_target="trn1"), X).chip == "trn1"
    np.testing.assert_array_equal(nki.simulate_kernel(copied, X), X)
    np.testing.assert_array_equal(nki.benchmark(warmup=5, iters=10)(nki.jit(copied))(X), X)


def test_inputs_of_which_only_the_shape_matters() -> None:
    """``tensor[[250, 512], nl.float32]`` stands for an input."""
    fake: Any = nt.tensor[[8, 16], nl.float32]
    assert nki.benchmark(nki.jit(copied))(fake).shape == (8, 16)
    np.testing.assert_array_equal(nki.simulate_kernel(copied, fake), 0)


@pytest.mark.parametrize("percentile", [0, 1, 10, 25, 50, 90, 99, 100])
def test_no_latency_is_made_up(percentile: int) -> None:
    """Asking for one says that there is no device."""
    kernel = nki.benchmark(warmup=10, iters=100, save_neff_name="file.neff", save_trace_name="profile.ntff")(copied)
    kernel(X)
    with pytest.raises(NoDevice, match="no Neuron device"):
        kernel.benchmark_result.nc_latency.get_latency_percentile(percentile)


@pytest.mark.process
def test_that_nothing_is_measured_is_said_once() -> None:
    """Once a process and way in, on standard error."""
    program = (
        "import nkitools; nkitools.install_stand_in(prefer='builtin')\n"
        "import numpy as np, neuronxcc.nki as nki, neuronxcc.nki.language as nl\n"
        "def copied(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, nl.load(x))\n"
        "    return out\n"
        "kernels = [nki.jit(copied, mode=mode) for mode in ('baremetal', 'benchmark', 'baremetal', 'simulation')]\n"
        "for kernel in [*kernels, nki.profile(nki.jit(copied))]:\n"
        "    kernel(np.ones((8, 8), np.float32))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = done.stderr.splitlines()
    assert [line.split(" here, ")[1].split()[0] for line in said] == ["nki.baremetal", "nki.benchmark", "nki.profile"]
    assert all("no Neuron device" in line and "measures nothing" in line for line in said)
    assert ["copied was simulated before" in line for line in said] == [False, True, True]


@pytest.mark.parametrize("way", [nki.benchmark(warmup=2), nki.profile, partial(nki.jit, mode="benchmark")])
def test_a_benchmark_is_no_second_simulation(way: Any) -> None:
    """A call like an earlier one runs nothing, unless something takes the result or wants it written."""

    @nki.jit
    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x))
        return result

    measured = way(kernel)
    with nkitools.collect_runs() as runs:
        measured(X)
        assert len(runs) == 1  # it was not simulated before
        measured(X)
        measured(2 * X)
        assert len(runs) == 1
        with pytest.raises(nkitools.KernelError, match="missing a required argument"):
            measured()
        np.testing.assert_array_equal(measured(X), X)
        assert measured(X).shape == X.shape
        assert len(runs) == 4
        result = np.zeros_like(X)
        for _ in range(2):  # it writes its output by reference
            nki.benchmark(copied_into)(X, result)
        assert len(runs) == 6
        np.testing.assert_array_equal(result, X)


def _rows(x: Any, rows: int = 8, limits: Any = None) -> Any:
    result = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(result, nl.load(x[0:rows]))
    return result


def _measure(kernel: Any, *args: Any) -> None:
    kernel(*args)


@pytest.mark.parametrize(
    "args", [(X[:, :8].copy(),), (X.astype(np.float16),), (X, 4), (X, 8, np.array([0, 9], np.int32)), (X, 8, object())]
)
def test_a_benchmark_on_other_arguments_is_simulated(args: tuple[Any, ...]) -> None:
    """Shapes, dtypes, numbers and objects that no earlier call had are checked by a run."""
    measured = nki.benchmark(nki.jit(_rows))
    with nkitools.collect_runs() as runs:
        for given in ((X,), (X,), args):
            _measure(measured, *given)
    assert len(runs) == 2


def test_a_benchmark_with_other_settings_is_simulated() -> None:
    """Other rules, another precision, chip or grid may find something else."""
    measured = nki.benchmark(nki.jit(_rows))
    with nkitools.collect_runs() as runs:
        for settings in ({}, {"rules": "report"}, {"precision": "full"}, {"chip": "trn1"}):
            with override(**settings):
                for _ in range(2):
                    _measure(measured, X)
        _measure(measured[1], X)
        _measure(nki.benchmark(measured, experimental_flags="skip-mutable-return-check"), X)
    assert len(runs) == 6


def test_a_benchmark_is_simulated_for_each_who_collects_runs() -> None:
    """What was simulated in another test, or has ended with an error, is not left out of this one."""
    measured = nki.benchmark(nki.jit(_rows))
    with nkitools.collect_runs() as outer:
        for count in (1, 2):
            with nkitools.collect_runs() as runs:
                _measure(measured, X)
                _measure(measured, X)
            assert (len(runs), len(outer)) == (1, count)
        for _ in range(2):
            with pytest.raises(nkitools.KernelError):
                _measure(measured, X, 300)
        assert len(outer) == 4


@pytest.mark.parametrize(
    "keywords",
    [
        {"warmup": -1},
        {"iters": 1.5},
        {"profile_nth": "first"},
        {"save_neff_name": 3},
        {"working_directory": "profiles"},
        {"interations": 3},
        {"mode": "fast"},
    ],
)
def test_keywords_are_looked_at(keywords: dict[str, Any]) -> None:
    """Numbers of executions, paths, modes; an unknown keyword is refused by its name."""
    way = nki.jit if "mode" in keywords else nki.profile
    for call in (lambda: way(copied, **keywords), lambda: way(**keywords)(copied)):
        with pytest.raises(nkitools.KernelError) as caught:
            call()
        assert caught.value.finding.rule == "NK609"
        assert next(iter(keywords)) in caught.value.finding.message


# --- the two dialects ------------------------------------------------------------------------------------------------


def _refusal(kernel: Any) -> Any:
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, X)
    return caught.value.finding


def test_a_kernel_of_both_dialects_gets_the_line_of_each() -> None:
    """NK608 names the call, the dialect of the kernel, and the lines that import the one and the other."""

    def legacy_in_modern(x: Any) -> Any:
        tile = modern_nl.load(x)
        return nl.exp(tile)

    def modern_in_legacy(x: Any) -> Any:
        tile = nl.load(x)
        return modern_nl.exp(tile)

    def legacy_tile_in_modern_instruction(x: Any) -> Any:
        tile = nl.load(x)
        modern_isa.tensor_copy(dst=tile, src=tile)

    lines = Path(__file__).read_text().splitlines()
    theirs = 1 + lines.index("import neuronxcc.nki as nki")
    ours = 1 + lines.index("import nki as modern")
    for kernel, call in (
        (modern.jit(legacy_in_modern), "neuronxcc.nki.language.exp is called in a kernel of nki;"),
        (nki.jit(modern_in_legacy), "nki.language.exp is called in a kernel of neuronxcc.nki;"),
    ):
        found = _refusal(kernel)
        assert (found.rule, found.line) == ("NK608", kernel.function.__code__.co_firstlineno + 2)
        assert found.message.startswith(call)
        assert f"line {theirs} imports neuronxcc.nki as nki" in found.message
        assert f"line {ours} imports nki as modern" in found.message
        assert "explain NK608" in found.remedy
    found = _refusal(nki.jit(legacy_tile_in_modern_instruction))
    assert found.rule == "NK608"
    assert "argument `dst` is a tensor of neuronxcc.nki" in found.message


def test_arguments_that_are_gone_are_named() -> None:
    """mask= of a modern call is NK608 with what to do instead, not just unknown; the legacy dialect has it."""
    calls = (lambda x: modern_nl.load(x, mask=True), lambda x: modern_isa.tensor_copy(x, x, mask=True))
    for call in calls:
        found = _refusal(modern.jit(call))
        assert found.rule == "NK608"
        assert "the argument `mask` was removed" in found.message
        assert "slice" in found.remedy
    assert _refusal(nki.jit(lambda x: nl.matmul(x, x, transpose_y=True))).rule == "NK609"


def gone(module: str) -> dict[str, str]:
    """The names that a module of the modern dialect has no longer, each with what to write instead."""
    return {name: row.instead for name, row in versions.names_of(module).items() if not row.is_known}


@pytest.mark.parametrize(
    ("module", "names"), [(modern, gone("nki")), (modern_nl, gone("nki.language")), (modern_isa, gone("nki.isa"))]
)
def test_every_name_that_is_gone_says_what_took_its_place(module: Any, names: dict[str, str]) -> None:
    """As an attribute (NK608), and in the list that `nkitools explain NK608` prints."""
    for name, instead in names.items():
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert (caught.value.finding.rule, caught.value.finding.remedy) == ("NK608", instead)  # type: ignore[attr-defined]
        assert instead in [text for _, text in RULES["NK608"].replacements]


@pytest.mark.parametrize(
    ("legacy", "modern_module", "names"),
    [(nki, modern, gone("nki")), (nl, modern_nl, gone("nki.language")), (nisa, modern_isa, gone("nki.isa"))],
)
def test_no_name_of_the_legacy_dialect_is_forgotten(legacy: Any, modern_module: Any, names: dict[str, str]) -> None:
    """What the legacy modules have and the modern ones have not is in the list."""
    missing = {name for name in legacy.__all__ if name not in modern_module.__all__}
    assert missing - set(names) - {"bool_"} == set()
