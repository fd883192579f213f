"""Every function of nki.isa, called as documented and with one argument spoilt at a time.

A wrong keyword, a missing or a surplus argument, and what is of another kind than the parameter is refused with NK609,
which names the argument and shows the signature.
"""

from __future__ import annotations

import inspect
import re
from enum import Enum
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.dialects.version_forms import signature_in
from nkitools.facts.versions import language_of
from tests.cases import each
from tests.dialects.modern.valid_calls import BETWEEN_CORES, CALLS, CHIPS, NAMES, NEWEST, UNCALLED, valid_call
from tests.nki_versions import SINCE_0_7

TENSORS = {
    *("dst", "src", "data", "data0", "data1", "data2", "stationary", "moving", "predicate", "on_true", "on_true_tile"),
    *("src_buffer", "index", "indices", "src_seeds", "segment_ids", "vals", "val_dst", "idx_dst", "bound0", "bound1"),
    *("reduce_res", "srcs", "stationary_scale", "moving_scale", "dst_scale"),
}
NUMBERS = {"operand0", "operand1", "imm", "imm0", "imm1", "max_value", "value", "initial", "on_false", "prob"}
# Parameters of a tensor that take another thing, too: a number, or None though they have no default.
EITHER = {("tensor_copy_predicated", "src", 3.5), ("activation_reduce", "reduce_res", None)}
REGISTERS = {"register_move", "register_load", "register_store"}


def call(name: str, /, **changed: Any) -> Any:
    """Issue a valid call with some arguments changed."""
    return nkitools.simulate(lambda: getattr(nisa, name)(**valid_call(name) | changed), chip=CHIPS.get(name, "trn2"))


def refusal(name: str, /, **changed: Any) -> nkitools.Finding:
    """The finding of a call with some arguments changed."""
    with pytest.raises(TypeError) as raised:
        call(name, **changed)
    assert isinstance(raised.value, nkitools.KernelError)
    assert raised.value.__context__ is None
    return raised.value.finding


def shows_the_form(finding: nkitools.Finding, name: str) -> bool:
    """Whether it is NK609 with the signature, at this file's line."""
    first = next(iter(inspect.signature(getattr(nisa, name)).parameters))
    form = f"The call form is nisa.{name}({first}"
    return (finding.rule, finding.file) == ("NK609", __file__) and form in finding.remedy


def parameters(*kinds: str) -> Any:
    """The parameters of some kinds, of all functions."""
    cases = []
    for name in CALLS:
        earlier = signature_in(getattr(nisa, name), language_of("0.6")).parameters
        for parameter in inspect.signature(getattr(nisa, name)).parameters.values():
            if kind_of(parameter) in kinds:
                marks = () if name not in NEWEST and parameter.name in earlier else (SINCE_0_7,)
                cases.append(pytest.param(name, parameter, id=f"{name}-{parameter.name}", marks=marks))
    return pytest.mark.parametrize(("name", "parameter"), cases)


def kind_of(parameter: inspect.Parameter) -> str:
    """What a parameter takes."""
    if parameter.name in TENSORS:
        return "tensor"
    if parameter.name in NUMBERS:
        return "number"
    if re.fullmatch(r"([a-z]+_)?op\d?", parameter.name):
        return "operator"
    if isinstance(parameter.default, Enum):
        return "enum"
    if isinstance(parameter.default, bool):
        return "flag"
    return "name" if parameter.name == "name" else "other"


@SINCE_0_7
def test_every_function_has_a_valid_call() -> None:
    """All functions of the newest version, but for those that ask the chip or need two cores."""
    functions = {name for name in nisa.__all__ if inspect.isfunction(getattr(nisa, name))}
    assert functions - UNCALLED - BETWEEN_CORES == set(CALLS)


@pytest.mark.parametrize("name", NAMES)
def test_a_valid_call_is_taken(name: str) -> None:
    """By keyword; what the others spoil is that one argument. Nothing comes of the call alone (NK408)."""
    assert [finding for finding in call(name).findings if finding.rule != "NK408"] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_keyword_that_there_is_not_is_refused(name: str) -> None:
    """Nothing is accepted and ignored."""
    finding = refusal(name, no_such_argument=1)
    assert finding.message == f"nisa.{name}() got an unexpected keyword argument 'no_such_argument'"
    assert shows_the_form(finding, name)


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_that_is_given_twice_is_refused(name: str) -> None:
    """By position and by keyword: Python finds it before the function of an instruction begins."""
    first = next(iter(inspect.signature(getattr(nisa, name)).parameters), "")
    if not first:
        pytest.skip("it takes nothing")

    def kernel() -> None:
        values = valid_call(name)
        getattr(nisa, name)(values.get(first), **{first: None} | values)

    for _ in range(4):  # the third call of an instruction generates its function
        with pytest.raises(nkitools.KernelError) as raised:
            nkitools.simulate(kernel)
        assert raised.value.finding.rule == "NK609"
        assert raised.value.finding.message == f"nisa.{name}() got multiple values for argument '{first}'"


