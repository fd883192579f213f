"""Known faults: codes are explained, a log leads to its cause, versions and chips to what they get wrong."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from docs.generate_known_faults import known_faults_page
from nkitools.facts.known_faults import Fault, codes_in, fault_named, faults, faults_of_versions, is_terminal
from nkitools.facts.supported_versions import release
from nkitools.pytest_plugin.failure_codes import explained
from nkitools.rules.catalogue import rule_named
from tests.fakes import machines

# Logs as people have pasted them in public, in other words and with other names; the code that names the cause.
LOGS = (
    # a kernel that indexes rows beyond its table
    "TDRV:exec_consume_infer_status: (FATAL-RT-UNDEFINED-STATE) inference failed on nd0:nc0\n"
    "NRT:nrt_infer_request failed\nnrtpy.NrtError: NRT Error NRT_EXEC_OOB(1006): execution failed",
    # the tests after a hang
    "nrt_execute status=5\nE   RuntimeError: launch failed, NRT_EXEC_UNIT_UNRECOVERABLE (101)",
    # a legacy kernel that the tensoriser does not lower
    "ERROR: [TEN404] Internal tensorizer error: TensorInitialization: assertion\n"
    "[F134] neuronx-cc terminated abnormally\nRuntimeError: Compilation failed for scale",
    # too much in SBUF at once
    "[GCA035] Instruction I-77-0 couldn't be allocated in SB\nMemory Location Accessed: lhs, 262144 bytes\n"
    "Subcommand returned with exitcode=70",
    # a graph of an unrolled loop
    "HLO to NEFF compilation failed for op 'scale'\n[ERROR] [NCC_EBVF030] Instructions generated exceed the limit",
    # degrees that do not fit
    "neuronx-cc: [USER_ERROR] [NCC_EVRF066] NKI kernel was configured with LNC 1, compiler with 2",
    # the compiler was killed by the operating system
    "Compiler status ERROR\n[F137] neuronx-cc was forcibly killed: insufficient system memory",
    # AWS's library is not on the path
    "ImportError: libnrt.so.1: cannot open shared object file: No such file or directory",
    # cores of another process
    "NRT:nrt_allocate_neuron_cores NeuronCore(s) not available - Requested:2 Available:0\n"
    "RuntimeError: Failed to initialize Neuron Runtime: status code 4",
    # an illegal access pattern, at the author's line
    "[INTERNAL_ERROR] [NCC_INLA001] Unhandled exception: Invalid access of 130 partitions starting at partition 0\n"
    'Source Kernel "mine.scale", line 12\nexited with code 70',
)
CAUSES = (
    "NRT_EXEC_OOB", "NRT_TIMEOUT", "TEN404", "GCA035", "NCC_EBVF030", "NCC_EVRF066", "F137",
    "libnrt.so.1: cannot open shared object file", "NeuronCore(s) not available - Requested:x Available:y",
    "NCC_INLA001",
)  # fmt: skip


CODES = tuple(fault for fault in faults() if fault.is_code)
OTHERS = tuple(fault for fault in faults() if not fault.is_code)
KINDS = {"wrong result", "refusal", "crash", "hang", "slow", "support", "AWS's simulator"}


def test_every_row_is_explained() -> None:
    """By its name, a status by its number too; each says what it means, and its rules are rules of nkitools."""
    assert (len(CODES), len(OTHERS)) == (172, 77)
    for fault in faults():
        assert fault_named(fault.name) == fault
        assert fault.meaning
        assert not fault.number or fault_named(fault.number) == fault
        assert [rule_named(rule).id for rule in fault.rules] == list(fault.rules)
        assert set(fault.chips) <= {"trn1", "inf2", "trn2", "trn3"}
        assert fault.package or not (fault.since or fault.below)
        assert not fault.below or release(fault.since) < release(fault.below)


def test_what_is_no_code_has_a_kind_and_a_public_place() -> None:
    """A page of AWS's, a thread, or a page of this project."""
    assert {fault.kind for fault in OTHERS} == KINDS
    for fault in OTHERS:
        assert fault.links, fault.name
        for place, link in fault.links.items():
            assert link.startswith("https://") or (Path(__file__).parents[2] / place).is_file(), place


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("NCC_IXGM002", "kernel[2]"),
        ("ICFG018", "upgrade to NKI 0.6"),
        ("NCC_IXLV002", "core_barrier"),
        ("NCC_ILLC059", "kernel[2]"),
        ("NCC_ITEN404", "7x7 convolution"),
        ("NCC_IMPR902", "shorter than a chunk"),
        ("NCC_EGCA111", "automatic and manual allocation"),
        ("NCC_IINAR001", "--optlevel 2"),
        ("aws-neuron/aws-neuron-sdk#1296", "nisa.tensor_scalar"),
        ("https://github.com/jax-ml/jax/issues/39744", "libtpu from 0.0.43"),
        ("NCC_IBIR999", "Codes of the same part: NCC_IBIR158"),
    ],
)
def test_an_answer_says_cause_versions_or_what_to_write(code: str, words: str) -> None:
    """A code of three to five letters behind its E or I, a thread by its number or its link, a code of known kin."""
    fault = fault_named(code)
    assert fault is not None
    assert words in fault.sentence()


