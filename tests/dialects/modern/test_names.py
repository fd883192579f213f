"""The names of the modern dialect: what is there, what is refused, what is missing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Optional, Tuple  # noqa: UP035

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import constants, dtype, language, objects
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.modern import typing as nt
from nkitools.facts import options, versions

MODULES = {
    name: import_module(name)
    for name in (
        "nki",
        "nki.isa",
        "nki.isa.constants",
        "nki.language",
        "nki.collectives",
        "nki.compiler.frontend",
        "nki.compiler.kernel_builder",
        "nki.typing",
        "nki.dtype",
    )
}


def refused_by(module: Any) -> list[str]:
    """The names that the table has for a module and says to be gone, or not modelled."""
    (name,) = (name for name, each in MODULES.items() if each is module)
    return [row.name for row in versions.names_of(name).values() if not row.is_modelled or not row.is_known]


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_every_listed_name_is_there(module: Any) -> None:
    """And none of those that refuse."""
    with options.override(nki_version="auto"):
        assert all(hasattr(module, name) for name in module.__all__)
    assert not set(module.__all__) & set(refused_by(module))


def test_the_language_lists_nothing_of_ours() -> None:
    """`from nki.language import *` brings NKI's names only."""
    strangers = {"Any", "annotations", "missing", "refuse", "not_modelled", "region", "token", "DynamicSlice", "np"}
    assert not strangers & set(nl.__all__)
    assert {"ndarray", "load", "store", "add", "tile_size", "NKIObject", "NkiTensor", "bool", "range"} <= set(
        nl.__all__
    )


class TestDocumented:
    """Names that AWS documents and this version does not model."""

    @pytest.mark.parametrize(("module", "name"), [("nki.compiler.kernel_builder", "compile_kernel")])
    def test_they_are_refused_when_they_are_called(self, module: str, name: str) -> None:
        """NK607 by their full name, in a kernel and outside; not when they are only mentioned."""
        found = getattr(MODULES[module], name)
        assert found is getattr(MODULES[module], name)
        assert (found.__name__, found.__module__, repr(found)) == (name, module, f"{module}.{name}")
        assert "not modelled" in found.__doc__
        with pytest.raises(nkitools.NotModelled, match=f"{module}.{name} is documented") as raised:
            found(1, x=2)
        assert raised.value.finding.file == __file__
        with pytest.raises(nkitools.NotModelled):
            nkitools.simulate(lambda: found(), rules="off")

    def test_they_serve_as_annotations_and_in_isinstance(self) -> None:
        """Kernels annotate with registers and ask what they are given."""

        compiler = MODULES["nki.compiler.kernel_builder"].compile_kernel
        assert not isinstance(3, compiler)
        assert Optional[compiler]  # noqa: UP045
        assert compiler | None


class TestMissing:
    """Names that nobody knows, and names that are gone."""

    @pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
    def test_hasattr_says_no(self, module: Any) -> None:
        """Kernels look for names of newer and older versions."""
        assert not hasattr(module, "no_such_name")
        assert getattr(module, "no_such_name", 3) == 3

    @pytest.mark.parametrize("name", MODULES)
    def test_the_error_names_the_module_and_the_line(self, name: str) -> None:
        """NK607, and an AttributeError."""
        with pytest.raises(AttributeError) as raised:
            _ = MODULES[name].no_such_name
        error = raised.value
        assert isinstance(error, nkitools.NotModelled)
        assert error.finding.rule == "NK607"
        assert error.finding.message.startswith(f"{name} has no `no_such_name`")
        assert error.finding.file == __file__

    def test_dunder_names_are_plainly_missing(self) -> None:
        """Python's own machinery asks for them."""
        with pytest.raises(AttributeError) as raised:
            _ = nl.__no_such_name__
        assert not isinstance(raised.value, nkitools.KernelError)

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("nki.language", "arange"),
            ("nki.language", "mgrid"),
            ("nki.language", "par_dim"),
            ("nki.isa", "tensor_copy_dynamic_src"),
            ("nki", "benchmark"),
        ],
    )
    def test_removed_names_say_what_to_do_instead(self, module: str, name: str) -> None:
        """NK608, and hasattr says no: kernels choose their dialect by it."""
        assert not hasattr(MODULES[module], name)
        with pytest.raises(AttributeError) as raised:
            getattr(MODULES[module], name)
        assert isinstance(raised.value, nkitools.KernelError)
        finding = raised.value.finding
        assert (finding.rule, finding.message) == ("NK608", f"{module}.{name} was removed from NKI")
        assert finding.remedy
        assert (finding.file, finding.line) != ("", 0)

    def test_an_import_of_a_missing_name_keeps_its_message(self) -> None:
        """Python would replace that of an AttributeError."""
        with pytest.raises(ImportError, match=r"nki\.language\.arange was removed") as removed:
            from nkitools.dialects.modern.language import arange  # noqa: F401
        assert isinstance(removed.value, nkitools.KernelError)
        assert removed.value.finding.file == __file__
        with pytest.raises(ImportError, match="has no `no_such_name`") as unknown:
            from nkitools.dialects.modern.isa import no_such_name  # noqa: F401
        assert isinstance(unknown.value, nkitools.NotModelled)


