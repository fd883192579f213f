"""AWS's compiler alone: by its Python interface or by a call, and what it refuses at the author's line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.dialects.stand_in import StandInFinder
from nkitools.facts import options
from nkitools.kernel_file import load
from nkitools.rules.finding import NotModelled
from nkitools.targets import choice, compilation, packages
from nkitools.targets.compilation import CompileFailed, compile_kernel
from nkitools.targets.neuron_compiler import NeuronCompiler
from nkitools.targets.target import OtherDegree, WrongDevice
from tests.fakes import machines

X = np.arange(8, dtype=np.float32).reshape(2, 4)
KERNELS = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out

@nki.jit
def too_tall(x):
    tile = nl.ndarray((256, 128), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0)
    return x

def half(x):
    return x.no_such_attribute

@nki.jit
def traced(x):
    return half(x)
"""
Machine = Callable[..., Any]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    """Gives the author's file, loaded where these fakes of AWS's packages are; there is a compiler and no device."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path / "root"))
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "1")
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path / "nkitools-artifacts-1"))
    monkeypatch.setenv("FAKE_NEURON", "strict")
    monkeypatch.setenv("PATH", os.pathsep.join([str(machines.FAKES / "compiler"), os.environ["PATH"]]))
    (tmp_path / "nkitools-artifacts-1").mkdir()
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if not isinstance(each, StandInFinder)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    roots = ("nki", "neuronxcc", "kernels_of_an_author")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in roots}
    file = tmp_path / "kernels_of_an_author.py"
    file.write_text(KERNELS)

    def of(*fakes: str) -> Any:
        for fake in reversed(fakes):
            sys.path.insert(0, str(machines.FAKES / fake))
        packages.aws_package.cache_clear()
        return load(str(file)).module

    yield of
    for name in [name for name in sys.modules if name.partition(".")[0] in roots]:
        del sys.modules[name]
    sys.modules.update(kept)
    monkeypatch.undo()
    packages.aws_package.cache_clear()


def line_of(words: str) -> int:
    """The line of the author's file."""
    return 1 + KERNELS.splitlines().index(words)


def test_a_known_version_is_compiled_by_its_interface(aws: Machine) -> None:
    """Nothing is run, and the compiler says the latency that it predicts."""
    made = compile_kernel(aws("nki06", "aws").double, (X,), {}, "trn2", 1)
    assert (made.chip, made.degree, made.how, made.predicted_us) == ("trn2", 1, "nki 0.6.0", 12.5)
    assert made.neff_bytes
    assert made.sentence("double").startswith("double: compiled for trn2, LNC 1, by nki 0.6.0 in ")
    assert made.sentence("double").endswith(" s; the compiler predicts 12.5 us")


def test_another_version_is_compiled_by_a_call(aws: Machine, tmp_path: Path) -> None:
    """It ends with the error that there is no device, after the NEFF was written; where one is, it is not called."""
    double = aws("native", "aws").double
    made = compile_kernel(double, (X,), {}, "trn2", 1)
    assert (made.how, made.predicted_us) == ("a call of nki 0.7.0", None)
    assert made.neff_bytes
    machines.neuron_root(tmp_path / "root")
    with pytest.raises(
        NotModelled, match=r"`double` would run: nki 0\.7\.0 compiles by a call, and a NeuronCore is here"
    ):
        compile_kernel(double, (X,), {}, "trn2", 1)


