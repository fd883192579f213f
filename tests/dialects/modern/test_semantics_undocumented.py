"""What production kernels and their tests rely on and AWS never documented: it works, or a sentence refuses it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any, Optional

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import constants
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.stand_in import install_stand_in, remove_stand_in, stand_in_installed

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture
def stand_in() -> Iterator[None]:
    """The stand-in, as it was before afterwards."""
    was = stand_in_installed()
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("nki", "neuronxcc")}
    install_stand_in("builtin")
    yield
    remove_stand_in()
    if was:
        install_stand_in("builtin")
        sys.modules.update(before)


@pytest.mark.usefixtures("stand_in")
class TestUndocumented:
    """The table of names that are used and not documented."""

    def test_modules_hold_the_same_objects(self) -> None:
        """nki.isa.constants and nki.dtype, from every side."""
        isa, dtype = importlib.import_module("nki.isa"), importlib.import_module("nki.dtype")
        for name in ("oob_mode", "dge_mode", "matmul_perf_mode"):
            assert getattr(importlib.import_module("nki.isa.constants"), name) is getattr(isa, name)
            assert getattr(constants, name) is getattr(nisa, name)
        language = importlib.import_module("nki.language")
        assert dtype.float8_e4m3 is language.float8_e4m3
        assert language.bool is language.bool_
        assert list(language.range(3)) == [0, 1, 2]
        assert dtype | None
        assert None | dtype
        assert Optional[dtype]  # noqa: UP045

    def test_the_simulator_before_nki_0_3(self) -> None:
        """nki.cpu_simulate(kernel)[lnc](...) as AWS's kernel library calls it, from both packages."""
        program = (
            "import nki_cpu_simulator.nki.builtin as sim_builtin\n"
            "import nki_cpu_simulator.nki.compiler as sim_compiler\n"
            "import nki_cpu_simulator.nki.isa.constants as sim_constants\n"
            "import nki_cpu_simulator.nki.language as sim_nl\n"
            "import nki_cpu_simulator.nki.language.dtypes as sim_dtypes\n"
            "import nki_cpu_simulator.nki.tensor as sim_tensor\n"
            "import nki_cpu_simulator.nki.typing as sim_nt\n"
            "from nki_cpu_simulator import nki as sim_nki\n"
        )
        names: dict[str, Any] = {}
        exec(program, names)
        assert names["sim_dtypes"].float32 is names["sim_nl"].float32
        seen: list[int] = []

        def kernel(x: Any) -> Any:
            seen.append(nl.num_programs())
            return x

        for package in (importlib.import_module("nki"), names["sim_nki"]):
            assert package.cpu_simulate(kernel)[2](x=X) is X
            assert package.cpu_simulate(package.jit(kernel))[1](X) is X
        assert seen == [2, 2, 1, 2, 2, 1]
        with pytest.raises(nkitools.NotModelled, match=r"nki_cpu_simulator\.nki\.builtin has no `load`"):
            _ = names["sim_builtin"].load

    @pytest.mark.parametrize(
        ("program", "said"),
        [
            ("import nki.no_such_module", "nki has no module `nki.no_such_module`"),
            ("import nki.language.no_such", "nki.language has no module `nki.language.no_such`"),
            ("from nki.compiler.frontend import Frontend", "nki.compiler.frontend has no `Frontend`"),
            ("from nki.compiler.ncc_driver import Kernel", "nki.compiler has no module `nki.compiler.ncc_driver`"),
            ("import neuronxcc.nki.no_such", "neuronxcc.nki has no module `neuronxcc.nki.no_such`"),
            ("from nki.compiler import compile", "nki.compiler has no `compile`"),
            ("from nki import no_such", "nki has no `no_such`"),
            ("from neuron_dtypes import no_such", "neuron_dtypes has no `no_such`"),
            ("from nki_cpu_simulator.nki.tensor import Tensor", "nki_cpu_simulator.nki.tensor has no `Tensor`"),
        ],
    )
    def test_an_unknown_name_is_refused_with_a_sentence(self, program: str, said: str) -> None:
        """NK607, which is an ImportError, too: authors try an import and go without."""
        with pytest.raises(ImportError) as raised:
            exec(program)
        assert isinstance(raised.value, nkitools.NotModelled)
        assert raised.value.finding.message.startswith(said)

    def test_the_compilers_front_end_runs_a_kernel(self) -> None:
        """As AWS's test driver calls it: by names, for a chip and an LNC degree; the arguments stay as they are."""
        frontend = importlib.import_module("nki.compiler.frontend")
        x, seen = np.ones((2, 3), np.float32), []

        @nki.jit
        def kernel(x: Any, step: int) -> Any:
            seen.append((nl.num_programs(), nisa.get_nc_version().name))
            tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(step))
            nisa.dma_copy(dst=x, src=tile)
            return x

        result = frontend.ParserFrontend().compile(
            kernel, inputs={"x": x, "step": 2}, target="trn3", lnc=1, artifacts_dir="nowhere", output_names=["y"]
        )
        assert isinstance(frontend.ParserFrontend(), frontend.NKIFrontend)
        assert seen == [(1, "gen4")]
        assert result.function_name == "kernel"
        assert list(result.outputs) == ["y"]
        np.testing.assert_array_equal(result.outputs["y"], np.full((2, 3), 3, np.float32))
        np.testing.assert_array_equal(x, np.ones((2, 3), np.float32))
        assert len(result.run.instructions) == 3
        with pytest.raises(nkitools.NotModelled, match=r"CompilationResult\.module: nkitools runs a kernel"):
            _ = result.module

    def test_the_compilers_front_end_refuses(self) -> None:
        """What the kernel refuses, results without a name, and the tree of a kernel."""
        compiled = importlib.import_module("nki.compiler.frontend").TracerFrontend().compile

        def kernel(x: Any) -> Any:
            assert x.shape[0] == 2, "This kernel should fail"
            return x

        with pytest.raises(AssertionError, match="This kernel should fail"):
            compiled(kernel, inputs={"x": X})
        assert list(compiled(kernel, inputs={"x": X[:2]}).outputs) == ["output_0"]
        with pytest.raises(nkitools.KernelError, match="kernel has 1 results, 2 are named"):
            compiled(kernel, inputs={"x": X[:2]}, output_names=["a", "b"])
        with pytest.raises(nkitools.NotModelled, match=r"dump_python_ast=True"):
            compiled(kernel, inputs={"x": X[:2]}, dump_python_ast=True)

    def test_to_ask_for_a_module_is_no_import(self) -> None:
        """importlib.util.find_spec says no."""
        assert importlib.util.find_spec("nki.no_such_module") is None
        assert importlib.util.find_spec("nki.isa") is not None

    def test_what_the_guide_shows_of_the_compiler_is_refused_when_called(self) -> None:
        """compile_kernel of nki.compiler.kernel_builder; names of the legacy dialect say where they are."""
        builder = importlib.import_module("nki.compiler.kernel_builder")
        with pytest.raises(nkitools.NotModelled, match=r"nki\.compiler\.kernel_builder\.compile_kernel is documented"):
            builder.compile_kernel(None)
        with pytest.raises(ImportError, match=r"nki\.compiler\.force_auto_alloc was removed"):
            exec("from nki.compiler import force_auto_alloc")

    def test_static_cast(self) -> None:
        """To a float it rounds to nearest even, to an integer it takes whole numbers; packed dtypes take four."""
        dt = importlib.import_module("neuron_dtypes")
        values = np.array([[1.0, 1 + 2**-8, 1 + 2**-8 + 2**-9, -3.0]], np.float32)
        np.testing.assert_array_equal(
            dt.static_cast(values, nl.bfloat16).astype(np.float32), [[1.0, 1.0, 1 + 2**-7, -3.0]]
        )
        assert dt.static_cast(np.eye(2), np.uint8).dtype == np.uint8
        assert dt.static_cast(values, np.float32) is values
        eight = np.array([[0, 1, -2, 3, 4, -6, 0.5, 1.5]], np.float32)
        packed = dt.static_cast(eight, nl.float8_e4m3fn_x4)
        assert packed.shape == (1, 2)
        np.testing.assert_array_equal(packed.view(ml_dtypes.float8_e4m3fn).astype(np.float32), eight)
        nibbles = dt.static_cast(eight, dt.float4_e2m1fn_x4).view(np.uint8)
        lower = (nibbles & 15).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
        np.testing.assert_array_equal(lower, eight[:, 0::2])
        np.testing.assert_array_equal(dt.static_cast([[1.2, np.nan]], nl.float16), np.float16([[1.2, np.nan]]))
        assert dt.static_cast(np.float32([np.inf]), nl.bfloat16) == np.inf
        np.testing.assert_array_equal((nibbles >> 4).view(ml_dtypes.float4_e2m1fn).astype(np.float32), eight[:, 1::2])

    def test_static_cast_rounds_before_it_judges_the_range(self) -> None:
        """A weight divided by its scale is 240.00001, which float8 rounds to its largest number; 248 is beyond it."""
        dt = importlib.import_module("neuron_dtypes")
        values = np.float32([240.00001, -247.9, 247.0])
        np.testing.assert_array_equal(dt.static_cast(values, nl.float8_e4m3).astype(np.float32), [240, -240, 240])
        np.testing.assert_array_equal(
            dt.static_cast(np.float32([448.00003, -463.9]), nl.float8_e4m3fn).astype(np.float32), [448, -448]
        )

    @pytest.mark.parametrize(
        ("value", "dtype"),
        [
            (248.0, "float8_e4m3"),
            (500.0, "float8_e4m3"),
            (500.0, "float8_e4m3fn"),
            (np.inf, "float8_e4m3fn"),
            (7.0, "float4_e2m1fn_x4"),
            (1.5, "int32"),
            (300.0, "uint8"),
        ],
    )
    def test_a_cast_without_a_published_meaning_is_refused(self, value: float, dtype: str) -> None:
        """NK607: beyond the range, fractions as integers."""
        dt = importlib.import_module("neuron_dtypes")
        with pytest.raises(nkitools.NotModelled, match=f"static_cast of {value}"):
            dt.static_cast(np.full((1, 4), value, np.float32), getattr(nl, dtype))

    @pytest.mark.parametrize(
        ("source", "dtype"), [(ml_dtypes.float8_e4m3, "float32"), (np.float64, "float32"), (np.int32, "uint8")]
    )
    def test_a_cast_takes_little_memory_beside_its_result(self, source: Any, dtype: str) -> None:
        """References of production kernels cast gigabytes: at most a copy of what is cast stands beside the result."""
        dt = importlib.import_module("neuron_dtypes")
        values = (np.arange(2_000_000) % 13).reshape(1000, 2000).astype(source)
        tracemalloc.start()
        cast = dt.static_cast(values[:, 1:], dtype)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        np.testing.assert_array_equal(cast.astype(np.int64), (np.arange(2_000_000) % 13).reshape(1000, 2000)[:, 1:])
        assert peak < cast.nbytes + values.nbytes + 3_000_000

    @pytest.mark.parametrize("dtype", ["float8_e4m3", "int16"])
    def test_a_cast_looks_at_every_element(self, dtype: str) -> None:
        """One that cannot be held is found at the end of a large array too; NaN among the others is none for floats."""
        dt = importlib.import_module("neuron_dtypes")
        values = np.ones((3, 70_001), np.float32)
        values[2, -1] = 1e6
        with pytest.raises(nkitools.NotModelled, match=r"static_cast of 1000000\.0"):
            dt.static_cast(values, getattr(nl, dtype))
        values[2, -1] = np.nan
        if dtype == "float8_e4m3":
            assert np.isnan(dt.static_cast(values, nl.float8_e4m3).astype(np.float32)).sum() == 1

    def test_what_dtypes_are(self) -> None:
        """Sizes, kinds and limits."""
        dt = importlib.import_module("neuron_dtypes")
        assert [dt.sizeinbytes(each) for each in (np.float32, nl.float8_e4m3, nl.float4_e2m1fn_x4, "float64")] == [
            4,
            1,
            2,
            8,
        ]
        assert [dt.is_float_type(each) for each in (np.float32, nl.bfloat16, nl.float8_e5m2_x4, nl.int8, np.int64)] == [
            True,
            True,
            True,
            False,
            False,
        ]
        assert [dt.is_int_type(each) for each in (np.int64, nl.uint8, nl.bool_, np.float64)] == [
            True,
            True,
            False,
            False,
        ]
        assert dt.is_x4_dtype(nl.float8_e5m2_x4)
        assert dt.finfo(nl.bfloat16).dtype == nl.bfloat16
