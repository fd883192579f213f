"""A saved run as one plain file, which makes the run again where nothing else of the author's is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools.cli import main
from nkitools.record.run import load_run

HELPER = "FACTOR = 3.0\n\n\ndef scaled(nl, tile):\n    return nl.multiply(tile, FACTOR)\n"
KERNEL = """\
from __future__ import annotations
import secret_data_of_the_author
import nki
import nki.isa as nisa
import nki.language as nl
from helper import scaled

WIDTH = 64
UNUSED = secret_data_of_the_author.table


def tile_of(x, start):  # a comment stays
    return nl.load(x[start : start + 64, :WIDTH])


@nki.jit
def secret(x, indices, factor, *, names=("a",)):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, 64, 64):
        tile = scaled(nl, tile_of(x, start))
        nisa.dma_copy(dst=out[start : start + 64, :], src=tile)
    return out


def test():
    raise RuntimeError
"""


def reproduce(*args: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["reproduce", *args], catch_exceptions=False)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a saved run of a kernel in two files, which has a finding."""
    folder = tmp_path / "author"
    folder.mkdir()
    (folder / "helper.py").write_text(HELPER)
    (folder / "kernel_file.py").write_text(KERNEL)
    (folder / "secret_data_of_the_author.py").write_text("table = 1\n")
    monkeypatch.syspath_prepend(folder)
    from kernel_file import secret  # type: ignore[import-not-found]

    x = np.ones((128, 64), np.float32)
    run = nkitools.simulate(
        secret, x, np.arange(3, 9, dtype=np.int32), 2, names=("b", None), chip="trn1", rules="report", sum_order="chip"
    )
    assert [each.rule for each in run.findings if each.severity == "error"] == ["NK403"]
    run.save(tmp_path / "run.json")
    for name in ("helper", "kernel_file", "secret_data_of_the_author"):
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "run.json"


def test_the_form_of_a_call_is_saved(saved: Path) -> None:
    """Shapes, dtypes, the range of whole numbers, and plain values; no elements."""
    call = load_run(saved).call
    assert call is not None
    assert call["args"] == [
        {"dtype": "float32", "shape": [128, 64]},
        {"dtype": "int32", "shape": [6], "low": 3, "high": 8},
        {"value": 2},
    ]
    assert call["kwargs"] == {"names": {"tuple": [{"value": "b"}, {"value": None}]}}


@pytest.mark.process
def test_the_file_makes_the_run_again(saved: Path, tmp_path: Path) -> None:
    """In a folder of its own, with names replaced: the same finding and as many instructions."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = reproduce(str(saved), "-o", str(elsewhere / "again.py"), "--rename", "secret=kernel", "--rename", "x=data")
    assert done.exit_code == 0, done.output
    text = (elsewhere / "again.py").read_text()
    assert "secret" not in text
    assert "# a comment stays" in text
    assert "sum_order='chip'" in text
    ran = subprocess.run([sys.executable, "again.py"], cwd=elsewhere, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    count = len(load_run(saved).instructions)
    assert ran.stdout.splitlines()[-1] == f"{len(load_run(saved).findings)} findings, {count} instructions"
    assert "NK403" in ran.stdout


def test_a_run_without_its_call_is_refused(saved: Path, tmp_path: Path) -> None:
    """A sentence and exit code 2: a run that an earlier version has saved, and one without the kernel's source."""
    run = load_run(saved)
    run.kept_sources = {}
    run.save(tmp_path / "bare.json")
    done = reproduce(str(tmp_path / "bare.json"))
    assert (done.exit_code, "the run has no source of" in done.output) == (2, True)
    run.kept_call = None
    run.save(tmp_path / "older.json")
    done = reproduce(str(tmp_path / "older.json"))
    assert (done.exit_code, "not the run of an NKI kernel" in done.output) == (2, True)


def test_names_are_replaced_by_names(saved: Path) -> None:
    """Anything else is a mistake in the command."""
    done = reproduce(str(saved), "--rename", "secret")
    assert (done.exit_code, "write OLD=NEW" in done.output) == (2, True)


PACKAGE = {
    "__init__.py": "",
    "settings.py": "FACTOR = 3.0\n",
    "types.py": "from . import settings\nfrom .settings import FACTOR as AGAIN\n\nKIND = settings.FACTOR * AGAIN\n",
    "tiles/__init__.py": "from .rows import scaled as scaled\n",
    "tiles/rows.py": "import types\nfrom ..types import KIND\n\n\n"
    "def scaled(nl, tile):\n    assert types.SimpleNamespace\n    return nl.multiply(tile, KIND)\n",
    "kernels/__init__.py": "",
    "kernels/product.py": """import nki
import nki.language as nl
from ..tiles import scaled; from package_of_this_test import settings
import package_of_this_test.settings as same


@nki.jit
def product(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, scaled(nl, nl.load(x)) if same.FACTOR == settings.FACTOR else None)
    return out
""",
}


@pytest.mark.process
def test_a_kernel_of_a_package_needs_none_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative imports, a package that passes a name on, files without instructions, one called as Python's types."""
    for name, text in PACKAGE.items():
        file = tmp_path / "src/package_of_this_test" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "src")
    from package_of_this_test.kernels.product import product  # type: ignore[import-not-found]

    nkitools.simulate(product, np.ones((4, 8), np.float32)).save(tmp_path / "run.json")
    for name in [each for each in sys.modules if each.startswith("package_of_this_test")]:
        monkeypatch.delitem(sys.modules, name)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = reproduce(str(tmp_path / "run.json"), "-o", str(elsewhere / "again.py"))
    assert done.exit_code == 0, done.output
    (tmp_path / "src").rename(tmp_path / "gone")
    code = "import again\nprint(float(nkitools.simulate(again.product, np.ones((4, 8), np.float32)).outputs.max()))\n"
    command = [sys.executable, "-c", f"import numpy as np\nimport nkitools\n{code}"]
    ran = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "9.0\n"), ran.stderr