@pytest.mark.parametrize("name", NAMES)
def test_too_many_arguments_are_refused(name: str) -> None:
    """By position."""

    def kernel() -> None:
        getattr(nisa, name)(*valid_call(name).values(), *[None] * 20)

    with pytest.raises(TypeError) as raised:
        nkitools.simulate(kernel, chip=CHIPS.get(name, "trn2"))
    finding = raised.value.finding  # type: ignore[attr-defined]
    assert finding.message.startswith(f"nisa.{name}() takes ")
    assert shows_the_form(finding, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_argument_is_named(name: str) -> None:
    """Each of those without a default."""
    for parameter in inspect.signature(getattr(nisa, name)).parameters.values():
        if parameter.default is not parameter.empty:
            continue

        def kernel(missing: str = parameter.name) -> None:
            arguments = valid_call(name)
            del arguments[missing]
            getattr(nisa, name)(**arguments)

        with pytest.raises(TypeError) as raised:
            nkitools.simulate(kernel, chip=CHIPS.get(name, "trn2"))
        finding = raised.value.finding  # type: ignore[attr-defined]
        assert finding.message.endswith(f"missing 1 required positional argument: '{parameter.name}'")
        assert shows_the_form(finding, name)


@parameters("tensor")
@each(
    "wrong, told",
    [
        (None, "None"),
        ("x", "str"),
        ([1, 2], "list"),
        (np.ones((8, 4), np.float32), "ndarray"),
        (3.5, "float"),
        (nl.add, "function"),
    ],
)
def test_a_tensor_is_a_tensor(name: str, parameter: inspect.Parameter, wrong: Any, told: str) -> None:
    """Not None, a string, a list of numbers, a NumPy array, a number, or a function."""
    default = wrong is None and parameter.default is None
    if default or (isinstance(wrong, (float, type(None))) and (name, parameter.name, wrong) in EITHER):
        call(name, **{parameter.name: wrong})
        return
    finding = refusal(name, **{parameter.name: wrong})
    assert f"`{parameter.name}` must be " in finding.message
    assert finding.message.endswith(f", it is {told}")
    assert shows_the_form(finding, name)
    if isinstance(wrong, np.ndarray):
        assert "NumPy arrays can only be passed in as arguments." in finding.remedy


@parameters("operator")
@each(
    "wrong, told",
    [
        (3, "3"),
        ("add", "the string 'add'"),
        (None, "None"),
        (nl.float32, "of class DType"),
        (nl.load, "of class function"),
    ],
)
def test_an_operator_is_a_token(name: str, parameter: inspect.Parameter, wrong: Any, told: str) -> None:
    """A string of its name says which one was meant."""
    if wrong is None and parameter.default is None:
        call(name, **{parameter.name: wrong})
        return
    finding = refusal(name, **{parameter.name: wrong})
    assert finding.message == (
        f"nisa.{name}: argument `{parameter.name}` must be an operator such as nl.add, it is {told}"
    )
    assert shows_the_form(finding, name)
    assert ("Pass nl.add itself, without quotes." in finding.remedy) == (wrong == "add")


@parameters("enum")
@each("wrong", ["unknown", 1, None, nl.add])
def test_an_enum_is_its_member(name: str, parameter: inspect.Parameter, wrong: Any) -> None:
    """Neither its name nor its number (migration guide of NKI 0.3: raw integers are no longer accepted).

    But for dge_mode, whose numbers public production kernels pass all the same.
    """
    if parameter.name == "dge_mode" and wrong == 1:
        wrong = 99
    finding = refusal(name, **{parameter.name: wrong})
    assert f"`{parameter.name}` must be a nki.isa.{type(parameter.default).__name__}, it is " in finding.message
    assert shows_the_form(finding, name)


@parameters("flag")
@each("wrong", ["yes", 2, None, 1.0])
def test_a_flag_is_a_truth_value(name: str, parameter: inspect.Parameter, wrong: Any) -> None:
    """True or False."""
    finding = refusal(name, **{parameter.name: wrong})
    assert f"`{parameter.name}` must be True or False, it is " in finding.message
    assert shows_the_form(finding, name)
    call(name, **{parameter.name: parameter.default})


@parameters("name")
@each("wrong", [3, nl.float32, ["a"]])
def test_a_name_is_a_string(name: str, parameter: inspect.Parameter, wrong: Any) -> None:
    """Also where the plan of the call is known already."""
    call(name)
    finding = refusal(name, name=wrong)
    assert f"nisa.{name}: argument `name` must be a string" in finding.message
    assert shows_the_form(finding, name)
    call(name, name="mine")


@parameters("other", "number")
@each("wrong", ["x", {"a": 1}, ["x", 1], object()])
def test_other_arguments_name_what_they_must_be(name: str, parameter: inspect.Parameter, wrong: Any) -> None:
    """Sizes, patterns, numbers: NK609 at the author's line, by the parameter's name."""
    finding = refusal(name, **{parameter.name: wrong})
    assert (finding.rule, finding.file) == ("NK609", __file__)
    assert f"`{parameter.name}" in finding.message


@each("wrong", [None, "x", 3, np.ones(4, np.float32)])
@pytest.mark.parametrize("name", sorted(REGISTERS))
def test_a_register_is_a_register(name: str, wrong: Any) -> None:
    """What register_alloc returned."""
    parameter = "src" if name == "register_store" else "dst"
    finding = refusal(name, **{parameter: wrong})
    assert f"`{parameter}` must be " in finding.message
    assert shows_the_form(finding, name)


def test_a_wrong_argument_of_register_alloc_is_refused() -> None:
    """A number or a tensor of one element."""
    for wrong in ("x", [1], nl.add):
        with pytest.raises(TypeError) as raised:
            nkitools.simulate(lambda wrong=wrong: nisa.register_alloc(wrong))
        assert raised.value.finding.rule == "NK609"  # type: ignore[attr-defined]


def test_instructions_outside_of_a_kernel_are_refused() -> None:
    """NK611, before anything else is said."""
    with pytest.raises(nkitools.KernelError) as raised:
        nisa.tensor_copy()
    assert (raised.value.finding.rule, raised.value.finding.file) == ("NK611", __file__)
