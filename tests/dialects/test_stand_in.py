"""The stand-in imports: what can be imported, installed and removed."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import stand_in
from nkitools.dialects.stand_in import install_stand_in, remove_stand_in, stand_in_installed
from tests.dialects.packages import put, without_stand_in  # noqa: F401 - a fixture

MODERN = [
    "nki", "nki.isa", "nki.isa.constants", "nki.language", "nki.language.constants", "nki.collectives", "nki.typing",
    "nki.dtype",
]  # fmt: skip
LEGACY = [
    "neuronxcc.nki",
    "neuronxcc.nki.isa",
    "neuronxcc.nki.isa.constants",
    "neuronxcc.nki.language",
    "neuronxcc.nki.typing",
    "neuronxcc.nki.compiler",
]


class TestImports:
    """What can be imported under the stand-in."""

    @pytest.mark.parametrize("name", MODERN)
    def test_the_modern_modules(self, name: str) -> None:
        """Each by itself, with the documentation and the names of its dialect."""
        with pytest.raises(ImportError):
            importlib.import_module(name)
        install_stand_in()
        module = importlib.import_module(name)
        assert module.__name__ == name
        assert module.__doc__
        assert all(hasattr(module, each) for each in module.__all__)

    @pytest.mark.parametrize("name", LEGACY)
    def test_the_legacy_modules(self, name: str) -> None:
        """As the modern ones."""
        install_stand_in()
        module = importlib.import_module(name)
        assert module.__name__ == name
        assert all(hasattr(module, each) for each in module.__all__)

    def test_the_legacy_dialect_brings_a_level_of_logging(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """``logging.OFF`` is there with ``neuronxcc.nki``, silences all levels, and goes with the stand-in."""
        monkeypatch.delattr(logging, "OFF", raising=False)
        install_stand_in()
        assert not hasattr(logging, "OFF")
        importlib.import_module("neuronxcc.nki")
        try:
            logging.disable(vars(logging)["OFF"])
            assert not logging.getLogger("author").isEnabledFor(logging.CRITICAL)
        finally:
            logging.disable(logging.NOTSET)
        remove_stand_in()
        assert not hasattr(logging, "OFF")

    def test_both_dialects_side_by_side(self) -> None:
        """And every form of import."""
        install_stand_in()
        names: dict[str, Any] = {}
        exec(
            "import nki, nki.isa as nisa, nki.language as nl\n"
            "import neuronxcc.nki as legacy\n"
            "import neuronxcc.nki.language as legacy_nl\n"
            "from neuronxcc import nki as again\n"
            "from neuronxcc.nki import isa\n",
            names,
        )
        assert names["legacy"] is names["again"]
        assert names["nl"] is not names["legacy_nl"]
        assert sys.modules["neuronxcc"].__name__ == "neuronxcc"

    def test_submodules_are_attributes_before_they_are_imported(self) -> None:
        """`import nki` is enough for nki.language."""
        install_stand_in()
        nki = importlib.import_module("nki")
        assert nki.language is sys.modules["nki.language"]
        assert nki.isa.constants.oob_mode is nki.isa.oob_mode

    def test_a_star_import_brings_the_public_names(self) -> None:
        """As kernels do it."""
        install_stand_in()
        names: dict[str, Any] = {}
        exec("from nki.language import *", names)
        assert names["ndarray"] is importlib.import_module("nki.language").ndarray
        assert "Any" not in names

    def test_a_module_can_be_reloaded(self) -> None:
        """Notebooks do it."""
        install_stand_in()
        language = importlib.import_module("nki.language")
        language.ndarray = None
        assert importlib.reload(language) is language
        assert language.ndarray is not None
        for name in MODERN:
            importlib.reload(importlib.import_module(name))

    def test_changes_to_a_module_are_not_the_dialects(self) -> None:
        """An author who patches nki.language patches their module."""
        install_stand_in()
        from nkitools.dialects.modern import language

        importlib.import_module("nki.language").ndarray = None
        assert language.ndarray is not None

    def test_an_unknown_name_is_missing(self) -> None:
        """hasattr says no, the error says why; internals of nkitools are not on show; submodules are not found."""
        install_stand_in()
        language = importlib.import_module("nki.language")
        for name in ("no_such_name", "Any", "missing", "_Token", "DOCUMENTED"):
            assert not hasattr(language, name), name
        with pytest.raises(nkitools.NotModelled, match=r"nki\.language has no `no_such_name`"):
            _ = language.no_such_name
        with pytest.raises(ModuleNotFoundError, match=r"nki\.no_such_module"):
            importlib.import_module("nki.no_such_module")
        with pytest.raises(ImportError, match=r"nki\.isa has no `no_such_name`"):
            exec("from nki.isa import no_such_name")
        with pytest.raises(ImportError, match=r"nki\.language\.arange was removed"):
            exec("from nki.language import arange")

    def test_documented_names_that_are_not_modelled_refuse(self) -> None:
        """NK607 when they are called."""
        install_stand_in()
        builder = importlib.import_module("nki.compiler.kernel_builder")
        assert hasattr(builder, "compile_kernel")
        with pytest.raises(nkitools.NotModelled, match=r"kernel_builder\.compile_kernel"):
            builder.compile_kernel()

    def test_a_kernel_file_runs(self, site: Path) -> None:
        """An unmodified file of an author's."""
        put(
            site,
            authors_kernel=(
                "import nki\nimport nki.language as nl\nfrom nki.isa.constants import oob_mode\n\n\n@nki.jit\n"
                "def kernel(x):\n    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
                "    nl.store(out, nl.load(x))\n    return out\n"
            ),
        )
        install_stand_in()
        kernel = importlib.import_module("authors_kernel").kernel
        del sys.modules["authors_kernel"]
        x = np.ones((8, 4), np.float32)
        np.testing.assert_array_equal(kernel(x), x)