def test_the_page_has_each_row_under_its_kind() -> None:
    """With the link of its source and the rules that find it."""
    page = known_faults_page()
    for fault in faults():
        row = f"| {fault.title} |".replace("<", "&lt;")
        section = page.partition(f"## {fault.kind[0].upper()}{fault.kind[1:]}\n")[2].partition("\n## ")[0]
        assert [line.startswith(row) for line in section.splitlines()].count(True) == 1, fault.name
    assert "[jax#39744](https://github.com/jax-ml/jax/issues/39744) | [PL303](rules.md#pl303-" in page


@pytest.mark.parametrize(("log", "cause"), list(zip(LOGS, CAUSES, strict=True)), ids=CAUSES)
def test_a_log_leads_to_its_cause(log: str, cause: str) -> None:
    """What names the cause comes before what only reports that something failed."""
    assert codes_in(log)[0].name == cause


@pytest.mark.parametrize(
    ("log", "ends"),
    [("nrt_execute status=101", True), ("NRT_EXEC_OOB (1006)", False), ("NRT_TIMEOUT", True), ("exit status 5", False)],
)
def test_statuses_that_end_a_process(log: str, ends: bool) -> None:
    """A time-out and a failed unit end it, an error of a kernel does not."""
    assert is_terminal(log) is ends


def test_forms_of_a_code() -> None:
    """With and without prefix and brackets; an unlisted one by its letter; what is no code is none."""
    assert fault_named("[ebvf030]") == fault_named("NCC_EBVF030")
    assert fault_named("NRT 1006") == fault_named("nrt_exec_oob") == fault_named("1006")
    unlisted = fault_named("NCC_IABC123")
    assert unlisted is not None
    assert unlisted.kind == "compiler, internal error"
    assert fault_named("NK103") is None
    assert codes_in("E   AssertionError: exit status 1, 1006 elements differ") == []


def of_versions(chip: str, **versions: str) -> list[Fault]:
    """What is known of versions of packages, whose names have _ for -, on a chip."""
    named = {package.replace("_", "-"): version for package, version in versions.items()}
    return [fault for fault, _ in faults_of_versions(chip, named.get)]


def test_known_faults_are_those_of_the_installed_versions() -> None:
    """By package, version and chip; of an unknown chip only what concerns all."""
    on_inf2 = of_versions("inf2", neuronx_cc="2.25.3371+a", torch_neuronx="2.14.3.0")
    assert {"legacy-kernels-no-longer-compile", "native-backend-on-trn1"} <= {fault.name for fault in on_inf2}
    on_trn2 = {fault.name for fault in of_versions("trn2", nki="0.2.0", neuronx_cc="2.24.5133")}
    assert {"NCC_IBIR229", "range-select-ignores-arguments", "NCC_IXLV002"} <= on_trn2
    assert on_trn2.isdisjoint({"activation-copy-with-bias", "activation-zeroes-registers", "copy-through-float32"})
    assert "activation-copy-with-bias" in {fault.name for fault in of_versions("trn1", nki="0.7.0")}
    assert "activation-copy-with-bias" not in {fault.name for fault in of_versions("", nki="0.7.0")}
    for version, is_concerned in (("0.0.42.1", False), ("0.0.43", True), ("0.0.52", True)):
        found = {fault.name for fault in of_versions("", libtpu=version)}
        assert ("unused-operand-of-pallas-call" in found) == is_concerned
    assert release("2.14.3.0+abc") == (2, 14, 3, 0)


def report_of(words: str) -> Any:
    """A report of a test that failed with these words."""
    return SimpleNamespace(longreprtext=words, sections=[])


def test_nki_on_a_chip_that_awss_pages_do_not_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From nki 0.3 on they name Trn2 and Trn3 alone: a failure on an Inf2 says so, that on a Trn2 does not."""
    assert {version: bool(of_pages("inf2", version)) for version in ("0.2.0", "0.3.0", "0.7.0")} == {
        "0.2.0": False,
        "0.3.0": True,
        "0.7.0": True,
    }
    assert [bool(of_pages(chip, "0.7.0")) for chip in ("trn1", "trn2", "trn3", "")] == [True, False, False, False]
    monkeypatch.syspath_prepend(str(machines.FAKES / "native"))
    for instance, is_said in (("Inf2", True), ("Trn2", False)):
        root = machines.neuron_root(tmp_path / instance, instance=instance)
        monkeypatch.setenv("NKITOOLS_SYSROOT", str(root))
        ((_, told),) = explained(report_of("nrt_execute status=1006 NRT_EXEC_OOB"))
        assert ("nki 0.7.0: AWS documents this version for Trn2 and Trn3 only" in told) == is_said
    assert explained(report_of("AssertionError: 1 != 2")) == []


def of_pages(chip: str, version: str) -> list[str]:
    """What is known of AWS's pages for a version of nki, on a chip."""
    return [fault.name for fault in of_versions(chip, nki=version) if "AWS documents" in fault.meaning]


def test_codes_that_runs_foresee_name_their_rules() -> None:
    """Operands of one instruction that do not fit end in NCC_IBIR229, which NK202 says before."""
    for code in ("NCC_IBIR229", "NCC_INLA001", "NCC_EGCA111"):
        fault = fault_named(code)
        assert fault is not None
        assert "NK202" in fault.rules