class TestUndocumented:
    """Names that public kernels use and AWS never documented."""

    def test_constants_are_the_same_objects(self) -> None:
        """Kernels compare those of one module with those of the other."""
        assert constants.oob_mode is nisa.oob_mode
        assert constants.dge_mode.hwdge is nisa.dge_mode.hwdge
        assert constants.matmul_perf_mode is nisa.matmul_perf_mode

    def test_dtypes_are_the_languages(self) -> None:
        """`nki.dtype` is a module, and an annotation."""
        assert dtype.float32 is nl.float32
        assert nl.bool is nl.bool_
        assert nl.range is range

        def kernel(x: Any, dtype: dtype = nl.float32) -> None: ...  # type: ignore[valid-type]

    def test_typing_takes_sizes_and_dtypes(self) -> None:
        """Annotations that promise nothing to the simulator."""
        assert repr(nt.tensor) == "nki.typing.tensor"
        assert repr(nt.tensor[128, 512]) == "nki.typing.tensor[128, 512]"
        assert nt.mutable_tensor[4].sizes == (4,)

    def test_ndarray_serves_as_an_annotation(self) -> None:
        """Evaluated when the module is imported."""
        assert Optional[nl.ndarray]  # noqa: UP045
        assert list[nl.ndarray]
        assert nl.ndarray | Tuple[nl.ndarray, int]  # noqa: UP006

    def test_operators_are_tokens_that_compare_and_hash(self) -> None:
        """Keys of tables, and functions where they are modelled as such."""
        assert {nl.exp: 1, nl.bypass: 2, nl.sin: 3}[nl.bypass] == 2
        assert repr(nl.prelu) == "nl.prelu"
        assert str(nl.prelu.__doc__).startswith("The parametric ReLU")
        with pytest.raises(nkitools.NotModelled, match=r"nl\.bypass as a function"):
            nl.bypass(1)


class TestMemories:
    """`is_hbm` and its kin take a memory."""

    @pytest.mark.parametrize(
        ("memory", "hbm", "on_chip", "psum", "sbuf"),
        [
            (nl.hbm, True, False, False, False),
            (nl.private_hbm, True, False, False, False),
            (nl.shared_hbm, True, False, False, False),
            (nl.psum, False, True, True, False),
            (nl.sbuf, False, True, False, True),
        ],
    )
    def test_each_answers(self, memory: Any, hbm: bool, on_chip: bool, psum: bool, sbuf: bool) -> None:
        """Yes or no."""
        answers = (nl.is_hbm(memory), nl.is_on_chip(memory), nl.is_psum(memory), nl.is_sbuf(memory))
        assert answers == (hbm, on_chip, psum, sbuf)


def test_a_dimension_can_be_added() -> None:
    """expand_dims is a view; what is no tensor is refused."""
    x = np.ones((8, 4), np.float32)
    seen: list[Any] = []
    nkitools.simulate(lambda x: seen.append(nl.expand_dims(nl.load(x), 1).shape), x)
    assert seen == [(8, 1, 4)]
    with pytest.raises(TypeError, match="x must be a tensor, it is float"):
        nkitools.simulate(lambda: nl.expand_dims(1.0, 0))


class TestObjects:
    """NKIObject, the base of settings."""

    def test_keywords_become_attributes(self) -> None:
        """Of plain subclasses."""

        class Sizes(nl.NKIObject):
            rows: int
            columns: int

        sizes = Sizes(rows=3, columns=4)
        assert (sizes.rows, sizes.columns) == (3, 4)

    def test_a_dataclass_has_fields_without_annotations(self) -> None:
        """As AWS's has: public kernels write them so."""

        @dataclass
        class Section(nl.NKIObject):
            rows: int
            index = None
            scale = 1.0

            def double(self) -> int:
                return 2 * self.rows

            @property
            def half(self) -> float:
                return self.rows / 2

        section = Section(rows=4, index=2)
        assert [field.name for field in fields(Section)] == ["rows", "index", "scale"]
        assert (section.double(), section.half, section.index, section.scale) == (8, 2, 2, 1.0)

    def test_frozen_dataclasses_and_bases_are_as_they_are_in_python(self) -> None:
        """Fields of a base come first, and a list without an annotation stays the class's."""

        @dataclass(frozen=True, eq=True)
        class Base(nl.NKIObject):
            rows: int = 1
            table = [1, 2]  # noqa: RUF012

        @dataclass(frozen=True, eq=True)
        class Derived(Base):
            columns: int = 2

        assert Derived(3, 4) == Derived(rows=3, columns=4)
        assert [field.name for field in fields(Derived)] == ["rows", "columns"]
        assert Base.table == [1, 2]

    def test_it_is_one_class(self) -> None:
        """Under both of its addresses."""
        assert language.NKIObject is objects.NKIObject


def test_a_misspelt_name_gets_its_neighbour_suggested() -> None:
    """What is nearly a name of the module names that one."""
    with pytest.raises(nkitools.NotModelled, match=r"Did you mean softmax\?"):
        nl.sofmax  # noqa: B018


@pytest.mark.process
def test_names_are_there_before_they_are_used() -> None:
    """`dir` lists the names that every version has, `import *` takes those of this one, each is one object always."""
    code = """
import nkitools; nkitools.install_stand_in()
import sys
import nki.isa, nki.language
from nkitools.dialects.modern import isa

loaded = "nkitools.isa.matmul" in sys.modules
print(loaded, "nc_matmul" in dir(nki.isa), "exp" in dir(nki.language), "nc_matmul" in dir(isa), "copy" in dir(isa))
print("nkitools.isa.matmul" in sys.modules, hasattr(nki.isa, "nc_matmul"), "nkitools.isa.matmul" in sys.modules)
names = {}
exec("from nki.isa import *", names)
print(names["nc_matmul"] is nki.isa.nc_matmul is isa.nc_matmul, names["dma_copy"] is nki.isa.dma_copy)
print({*dir(nki.isa)} >= {name for name in nki.isa.__all__ if name in dir(isa)})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", *["True"] * 3, "False", "False", *["True"] * 5]
