"""Libraries are built once, and what cannot be built says why."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from nkitools.customop import BuildError, load, load_library, process, toolchain
from nkitools.processes import End, Output
from tests.children import has_ended

KERNEL = "#include <torch/torch.h>\ntorch::Tensor kernel(const torch::Tensor& t_in) { return torch::abs(t_in); }\n"
SHAPE = (
    '#include <torch/torch.h>\n#include "torchneuron/register.h"\n'
    "torch::Tensor shape(torch::Tensor t_in) { return torch::zeros(t_in.sizes(), torch::kFloat); }\n"
)
REGISTER = 'NEURON_LIBRARY(my_ops, m) { m.def("absolute", &shape, "kernel"); }\n'
VALUES = np.array([-1, 2, -3], np.float32)


@pytest.fixture
def sources(tmp_path: Path) -> tuple[Path, Path]:
    """A library of one operator that is right."""
    return written(tmp_path, KERNEL, SHAPE + REGISTER)


def written(directory: Path, kernel: str, shape: str) -> tuple[Path, Path]:
    directory.mkdir(exist_ok=True)
    (directory / "kernel.cpp").write_text(kernel)
    (directory / "shape.cpp").write_text(shape)
    return directory / "kernel.cpp", directory / "shape.cpp"


def refusal(directory: Path, kernel: str = KERNEL, shape: str = SHAPE + REGISTER, **settings: object) -> str:
    """What a build says that must fail, and leaves nothing half-built."""
    compute, shapes = written(directory, kernel, shape)
    with pytest.raises(BuildError) as caught:
        load("broken", [compute], [shapes], **settings)  # type: ignore[arg-type]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return str(caught.value)


def test_a_library_is_its_operators(sources: tuple[Path, Path]) -> None:
    """By attribute and by name; its own name is that of NEURON_LIBRARY."""
    library = load("file_name", [sources[0]], [sources[1]])
    assert library.name == "my_ops"
    assert list(library.ops) == ["absolute"]
    assert "absolute" in dir(library)
    assert library.absolute is library.ops["absolute"]
    assert np.array_equal(library.absolute(VALUES), [1, 2, 3])
    with pytest.raises(AttributeError, match="no operator 'relu'; it has absolute"):
        library.relu  # noqa: B018 - looking is what fails


def test_nothing_is_compiled_twice(sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second load takes what the first one built; a change in a source or in a header is a new library."""
    header = sources[0].parent / "factor.h"
    header.write_text("constexpr float kFactor = 2;\n")
    sources[0].write_text(
        KERNEL.replace("torch::abs(t_in)", "torch::mul(t_in, kFactor)").replace(
            "torch.h>", 'torch.h>\n#include "factor.h"'
        )
    )
    first = load("cached", [sources[0]], [sources[1]])
    assert load("cached", [sources[0]], [sources[1]]).path == first.path
    header.write_text("constexpr float kFactor = 3;\n")
    second = load("cached", [sources[0]], [sources[1]])
    assert second.path != first.path
    assert np.array_equal(second.absolute(VALUES), 3 * VALUES)
    assert np.array_equal(first.absolute(VALUES), 2 * VALUES)
    header.write_text("constexpr float kFactor = 2;\n")
    assert load("cached", [sources[0]], [sources[1]]).path == first.path


def test_a_build_directory_gets_a_library_that_can_be_loaded(sources: tuple[Path, Path], tmp_path: Path) -> None:
    """lib<name>.so there, with the mode in which it was built; missing parts are named."""
    built = load("saved", [sources[0]], [sources[1]], tmp_path / "build", multicore=True)
    assert built.path == str(tmp_path / "build" / "libsaved.so")
    again = load_library(tmp_path / "build" / "libsaved.so")
    assert again.multicore
    assert [each.rule for each in again.absolute.run(VALUES).findings] == ["CO108"]
    (tmp_path / "build" / "libsaved.shape.so").unlink()
    with pytest.raises(BuildError, match=r"libsaved\.shape\.so is missing"):
        load_library(tmp_path / "build" / "libsaved.so")
    (tmp_path / "build" / "libsaved.json").write_text("{}")
    with pytest.raises(BuildError, match="build the library again"):
        load_library(tmp_path / "build" / "libsaved.so")
    (tmp_path / "build" / "libsaved.json").unlink()
    with pytest.raises(BuildError, match="does not run on a host"):
        load_library(tmp_path / "build" / "libsaved.so")
    with pytest.raises(BuildError, match="there is no library"):
        load_library(tmp_path / "libnone.so")