def test_a_moved_name_is_as_another_version(aws: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Private names are looked up, the last step by both of its names; without it the kernel is compiled by a call."""
    double = aws("nki06", "aws").double
    from nki.compiler import ncc_driver  # type: ignore[import-not-found]

    second_form = ncc_driver.compile_bir_to_neff

    def former(nir: Any, options: Any, arrays: dict[str, Any]) -> None:
        assert list(arrays) == ["x"]
        second_form(options, nir, [], ["x"], ["out"])

    monkeypatch.setattr(ncc_driver, "_compile_bir_to_neff", former, raising=False)
    monkeypatch.delattr(ncc_driver, "compile_bir_to_neff")
    assert compile_kernel(double, (X,), {}, "trn2", 1).how == "nki 0.6.0"
    monkeypatch.delattr(ncc_driver, "_compile_bir_to_neff")
    assert compile_kernel(double, (X,), {}, "trn2", 1).how == "a call of nki 0.6.0"


@pytest.mark.parametrize(("fakes", "kernel"), [(("nki06", "aws"), "too_tall"), (("native", "aws"), "too_tall")])
def test_an_error_of_the_back_end_is_at_the_line_that_it_names(aws: Machine, fakes: Any, kernel: str) -> None:
    """``Source Kernel "module.function", line N`` is the author's place; the code stays in the text."""
    module = aws(*fakes)
    with pytest.raises(CompileFailed, match=r"does not take kernel `too_tall`: RuntimeError: .*NCC_INLA001") as caught:
        compile_kernel(getattr(module, kernel), (X,), {}, "trn2", 1)
    assert caught.value.place == (module.__file__, line_of("    nisa.memset(dst=tile, value=0)"))


def test_an_error_of_tracing_is_at_its_frame(aws: Machine) -> None:
    """The last frame of the author's, in the function that the kernel has called."""
    module = aws("nki06", "aws")
    with pytest.raises(CompileFailed, match="no_such_attribute") as caught:
        compile_kernel(module.traced, (X,), {}, "trn2", 1)
    assert caught.value.place == (module.__file__, line_of("    return x.no_such_attribute"))


def test_an_instruction_is_found_in_the_debug_information(aws: Machine, tmp_path: Path) -> None:
    """Where the message names an instruction alone; without the information it is the kernel's first line."""
    module = aws("nki06", "aws")
    error = RuntimeError("[GCA035] Instruction I-77-0 couldn't be allocated in SB")
    assert compilation._place(error, module.double, tmp_path) == (module.__file__, line_of("@nki.jit"))
    entry = {"name": "I-77-0", "file_path": "/home/me/mine.py", "line_number": 31}
    (tmp_path / "kernel_debug_info.json").write_text(json.dumps({"instructions": [{"name": "I-7"}, entry]}))
    assert compilation._place(error, module.double, tmp_path) == ("/home/me/mine.py", 31)
    (tmp_path / "log-neuron-cc.txt").write_text('Source Kernel "elsewhere.f", line 9\n')
    assert compilation._place(error, module.double, tmp_path) == (module.__file__, 9)


def test_a_compiler_that_takes_too_much_memory_fails(aws: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit is the option's; afterwards the process has its own again."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    module = aws("nki06", "aws")
    monkeypatch.setenv("FAKE_NEURON", "greedy")
    with options.override(memory="1"), pytest.raises(CompileFailed, match="MemoryError"):
        compile_kernel(module.double, (X,), {}, "trn2", 1)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_the_target_is_there_where_the_compiler_is(aws: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for a NeuronCore where the option names it, and for nothing else."""
    double = aws("nki06", "aws").double
    device = NeuronCompiler()
    assert device.available().ok
    assert device.available().reason.startswith("nki 0.6.0, neuronx-cc")
    with options.override(target="compile"):
        assert choice.device_for(double).device is choice.COMPILER
        assert choice.missing_devices(["neuron"]) == ""
        assert choice.missing_devices(["tpu"]) == "the test is for tpu, and --nki-target is compile"
    assert choice.COMPILER not in choice.devices()
    with options.override(chip="trn3"):
        assert (device.chip(), device.defaults()["NEURON_PLATFORM_TARGET_OVERRIDE"]) == ("trn3", "trn3")
    monkeypatch.setenv("PATH", "")
    assert device.available() == (False, "no compiler of AWS's: found neither command neuronx-cc")
    monkeypatch.setattr("nkitools.targets.neuron_compiler.aws_package", lambda *names: None)
    assert device.available().reason == (
        "no compiler of AWS's: found neither module nki of AWS's own nor command neuronx-cc"
    )


def test_results_are_those_of_awss_simulator(
    aws: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test may go on with them; a time is refused, and a kernel of the other degree gets another process."""
    double = aws("nki06", "aws").double
    device = NeuronCompiler()
    run = device.run(double, X)
    np.testing.assert_array_equal(run.outputs, 2 * X)
    assert (run.target, run.chip) == ("compile", "trn2")
    assert "double: compiled for trn2, LNC 1, by nki 0.6.0" in capsys.readouterr().out
    with pytest.raises(WrongDevice, match=r"only compiles\. double: compiled for trn2"):
        device.prepare(double, (X,), {})
    with pytest.raises(OtherDegree):
        device.run(double, X, grid=2)
    monkeypatch.setattr("nkitools.targets.official.entry_point", lambda: "AWS's simulator is not installed")
    with pytest.raises(WrongDevice, match="double is compiled, and its results are not computed"):
        device.run(double, X)
