"""The catalogue is complete, consistent, and says the same as the code that reports its rules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import nkitools
from nkitools.facts.generations import CHIPS
from nkitools.rules.catalogue import RULES, TPU_CHIPS, Rule, find_rule
from nkitools.rules.finding import Finding, error_class
from tests.cases import each

PACKAGE = Path(nkitools.__file__).parent
DEFINED = list(RULES.values())
IDENTIFIER = re.compile(r"(NK|PL|CO)\d{3}")
QUOTED = re.compile(r"""["']((?:NK|PL|CO)\d{3})["']""")
MARK = re.compile(r"(#|//) ((NK|PL|CO)\d{3})")

# Every code of the legacy dialect's error page, and the rule that speaks for it; in brackets a rule of a later version.
LEGACY_CODES = {
    "err_1d_arange_not_supported": "NK603",
    "err_activation_bias_invalid_type": "NK301",
    "err_activation_scale_invalid_type": "NK301",
    "err_activation_scale_scalar_or_vector": "NK109",
    "err_ambiguous_tensor_truth_value": "NK602",
    "err_annotation_shape_mismatch": "NK109",
    "err_bias_tensor_must_be_specified_in_allocation": "NK614",
    "err_cannot_assign_to_index": "NK603",
    "err_cannot_update_immutable_parameter": "NK406",
    "err_control_flow_condition_depending_on_arange": "NK602",
    "err_copy_dynamic_indirect_indices_not_natively_supported": "NK603",
    "err_dynamic_control_flow_not_supported": "NK602",
    "err_exceed_max_supported_dimension": "NK110",
    "err_failed_to_infer_tile_from_local_tensor": "NK612",
    "err_hbm_tensor_with_init_value_not_supported": "NK205",
    "err_indirect_indices_are_not_supported_with_nki_api": "NK603",
    "err_indirect_indices_free_dim": "NK603",
    "err_leading_dimension_of_tensor_must_be_partition": "NK612",
    "err_local_variable_used_out_of_scope": "NK605",
    "err_mutable_parameter_not_returned": "NK407",
    "err_nested_kernel_with_spmd_grid": "NK610",
    "err_nki_api_outside_of_nki_kernel": "NK611",
    "err_num_partition_exceed_arch_limit": "NK101",
    "err_num_partition_mismatch": "NK102",
    "err_shared_hbm_must_in_kernel_level": "NK208",
    "err_size_of_dimension_exceed_arch_limit": "NK107",
    "err_store_dst_shape_smaller_than_other_shape": "NK109",
    "err_tensor_access_out_of_bound": "NK402",
    "err_tensor_creation_on_scratchpad_with_init_value_not_supported": "NK614",
    "err_tensor_output_not_written_to": "NK403",
    "err_transpose_on_tensor_engine_not_allowed_in_allocated_kernel": "NK614",
    "err_unexpected_output_dependencies": "NK501",
    "err_unsupported_expression_in_mask": "NK604",
    "err_unsupported_memory": "NK201",
    "err_unsupported_mixing_basic_advanced_tensor_indexing": "NK603",
    "err_while_loop_requires_unconditional_entry": "NK601",
}

each_rule = each("rule", DEFINED, lambda rule: rule.id)


@cache
def _named_in_code() -> dict[str, set[str]]:
    """Rule ids that stand as strings of their own in the code or its table of sentences, and the files with them."""
    named: dict[str, set[str]] = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.glob("customop/*.toml")]):
        relative = path.relative_to(PACKAGE).as_posix()
        if relative.startswith("rules/") and relative != "rules/finding.py":
            continue  # the catalogue itself
        for name in QUOTED.findall(path.read_text(encoding="utf-8")):  # a tree of each file takes seconds
            named.setdefault(name, set()).add(relative)
    return named


@each_rule
def test_a_rule_has_all_its_texts(rule: Rule) -> None:
    """Reason, source, remedy and both examples are written, as sentences."""
    for text in (rule.reason, rule.source, rule.remedy, rule.bad, rule.good):
        assert text.strip()
        assert "TODO" not in text
    assert rule.reason.endswith(".")
    assert rule.remedy.endswith(".")
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", rule.slug)
    assert rule.severity in ("error", "warning", "hint")


@each_rule
def test_an_example_marks_one_line_and_is_complete(rule: Rule) -> None:
    """A bad example marks the line to report, a good one marks none; both define the kernel and its inputs.

    Each rule of NKI has one more of both at least, near its edge.
    """
    assert len(rule.examples) >= 2 if rule.id.startswith("NK") else rule.examples
    for bad, good in rule.examples:
        marked = [line for line in bad.splitlines() if MARK.search(line)]
        assert [MARK.sub(r"\2", line).rpartition("  ")[2] for line in marked] == [rule.id]
        assert not MARK.search(good)
        for source in (bad, good) if rule.id.startswith("NK") else ():
            assert {"kernel", "inputs"} <= _names(source)