def test_a_source_that_does_not_compile_is_shown_with_its_line(tmp_path: Path) -> None:
    """The compiler's words on the author's file, and nothing of the files round it."""
    said = refusal(tmp_path, KERNEL.replace("torch::abs(t_in)", "torch::relu(t_in)"))
    assert said.startswith("kernel.cpp does not compile:")
    assert f"{tmp_path}/kernel.cpp:2:" in said
    assert "compute0.cpp" not in said
    assert "shape.cpp does not compile" in refusal(tmp_path, shape=SHAPE.replace("kFloat", "kDouble") + REGISTER)


@pytest.mark.parametrize(
    ("register", "words"),
    [
        ("", "register no operators"),
        (REGISTER.replace("}", 'm.def("absolute", &shape, "kernel"); }'), "two operators of the name `absolute`"),
        (REGISTER + REGISTER.replace("my_ops", "more"), "several NEURON_LIBRARY"),
        (REGISTER.replace('"kernel"', '"kernal"'), "names the kernel `kernal`"),
        (
            "NEURON_LIBRARY(my_ops, m) {" + "".join(f'm.def("op{i}", &shape, "kernel");' for i in range(11)) + "}",
            "registers 11 operators; 10 are the most",
        ),
    ],
)
def test_a_registration_that_is_wrong_is_reported(tmp_path: Path, register: str, words: str) -> None:
    """What registers nothing, twice, too much, or a kernel that is not there."""
    assert words in refusal(tmp_path, shape='#define NAME "kernel"\n' + SHAPE + register)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"extra_cflags": "-DX"}, "must be a list"),
        ({"extra_cflags": ["-DSTACK_SIZE=500000"]}, "409600 bytes"),
        ({"extra_cflags": ["-DSTACK_SIZE=big"]}, "a number of bytes"),
    ],
)
def test_flags_that_mean_nothing_are_refused(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    """Before anything is compiled."""
    assert words in refusal(tmp_path, **settings)


def test_names_and_files_are_judged(sources: tuple[Path, Path]) -> None:
    """AWS reserves `builtin`; sources are lists of files that are there."""
    with pytest.raises(BuildError, match="reserves"):
        load("builtin", [sources[0]], [sources[1]])
    with pytest.raises(BuildError, match="there is no file"):
        load("x", [sources[0]], ["absent.cpp"])
    with pytest.raises(BuildError, match="must be a list"):
        load("x", str(sources[0]), [sources[1]])
    with pytest.raises(BuildError, match="file name"):
        load("a/b", [sources[0]], [sources[1]])


def test_a_missing_compiler_is_reported(sources: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which names were looked for, and how to get one."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuildError, match=r"none of c\+\+, g\+\+, clang\+\+ on the path\. Install one"):
        load("x", [sources[0]], [sources[1]])
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="CXX=no-such-compiler, which is not there"):
        load("x", [sources[0]], [sources[1]])


def test_a_cache_that_cannot_be_written_is_reported(
    sources: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And how to name another place."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NKITOOLS_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="NKITOOLS_CACHE_DIR names another place"):
        load("x", [sources[0]], [sources[1]])


@pytest.mark.process
def test_ctrl_c_ends_compilers_and_what_they_have_started(ctrl_c: None, tmp_path: Path) -> None:
    """Sent to this process alone, as by a notebook: a build waited for them."""
    compiler = (
        "import pathlib, subprocess, sys\nprocess = subprocess.Popen(['sleep', '100'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(process.pid))\nprocess.wait()"
    )
    paths = [tmp_path / "0", tmp_path / "1"]

    def press() -> None:
        while not all(path.exists() and path.read_text() for path in paths):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    began = time.monotonic()
    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        toolchain.run_together([[sys.executable, "-c", compiler, str(path)] for path in paths])
    assert time.monotonic() - began < 60
    assert all(has_ended(int(path.read_text())) for path in paths)


@pytest.mark.parametrize("who", ["python", "compiler"])
def test_a_full_disk_is_reported(
    who: str, sources: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read `custom operators need gcc 7`, or was a traceback."""

    def written(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def compiled(commands: list[list[str]]) -> list[Output]:
        return [Output(End(1), "", f"cc1plus: error: {os.strerror(errno.ENOSPC)}") for _ in commands]

    monkeypatch.setenv("NKITOOLS_CACHE_DIR", str(tmp_path / "cache"))
    if who == "python":
        monkeypatch.setattr(Path, "write_text", written)
    else:
        monkeypatch.setattr(toolchain, "run_together", compiled)
    with pytest.raises(BuildError) as error:
        load("full", [sources[0]], [sources[1]])
    assert str(error.value).startswith("nothing can be built in ")
    assert str(error.value).endswith(": no space left on device")
    assert list((tmp_path / "cache" / "customop").iterdir()) == [tmp_path / "cache" / "customop" / "locks"]


def test_a_library_that_does_not_survive_loading_is_reported(tmp_path: Path) -> None:
    """What sources do at namespace scope happens in a process of its own."""
    crash = "static int crashes() { abort(); }\nstatic int crashed = crashes();\n"
    assert "ends its process while it is loaded" in refusal(tmp_path, KERNEL + crash)


def test_several_sources_make_one_library(tmp_path: Path) -> None:
    """The kernel may call what another source defines, and lie in any of them."""
    compute, shape = written(tmp_path, KERNEL.replace("torch::abs(t_in)", "twice(t_in)"), SHAPE + REGISTER)
    compute.write_text("#include <torch/torch.h>\ntorch::Tensor twice(const torch::Tensor&);\n" + compute.read_text())
    other = tmp_path / "other.cpp"
    other.write_text(
        "#include <torch/torch.h>\ntorch::Tensor twice(const torch::Tensor& t_in) { return torch::mul(t_in, 2); }\n"
    )
    library = load("several", [other, compute], [shape])
    assert np.array_equal(library.absolute(VALUES), 2 * VALUES)
    with pytest.raises(BuildError, match="twice"):
        load("alone", [compute], [shape])


def build_in_another_process(compute: str, shape: str) -> str:
    """For the test below: builds, calls, and tells where the library is."""
    library = load("shared", [compute], [shape])
    assert np.array_equal(library.absolute(VALUES), np.abs(VALUES))
    return library.path


def test_processes_that_build_the_same_library_do_not_disturb_each_other(sources: tuple[Path, Path]) -> None:
    """Four at once: one builds, and all use that one."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        paths = pool.starmap(build_in_another_process, [tuple(map(str, sources))] * 4)
    assert len(set(paths)) == 1
    leftovers = [each for each in Path(paths[0]).parents[1].iterdir() if "building" in each.name]
    assert leftovers == []


def test_workers_are_few(sources: tuple[Path, Path], tmp_path: Path) -> None:
    """Processes of libraries that have not been called for long are ended."""
    for number in range(process.MAX_WORKERS + 3):
        library = load("many", [sources[0]], [sources[1]], tmp_path / f"build{number}")
        load_library(library.path).absolute(VALUES)
    alive = [worker for worker in process._workers.values() if worker.alive]
    assert len(alive) <= process.MAX_WORKERS


def test_what_the_cache_holds_describes_itself(sources: tuple[Path, Path]) -> None:
    """A description names the author's files; one that is damaged is built again."""
    library = load("described", [sources[0]], [sources[1]])
    description = Path(library.path).parent / "library.json"
    told = json.loads(description.read_text())
    assert set(map(str, sources)) <= set(told["sources"])
    shutil.rmtree(description.parent)
    assert np.array_equal(load("described", [sources[0]], [sources[1]]).absolute(VALUES), np.abs(VALUES))
    assert time.time() - os.path.getmtime(description) < 60
