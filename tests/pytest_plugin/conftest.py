"""A pytest session of a kernel author: a directory of its own, the plugin loaded, kernels that need no simulator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

# pytester forgets what a session in this process imported: what is slow to import, or cannot come twice, comes first.
import hypothesis.internal.observability  # noqa: F401
import pytest
import scipy.special  # noqa: F401

from nkitools import dialects
from nkitools.facts.options import OPTIONS
from nkitools.targets import packages
from tests.fakes import machines
from tests.processes import LEAN
from tests.pytest_plugin.scripted import on_a_laptop

# JAX ends the process where it is imported twice.
if find_spec("jax") is not None:
    import jax  # noqa: F401

# A module of ours that came twice would have other enums than those that the first one's callers have.
for each in walk_packages(dialects.__path__, "nkitools.dialects."):
    import_module(each.name)

REPOSITORY = Path(__file__).parents[2]

# A kernel that needs a NeuronCore or its simulation.
NKI = """
import os, time
import numpy as np
import pytest
import nki
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out

X = np.arange(8, dtype=np.float32).reshape(2, 4)

"""


class Author:
    """Writes tests and runs pytest on them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.header = ""
        self.elsewhere = ""

    def write(self, **files: str) -> None:
        """Write ``name.py`` for every ``name="source"``."""
        self.pytester.makepyfile(**files)

    def run(self, *args: str, test: str | None = None) -> pytest.RunResult:
        """Run pytest in this process, warnings being errors; this session's collectors and options do not reach it."""
        self._write_test(test)
        return Context().run(self.pytester.runpytest_inprocess, *_arguments(), *args)

    def run_apart(self, *args: str, test: str | None = None) -> pytest.RunResult:
        """Run pytest in a process of its own, as on the author's command line."""
        self.write(conftest=self.elsewhere)
        self._write_test(test)
        return self.pytester.runpytest_subprocess(*_arguments(), *LEAN, *args)

    def _write_test(self, test: str | None) -> None:
        if test is not None:
            self.write(test_it=self.header + test)


def _arguments() -> tuple[str, ...]:
    # There is nothing to load where nkitools is installed: it has an entry point.
    installed = any(entry.name == "nkitools" for entry in entry_points(group="pytest11"))
    load = () if installed else ("-p", "nkitools.pytest_plugin")
    # In the order in which they are written, whatever else is installed here.
    return ("-p", "no:cacheprovider", "-p", "no:randomly", "-W", "error", *load)


@pytest.fixture
def bare_author(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Author:
    """An author whose environment decides nothing, with the real simulator."""
    for option in OPTIONS.values():
        monkeypatch.delenv(option.env, raising=False)
    for name in ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return Author(pytester)


@pytest.fixture
def author(bare_author: Author, monkeypatch: pytest.MonkeyPatch) -> Author:
    """An author on a laptop without devices, with scripted kernels at hand."""
    on_a_laptop(monkeypatch.setattr)
    bare_author.header = "import pytest\nfrom tests.pytest_plugin.scripted import *\n"
    bare_author.elsewhere = "from tests.pytest_plugin.scripted import on_a_laptop\non_a_laptop()\n"
    return bare_author


@pytest.fixture
def machine(bare_author: Author, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Author]]:
    """Gives the author a machine with (fake) packages and device nodes, and a kernel, `NKI`."""

    def of(*fakes: str, nodes: Sequence[str] = ("/dev/neuron0",), **driver: str) -> Author:
        if "/dev/neuron0" in nodes:
            machines.neuron_root(tmp_path / "root", **driver)
        machines.node_root(tmp_path / "root", *nodes)
        for fake in reversed(fakes):
            monkeypatch.syspath_prepend(str(machines.FAKES / fake))
        monkeypatch.setenv("PYTHONPATH", machines.packages(*fakes))
        _forget()
        bare_author.header = NKI
        return bare_author

    for variable in ("NEURON_RT_VISIBLE_CORES", "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "NEURON_LOGICAL_NC_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path / "root"))
    monkeypatch.setenv("NKITOOLS_MARKS", "1")  # tests of a machine are marked hw, run_kernel or not
    # Locks of devices lie there: other sessions on this machine have their own.
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    yield of
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    """What is installed is looked for again."""
    packages.is_installed.cache_clear()
    packages.aws_package.cache_clear()


@pytest.fixture
def inf2(machine: Callable[..., Author]) -> Author:
    """An author on an instance with one Inferentia2 (two cores) and AWS's nki, both fake."""
    return machine("aws")
