"""Every function of nki.language, called as documented and with one argument spoilt at a time.

A wrong keyword, a missing or a surplus argument, and what is no tile where a tile belongs are refused with NK609, which
shows the signature or names the argument.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.version_forms import signature_in
from nkitools.facts import options
from tests.nki_versions import WITH_REMOVED_NAMES

with Path(__file__).with_name("api.tsv").open(newline="") as table:
    FUNCTIONS = [
        row["name"]
        for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        if (row["module"], row["kind"]) == ("nki.language", "function")
    ]

Arguments = dict[str, Any]


def tile(*shape: int, dtype: Any = nl.float32, value: float = 1, buffer: Any = nl.sbuf) -> Any:
    """A written tile of 8 x 4 elements, or of another shape."""
    return nl.full(shape or (8, 4), int(value) if dtype.is_integer else float(value), dtype, buffer)


def register(value: int) -> Any:
    """A register that holds ``value``."""
    return nisa.register_alloc(value)


def two() -> Arguments:
    """Of a function of two tiles."""
    return {"x": tile(), "y": tile(value=2)}


def bits() -> Arguments:
    """Of a function of two tiles of integers."""
    return {"x": tile(dtype=nl.uint32), "y": tile(dtype=nl.uint32, value=2)}


def one() -> Arguments:
    """Of a function of one tile."""
    return {"x": tile()}


def along() -> Arguments:
    """Of a reduction."""
    return {"x": tile(8, 2, 2), "axis": 2}


def counted() -> Arguments:
    """Of a range."""
    return {"start": 0, "stop": 3, "step": 1}


TWO = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "abs_max", "abs_min", "power", "mod", "fmod"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor"),
)
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
ONE = (
    *("abs", "square", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "reciprocal", "copy", "logical_not"),
    *("gelu", "gelu_apprx_sigmoid", "gelu_apprx_tanh", "gelu_dx", "gelu_apprx_sigmoid_dx", "silu", "silu_dx"),
    *("softplus", "mish", "erf", "erf_dx", "sin", "cos", "tan", "arctan", "ceil", "floor", "trunc", "negative", "sign"),
    "transpose",
)
ALONG = ("sum", "max", "min", "mean", "prod", "var", "all", "softmax")

# A call of each function that is legal, with every argument but the optional ones that are named elsewhere.
CALLS: dict[str, Callable[[], Arguments]] = {
    **dict.fromkeys(TWO, two),
    **dict.fromkeys(BITS, bits),
    **dict.fromkeys(ONE, one),
    **dict.fromkeys(ALONG, along),
    **{name: lambda: {"buffer": nl.psum} for name in ("is_hbm", "is_on_chip", "is_psum", "is_sbuf")},
    "invert": lambda: {"x": tile(dtype=nl.int32)},
    "rms_norm": lambda: {"x": tile(), "w": tile(), "axis": 1, "n": 4, "epsilon": 1e-5},
    "where": lambda: {"condition": tile(), "x": tile(), "y": tile()},
    "dropout": lambda: {"x": tile(), "rate": 0.5},
    **{name: lambda: {"shape": (8, 4), "dtype": nl.float32} for name in ("ndarray", "zeros", "ones", "rand")},
    "full": lambda: {"shape": (8, 4), "fill_value": 2.0, "dtype": nl.float32},
    "zeros_like": one,
    "empty_like": one,
    "random_seed": lambda: {"seed": tile(1, 1, dtype=nl.int32)},
    "expand_dims": lambda: {"x": tile(), "axis": 1},
    "broadcast_to": lambda: {"x": tile(8, 1), "shape": (8, 4)},
    "matmul": lambda: {"x": tile(8, 4), "y": tile(8, 6), "transpose_x": True},
    "no_reorder": dict,
    "load_transpose2d": lambda: {"src": tile(buffer=nl.hbm)},
    "gather_flattened": lambda: {"data": tile(), "indices": tile(dtype=nl.uint32), "axis": 0},
    "ds": lambda: {"start": 0, "size": 4},
    **dict.fromkeys(("affine_range", "sequential_range", "static_range", "dynamic_range"), counted),
    "fori_loop": lambda: {"lower": 0, "upper": 2, "body_fun": lambda i: None, "step": 1},
    "while_loop": lambda: {"init": register(1), "body_fun": lambda r: register(0)},
    "load": lambda: {"src": tile(buffer=nl.hbm)},
    "store": lambda: {"dst": nl.ndarray((8, 4), nl.float32, nl.hbm), "value": tile()},
    "program_id": lambda: {"axis": 0},
    "num_programs": lambda: {"axes": 0},
    "program_ndim": dict,
    "shared_constant": lambda: {"constant": np.ones((8, 4), np.float32)},
    "shared_identity_matrix": lambda: {"n": 8, "dtype": nl.float32},
    "device_print": lambda: {"print_prefix": "tile", "tensor": tile()},
}


def in_versions(cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a test by functions; the one that 0.7 removed runs under versions that have it."""
    marked = [(each if isinstance(each, tuple) else (each,)) for each in cases]
    return [pytest.param(*each, marks=WITH_REMOVED_NAMES if "dynamic_range" in each else ()) for each in marked]


