"""The stand-in imports as a good neighbour of real packages, and of those that only hold a name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from nkitools.dialects import stand_in
from nkitools.dialects.stand_in import install_stand_in, real_package, remove_stand_in
from tests.dialects.packages import is_real, put, put_real_neuronxcc, put_real_nki, without_stand_in  # noqa: F401 - a fixture


class TestRealPackages:
    """AWS's own packages keep their names unless told otherwise."""

    def test_a_real_nki_is_yielded_to(self, site: Path) -> None:
        """The legacy name, which is free, is taken all the same."""
        put_real_nki(site)
        install_stand_in()
        assert is_real("nki")
        assert is_real("nki.language")
        assert stand_in._finder is not None
        assert stand_in._finder.roots == {"neuronxcc.nki"}

    def test_it_is_shadowed_where_the_builtin_is_preferred(self, site: Path) -> None:
        """Until the stand-in is removed; modules imported before come back as the same objects."""
        put_real_nki(site)
        nki, language = importlib.import_module("nki"), importlib.import_module("nki.language")
        install_stand_in("builtin")
        assert not is_real("nki")
        assert not is_real("nki.language")
        assert importlib.import_module("nki").language is importlib.import_module("nki.language")
        remove_stand_in()
        assert importlib.import_module("nki") is nki
        assert importlib.import_module("nki.language") is language
        assert nki.language is language

    def test_one_that_was_not_imported_before_is_found_afterwards(self, site: Path) -> None:
        """Nothing was put aside, and nothing of ours is left."""
        put_real_nki(site)
        install_stand_in("builtin")
        assert not is_real("nki.isa")
        remove_stand_in()
        assert is_real("nki.isa")

    def test_the_preference_can_be_changed(self, site: Path) -> None:
        """The last call decides."""
        put_real_nki(site)
        install_stand_in("builtin")
        assert not is_real("nki")
        install_stand_in("auto")
        assert is_real("nki")

    def test_a_real_neuronxcc_keeps_its_other_modules(self, site: Path) -> None:
        """neuronxcc.nki alone is ours, also under `from neuronxcc import nki`."""
        put_real_neuronxcc(site)
        real = importlib.import_module("neuronxcc.nki")
        parent = sys.modules["neuronxcc"]
        install_stand_in("builtin")
        names: dict[str, Any] = {}
        exec("from neuronxcc import nki, other\nimport neuronxcc.nki.language as nl", names)
        assert not hasattr(names["nki"], "real")
        assert not hasattr(names["nl"], "real")
        assert names["other"].real
        assert sys.modules["neuronxcc"] is parent
        remove_stand_in()
        assert importlib.import_module("neuronxcc.nki") is real
        assert parent.nki is real
        assert is_real("neuronxcc.nki.language")

    def test_a_neuronxcc_without_nki_is_completed(self, site: Path) -> None:
        """Its own modules stay importable, and are not ours to remove."""
        put(site, neuronxcc____init__="real = True\n", neuronxcc__other="real = True\n")
        install_stand_in()
        importlib.import_module("neuronxcc.nki.language")
        other = importlib.import_module("neuronxcc.other")
        parent = sys.modules["neuronxcc"]
        assert parent.real
        assert parent.__spec__ is not None
        assert parent.__spec__.origin == str(site / "neuronxcc" / "__init__.py")
        remove_stand_in()
        assert importlib.import_module("neuronxcc.other") is other
        assert not hasattr(parent, "nki")
        with pytest.raises(ImportError):
            importlib.import_module("neuronxcc.nki")

    def test_a_package_of_an_import_hook_counts(self, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Editable installs have finders of their own."""
        put_real_nki(site / "elsewhere")

        class Editable:
            @staticmethod
            def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
                if name != "nki":
                    return None
                return importlib.util.spec_from_file_location(name, site / "elsewhere" / "nki" / "__init__.py")

        monkeypatch.setattr(sys, "meta_path", [Editable, *sys.meta_path])
        assert real_package("nki")


class TestBeside:
    """The packages beside NKI that tests of public kernels import."""

    @pytest.mark.parametrize("name", ["neuron_dtypes", "nki_cpu_simulator"])
    def test_an_installed_one_keeps_its_name(self, site: Path, name: str) -> None:
        """Whoever is preferred for NKI itself."""
        put(site, **{f"{name}____init__": "real = True\n"})
        install_stand_in("builtin")
        assert is_real(name)
        del sys.modules[name]

    @pytest.mark.parametrize("name", ["neuron_dtypes", "nki_cpu_simulator"])
    def test_they_come_and_go_with_the_modern_dialect(self, site: Path, name: str) -> None:
        """Beside a real nki there is none of ours."""
        install_stand_in()
        importlib.import_module(name)
        remove_stand_in()
        assert name not in sys.modules
        put_real_nki(site)
        install_stand_in()
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


class TestPlaceholders:
    """The packages of those names on PyPI are not AWS's."""

    @pytest.mark.parametrize("source", ["", "raise ImportError('get it from AWS')", "raise RuntimeError('no')"])
    def test_a_lone_module_does_not_count(self, site: Path, source: str) -> None:
        """Whether it raises or not."""
        put(site, nki=source, neuronxcc=source)
        assert not real_package("nki")
        assert not real_package("neuronxcc.nki")
        install_stand_in()
        assert hasattr(importlib.import_module("nki"), "jit")

    @pytest.mark.parametrize("source", ["", "raise ImportError('get it from AWS')", "raise RuntimeError('no')"])
    def test_neither_does_a_package_of_nothing(self, site: Path, source: str) -> None:
        """A parent that cannot be imported does not keep neuronxcc.nki from it."""
        put(site, nki____init__=source, neuronxcc____init__=source)
        assert not real_package("nki")
        assert not real_package("neuronxcc.nki")
        install_stand_in()
        assert hasattr(importlib.import_module("nki"), "jit")
        assert hasattr(importlib.import_module("neuronxcc.nki"), "jit")
        remove_stand_in()
        assert "neuronxcc.nki" not in sys.modules

    def test_a_lone_neuronxcc_that_was_imported_comes_back(self, site: Path) -> None:
        """A module that is no package cannot have a neuronxcc.nki; ours takes its place for a time."""
        put(site, neuronxcc="lone = True\n")
        lone = importlib.import_module("neuronxcc")
        install_stand_in()
        assert hasattr(importlib.import_module("neuronxcc.nki"), "jit")
        remove_stand_in()
        assert importlib.import_module("neuronxcc") is lone

    def test_a_directory_of_that_name_does_not_count(self, site: Path) -> None:
        """Authors have folders called nki."""
        (site / "nki").mkdir()
        (site / "neuronxcc").mkdir()
        assert not real_package("nki")
        install_stand_in()
        assert hasattr(importlib.import_module("nki"), "jit")
