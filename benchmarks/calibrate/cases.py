"""The published kernels that are calibrated on: where each is, and how it is called.

No kernel of others is kept here. Each is read out of a git directory ``DIR/owner+name/repo`` at the commit that its
latency was published with.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

_HEAD = """import math
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
from neuronxcc.nki.language import par_dim
"""
_SDK = ("aws-neuron+aws-neuron-sdk", "49ee15c5", "general/nki/examples/")
_AUTOTUNE = "awslabs+nki-autotune"
_BENCH = ("zhang677+AccelOpt", "47e29a7", "NKIBench/kernels/")
_SAMPLES = ("aws-neuron+nki-samples", "3a99c91", "src/nki_samples/reference/")
_VADD = ("xaviergonzalez+asst4-trainium2", "d155261", "part1/kernels.py")
_VADD_LONG = ("rishic3+asst4-trainium2", "e17b72e", "part1/kernels.py")

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A published kernel: its place, its name, the edits of its text, and its arguments."""

    repository: str  # owner+name
    commit: str
    path: str
    kernel: str
    arguments: Callable[[], Arguments]
    edit: Callable[[str], str] = str  # the text of the kernel's module, made of the file's

    def load(self, sources: Path, folder: Path, name: str) -> Any:
        """Return the kernel, as a module of its own in ``folder``."""
        git = ["git", f"--git-dir={sources / self.repository / 'repo'}", "show", f"{self.commit}:{self.path}"]
        text = subprocess.run(git, capture_output=True, text=True, check=True).stdout
        file = folder / f"{re.sub(r'[^0-9a-zA-Z]', '_', name)}.py"
        file.write_text(self.edit(text))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is no module")
        module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, self.kernel)


def _zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def _of_trace(number: int) -> Callable[[str], str]:
    """Return an edit that takes one version of a kernel out of a trace of candidates, the first one at 0."""

    def edit(text: str) -> str:
        codes = list[str]()
        node: Any = ast.parse(text).body[0]
        node = node.value
        while isinstance(node, ast.Call):
            fields = {each.arg: each.value for each in node.keywords}
            codes.append(fields["code"].value)  # type: ignore[attr-defined]
            node = fields["parent"]
        code = codes[::-1][number]
        # A line of this text lost a part when it was published; what its comment says is put back.
        return _HEAD + code.replace(
            "(mLE_M, TILE_N), dtype", "(m1, n1)\n            psum00 = nl.zeros((TILE_M, TILE_N), dtype"
        )

    return edit


def _set(name: str, value: int) -> Callable[[str], str]:
    """Return an edit that sets a variable of the text."""
    return lambda text: re.sub(rf"\b{name} = \d+", f"{name} = {value}", text)


def _autocomp(path: str, number: int, arguments: Callable[[], Arguments]) -> Case:
    return Case(
        repository="ucb-bar+autocomp",
        commit="dd26a56",
        path=f"examples/{path}_trace.py",
        kernel="test",
        arguments=arguments,
        edit=_of_trace(number),
    )


def _at(place: tuple[str, str, str], path: str, kernel: str, *shapes: Any, edit: Callable[[str], str] = str) -> Case:
    """Return a case whose arguments are zeros of some shapes (float32), or numbers."""

    def arguments() -> Arguments:
        return tuple(_zeros(*each) if isinstance(each, tuple) else each for each in shapes), {}

    repository, commit, folder = place
    return Case(repository=repository, commit=commit, path=folder + path, kernel=kernel, arguments=arguments, edit=edit)


def _bench(file: str, *shapes: Any) -> Case:
    return _at(_BENCH, f"{file}_0.py", "kernel", *shapes)


def _mamba(version: int, channels: int, length: int = 512) -> Case:
    large, states = (1, channels, length), (1, 16, length)
    return _at(
        _SDK, "fused_mamba/mamba_nki_kernels.py", f"mamba_v{version}", large, large, (channels, 16), states, states
    )


def _layernorm(version: int) -> Case:
    kernel = f"nki_layernorm_kernel_v{version}"
    return _at(_SDK, "layernorm/layernorm_nki_kernel.py", kernel, (4096, 8192), 1e-5, (8192,), (8192,))


def _square(commit: str, path: str, kernel: str) -> Case:
    def arguments() -> Arguments:
        return (_zeros(2048, 2048, dtype=ml_dtypes.bfloat16),) * 2, {}

    return Case(
        repository=_AUTOTUNE, commit=commit, path=f"kernel_library/matmul/{path}", kernel=kernel, arguments=arguments
    )


def _convolution() -> Arguments:
    return (_zeros(8, 512, 1, 2048), _zeros(512, 1, 1, 3)), {"padding": ((0, 0), (1, 1))}


def _product() -> Arguments:
    return tuple(_zeros(8192, size, dtype=ml_dtypes.bfloat16) for size in (4096, 8192)), {}


def _attention() -> Arguments:
    return (_zeros(4096, 64),) * 3, {}


def _wide_attention() -> Arguments:
    return (_zeros(128, 4096, dtype=ml_dtypes.bfloat16),) * 3, {}


def _scan() -> Arguments:
    large, states = _zeros(1, 256, 2048), _zeros(1, 16, 2048)
    return (large, large, _zeros(256, 16), states, states), {}