LEAVING = ("affine_range", "sequential_range", "static_range", "dynamic_range")
TILES = {"x", "y", "w", "condition", "src", "dst", "value", "data", "indices", "tensor", "seed", "init"}
NUMBERS_TOO = {*((name, role) for name in (*TWO, *BITS, "where") for role in "xy")}
NO_TILES: tuple[Any, ...] = ("a tile", None, [1.0, 2.0], {"x": 1}, np.ones((8, 4), np.float32), len)


def refused(name: str, call: Callable[[], Any], chip: str = "trn3") -> Any:
    """The finding of a refused call, the same at both levels of the rules."""

    def kernel() -> None:
        call()

    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, chip=chip)
    finding = caught.value.finding
    run = nkitools.simulate(kernel, chip=chip, rules="report")
    assert [each.rule for each in run.findings if each.rule != "NK615"] == [finding.rule]
    assert finding.file == __file__
    return finding


def shows_the_signature(name: str, finding: Any) -> bool:
    """Whether the remedy tells how the function is called."""
    parameters = list(signature_in(getattr(nl, name), options.language()).parameters)
    form = re.escape(f"The call form is nl.{name}(") + ".*".join(map(re.escape, parameters))
    return re.search(form, finding.remedy) is not None


def test_every_function_of_the_reference_is_called_here() -> None:
    """All 103 of them, and no others."""
    assert sorted(CALLS) == sorted(FUNCTIONS)
    assert len(FUNCTIONS) == 103


@pytest.mark.parametrize("name", in_versions(FUNCTIONS))
def test_it_runs_as_documented(name: str) -> None:
    """By keyword and by position; found are only divide, mod and fmod, which no chip has, and that nothing is returned.

    A name that is to go is NK618 at each line.
    """

    def kernel() -> None:
        function, arguments = getattr(nl, name), CALLS[name]()
        function(**arguments)
        assert list(inspect.signature(function).parameters)[: len(arguments)] == list(arguments)
        function(*CALLS[name]().values())

    leaving = LEAVING if options.language().traced else ("dynamic_range",)
    refused = ("divide", "mod", "fmod") if options.language().whole_rms_norm else ("divide", "mod", "fmod", "rms_norm")
    expected = ["NK615"] * 2 if name in refused else ["NK618"] * 2 if name in leaving else []
    findings = nkitools.simulate(kernel, chip="trn3", rules="report").findings
    assert [finding.rule for finding in findings if finding.rule != "NK408"] == expected