def _names(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return functions | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_every_file_of_the_examples_belongs_to_a_rule() -> None:
    """Each rule has a folder with its text, a bad example has its good counterpart, and no other file lies there."""
    there = {path.relative_to(PACKAGE / "rules" / "examples") for path in (PACKAGE / "rules" / "examples").rglob("*.*")}
    there = {path for path in there if "__pycache__" not in path.parts}
    assert {path.parent.name for path in there} == {rule.id for rule in DEFINED}
    for rule in DEFINED:
        ending = "cpp" if rule.id.startswith("CO") else "py"
        names = {path.name for path in there if path.parent.name == rule.id}
        pairs = {name.removeprefix("bad").removesuffix(f".{ending}") for name in names if name.startswith("bad")}
        assert {"", "_edge"} >= pairs or pairs > {"", "_edge"}
        assert len(pairs) == len(rule.examples)
        assert names == {"rule.toml", *(f"{kind}{pair}.{ending}" for kind in ("bad", "good") for pair in pairs)}


@each_rule
def test_a_rule_names_chips_and_exceptions_that_exist(rule: Rule) -> None:
    """Chips are those of the package in its order, and the documented built-in has an exception class."""
    assert rule.chips == tuple(chip for chip in (*CHIPS, *TPU_CHIPS) if chip in rule.chips)
    assert rule.chips
    kind = error_class(rule)
    assert issubclass(kind, nkitools.KernelError)
    assert {*filter(None, rule.builtin.split(", "))} <= {base.__name__ for base in kind.__mro__}
    finding = Finding(rule.id, rule.slug, rule.severity, "message", "file.py", 1, rule.remedy)
    assert kind(finding).finding is finding


def test_ids_slugs_and_aliases_are_unique() -> None:
    """No name stands for two rules of a kind of kernel, and each family keeps to its own numbers."""
    for kind in ("NK", "PL", "CO"):
        names = [name for rule in DEFINED if rule.id.startswith(kind) for name in (rule.id, rule.slug, *rule.aliases)]
        assert sorted(names) == sorted(set(names))
    kinds = ("NK", "PL", "CO")
    assert list(RULES) == sorted((rule.id for rule in DEFINED), key=lambda name: (kinds.index(name[:2]), name))
    assert all(IDENTIFIER.fullmatch(each) for each in RULES)
    with pytest.raises(KeyError, match="NK999"):
        RULES["NK999"]


@each_rule
def test_a_rule_is_found_by_each_of_its_names(rule: Rule) -> None:
    """By id, slug and legacy code, in any case and with spaces around; a slug of NKI's too is NKI's."""
    shared = not rule.id.startswith("NK") and sum(each.slug == rule.slug for each in DEFINED) > 1
    for name in (rule.id, *(() if shared else (rule.slug,)), *rule.aliases):
        for written in (name, name.upper(), name.lower(), f" {name} "):
            assert find_rule(written) is RULES[rule.id]


def test_an_unknown_name_finds_nothing() -> None:
    """Neither an id that was never given nor a part of one is a rule."""
    assert [find_rule(name) for name in ("NK199", "NK10", "partition", "")] == [None] * 4


@pytest.mark.parametrize(("code", "expected"), LEGACY_CODES.items())
def test_a_legacy_error_code_finds_its_rule(code: str, expected: str) -> None:
    """The 36 codes of nki.errors lead to the rule that took their place, once that rule exists."""
    found = find_rule(code)
    if expected.startswith("("):
        assert found is None
        assert expected.strip("()") not in RULES  # it has come: give it this code as an alias
    else:
        assert found is not None
        assert found.id == expected


def test_aliases_are_codes_of_the_error_page() -> None:
    """An alias that AWS's page does not have would be a typing error."""
    assert {alias for rule in DEFINED for alias in rule.aliases} <= set(LEGACY_CODES)


def test_every_id_in_the_code_is_in_the_catalogue() -> None:
    """What is reported can be explained."""
    assert {name: files for name, files in _named_in_code().items() if name not in RULES} == {}


def test_every_rule_is_reported_by_some_code() -> None:
    """The catalogue promises nothing that no code keeps."""
    assert sorted(set(RULES) - set(_named_in_code())) == []


@pytest.mark.process
def test_the_catalogue_is_light() -> None:
    """It names rules for every room, so it imports the standard library and itself only."""
    program = (
        "import sys, nkitools.rules.catalogue\n"
        "print([name for name in ('numpy', 'ml_dtypes', 'scipy', 'jax', 'click', 'rich') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert done.stdout.strip() == "[]"