def _sample(path: str, kernel: str, dtype: Any, key: tuple[int, ...]) -> Case:
    """Return a case of an attention of 4096 rows of 128, whose keys have a shape of their own."""

    def arguments() -> Arguments:
        return tuple(_zeros(*each, dtype=dtype) for each in ((1, 128, 4096), key, (1, 4096, 128))), {"grid": 1}

    repository, commit, folder = _SAMPLES
    return Case(repository=repository, commit=commit, path=folder + path, kernel=kernel, arguments=arguments)


CASES: dict[str, Case] = {
    **{f"autocomp/4_conv1d/0{n}": _autocomp("trn-advanced/4_conv1d", n, _convolution) for n in range(7)},
    **{f"autocomp/1_gemm/0{n}": _autocomp("trn-tutorial/1_gemm", n, _product) for n in range(3)},
    **{f"autocomp/5_sd_attention/0{n}": _autocomp("trn-tutorial/5_sd_attention", n, _attention) for n in range(7)},
    **{f"autocomp/4_attention/{n:02}": _autocomp("trn-tutorial/4_attention", n, _wide_attention) for n in range(11)},
    **{f"autocomp/3_mamba/0{n}": _autocomp("trn-tutorial/3_mamba", n, _scan) for n in (0, 2, 3, 6)},
    "nkibench-trn1/matmul_add_rmsnorm": _bench(
        "matmul_add_rmsnorm_M4096_N2048_K2048", (4096, 2048), (2048, 2048), 1e-5, (4096, 2048), (2048,)
    ),
    "nkibench-trn1/matmul": _bench("matmul_M4096_N12288_K5120", (32, 128, 40, 128), (40, 128, 12288)),
    "nkibench-trn1/rmsnorm_matmul": _bench("rmsnorm_matmul_M4096_N2048_K1024", (32, 128, 1024), (8, 128, 2048)),
    "nkibench-trn1/bmm": _bench("bmm_B16_M4096_K64_N4096", (16, 4096, 64), (16, 64, 4096)),
    "nkibench-trn1/adamw": _bench("adamw_M10944_N2048", *[(10944, 2048)] * 4),
    "nkibench-trn1/silu": _bench("silu_M4096_N7168", (128, 32, 7168)),
    "nkibench-trn1/mamba": _bench("mamba_M7168_C256_S16", (7168, 256), (7168, 256), (7168, 16), (16, 256), (16, 256)),
    **{
        f"cs149/vadd{n}": _at(_VADD, "", "vector_add_tiled", (25600, 1), (25600, 1), edit=_set("ROW_CHUNK", n))
        for n in (1, 128)
    },
    **{
        f"cs149/vaddF{n}": _at(_VADD, "", "vector_add_stream", (25600,), (25600,), edit=_set("FREE_DIM", n))
        for n in (2, 200)
    },
    **{
        f"cs149/vadd256k_F{n}": _at(_VADD_LONG, "", "vector_add_stream", (256000,), (256000,), edit=_set("FREE_DIM", n))
        for n in (1000, 2000)
    },
    "docs/mamba_v1_c256": _mamba(1, 256),
    "docs/mamba_v1_c4096": _mamba(1, 4096),
    "docs/mamba_v2_c4096": _mamba(2, 4096),
    "docs/mamba_v2_l8192": _mamba(2, 4096, 8192),
    "docs/mamba_v3_l8192": _mamba(3, 4096, 8192),
    "docs/layernorm_v1": _layernorm(1),
    "docs/layernorm_v2": _layernorm(2),
    "autotune/kernel_hand_90.92mfu_lhsT_rhs": _square(
        "d57bcc3", "lhsT_rhs/kernel_hand_90.92mfu.py", "matmul_lhsT_rhs_nkigym"
    ),
    "autotune/kernel_manual_79.05mfu_lhsT_rhs": _square(
        "b672385", "lhsT_rhs/kernel_manual_79.05mfu.py", "matmul_ref_2k"
    ),
    "autotune/kernel_30_60.21mfu_lhs_rhs": _square("1d9c2b9", "lhs_rhs/kernel_30_60.21mfu.py", "matmul_lhs_rhs_nkigym"),
    "autotune/kernel_31_58.60mfu_lhsT_rhs": _square(
        "1d9c2b9", "lhsT_rhs/kernel_31_58.60mfu.py", "matmul_lhsT_rhs_nkigym"
    ),
    "autotune/kernel_from_manual_ir_80.45mfu_lhsT_rhs": _square(
        "160f940", "lhsT_rhs/kernel_from_manual_ir_80.45mfu.py", "matmul_lhsT_rhs_nkigym"
    ),
    "autotune/kernel_handtuned_89.26mfu_lhs_rhs": _square(
        "0b6f309", "lhs_rhs/kernel_handtuned_89.26mfu.py", "matmul_lhs_rhs_nkigym"
    ),
    **{
        f"nki-samples/{prefix}sd_attention_{short}": _sample(
            f"{prefix}attention.py", f"{prefix}fused_self_attn_for_SD_small_head_size", dtype, key
        )
        for prefix, key in (("", (1, 4096, 128)), ("allocated_", (1, 128, 4096)))
        for short, dtype in (("fp32", np.float32), ("bf16", ml_dtypes.bfloat16))
    },
}
"""The kernels by the ids of their published latencies."""