@pytest.mark.parametrize("name", in_versions(FUNCTIONS))
def test_unknown_missing_and_surplus_arguments_are_refused(name: str) -> None:
    """NK609 with the signature, at the author's line."""
    function = getattr(nl, name)
    parameters = inspect.signature(function).parameters
    finding = refused(name, lambda: function(**CALLS[name](), surplus=True))
    assert (finding.rule, "surplus" in finding.message) == ("NK609", True)
    assert shows_the_signature(name, finding)
    finding = refused(name, lambda: function(*range(len(parameters) + 1)))
    assert (finding.rule, f"nl.{name}() takes" in finding.message) == ("NK609", True)
    assert shows_the_signature(name, finding)
    for role, parameter in parameters.items():
        if parameter.default is parameter.empty:
            finding = refused(name, lambda role=role: function(**{k: v for k, v in CALLS[name]().items() if k != role}))
            assert (finding.rule, f"'{role}'" in finding.message) == ("NK609", True)
            assert shows_the_signature(name, finding)


@pytest.mark.parametrize(
    ("name", "role"),
    [(name, role) for name in FUNCTIONS for role in inspect.signature(getattr(nl, name)).parameters if role in TILES],
)
def test_what_is_no_tile_is_refused_where_one_belongs(name: str, role: str) -> None:
    """Strings, None, lists, dictionaries, NumPy arrays, functions: NK609. Numbers, where the reference has none."""
    optional = inspect.signature(getattr(nl, name)).parameters[role].default is None
    wrong = [each for each in NO_TILES if not (optional and each is None)]
    for value in wrong if (name, role) in NUMBERS_TOO else [*wrong, 2.0, True]:
        finding = refused(name, lambda value=value: getattr(nl, name)(**{**CALLS[name](), role: value}))
        assert finding.rule == "NK609", value
        assert f"nl.{name}" in finding.message


DTYPES: tuple[Any, ...] = ("a dtype", 3, [nl.float32], np.float64, 1.5)
WRONG: dict[str, tuple[Any, ...]] = {
    "dtype": DTYPES,
    "compute_dtype": DTYPES,
    "buffer": ("memory", 3, [nl.sbuf]),
    "name": (3, ["tile"]),
    "shape": ("8", None, (), (8, 0), (8, -1), 2.5, (8, 2.5), (8, None), (True, 4)),
    "address": (3, "0", (1,), (1, 2, 3), (0, 1.5)),
    "fill_value": ("1", None, [1.0], np.ones(2)),
    "axis": ("1", None, 1.5, [1.0], {"x": 1}),
    "axes": ("0", 1.5, [1.5]),
    "keepdims": ("yes", None, [True], 1.5),
    "transpose_x": ("yes", None, 1.5),
    "rate": ("0.5", None, [0.5], -0.1, True),
    "n": (0, -1, "4", None, True),
    "epsilon": (-1e-6, "0", None),
    "constant": (3, None, [1.0, 2.0], "there is no such file.npy", np.float32(1), np.ones(()), np.ones((0, 4))),
    "print_prefix": (3, None),
    "start": ("0", None, 1.5, [0]),
    "stop": ("3", 1.5, [3]),
    "step": ("1", None, 1.5, 0),
    "lower": ("0", None, 1.5),
    "upper": ("3", None, 1.5),
    "size": ("4", None, 1.5),
    "body_fun": (None, 3, "body"),
}


@pytest.mark.parametrize(
    ("name", "role"),
    in_versions(
        (name, role) for name in FUNCTIONS for role in inspect.signature(getattr(nl, name)).parameters if role in WRONG
    ),
)
def test_arguments_of_a_wrong_kind_are_refused(name: str, role: str) -> None:
    """NK609, and NK301 of what is no dtype."""
    optional = inspect.signature(getattr(nl, name)).parameters[role].default is None
    for value in WRONG[role]:
        if optional and value is None:
            continue
        finding = refused(name, lambda value=value: getattr(nl, name)(**{**CALLS[name](), role: value}))
        assert finding.rule == ("NK301" if role.endswith("dtype") else "NK609"), value