class TestInstalling:
    """`install_stand_in` and `remove_stand_in`."""

    def test_it_is_idempotent(self) -> None:
        """The same modules stay, and one removal is enough."""
        install_stand_in()
        nki = importlib.import_module("nki")
        finders = len(sys.meta_path)
        install_stand_in()
        install_stand_in("auto")
        assert len(sys.meta_path) == finders
        assert importlib.import_module("nki") is nki
        remove_stand_in()
        assert not stand_in_installed()

    def test_removing_leaves_nothing(self) -> None:
        """sys.modules and sys.meta_path are as they were, and a second removal does nothing."""
        importlib.import_module("nkitools.dialects.modern.language")
        modules, finders = dict(sys.modules), list(sys.meta_path)
        install_stand_in()
        for name in MODERN:
            importlib.import_module(name)
        assert stand_in_installed()
        remove_stand_in()
        remove_stand_in()
        assert {name for name in sys.modules if name.split(".")[0] in ("nki", "neuronxcc")} == set()
        assert {name: sys.modules[name] for name in modules} == modules
        assert sys.meta_path == finders
        with pytest.raises(ImportError):
            importlib.import_module("nki")

    def test_it_comes_back_where_somebody_has_reset_the_finders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Test suites restore sys.meta_path behind our back."""
        install_stand_in()
        monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if each is not stand_in._finder])
        assert not stand_in_installed()
        install_stand_in()
        assert stand_in_installed()
        importlib.import_module("nki")

    def test_a_wrong_preference_is_refused(self) -> None:
        """Nothing is installed."""
        with pytest.raises(ValueError, match='prefer: must be "auto" or "builtin", it is \'official\''):
            install_stand_in("official")  # type: ignore[arg-type]
        assert not stand_in_installed()


def test_modules_that_are_no_modules_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """sys.modules holds what people put there: None, and objects that answer to everything."""

    class Everything:
        def __getattr__(self, name: str) -> Any:
            return True

    monkeypatch.setitem(sys.modules, "stand_in_test_none", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "stand_in_test_everything", Everything())  # type: ignore[arg-type]
    install_stand_in()
    remove_stand_in()
    assert isinstance(sys.modules["stand_in_test_everything"], Everything)
    assert isinstance(sys.modules["sys"], ModuleType)


@pytest.mark.process
def test_installing_imports_nothing_heavy() -> None:
    """NumPy and the dialects come when a kernel file asks for them."""
    program = (
        "import sys, nkitools; nkitools.install_stand_in(); nkitools.install_stand_in('builtin')\n"
        "heavy = {'numpy', 'ml_dtypes', 'scipy', 'jax', 'torch', 'nkitools.dialects.modern', 'nkitools.chip'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "import nki\n"
        "print('numpy' in sys.modules, 'jax' in sys.modules)"
    )
    package = Path(nkitools.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=package)
    assert done.stdout.split("\n")[:2] == ["[]", "True False"]
