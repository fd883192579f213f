"""Codes of AWS's compiler and runtime: each is explained, and a log leads to the code that names its cause."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nkitools.facts.supported_versions import release
from nkitools.pytest_plugin.failure_codes import explained
from nkitools.rules.catalogue import rule_named
from nkitools.targets.known_bugs import known_bugs
from nkitools.targets.neuron_codes import code_named, codes, codes_in, is_terminal
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


def test_every_code_is_explained() -> None:
    """By its name, and a status by its number too; each says what it means, and its rules are rules of nkitools."""
    assert len(codes()) == 141
    for code in codes():
        assert code_named(code.code) == code
        assert code.meaning
        assert code.kind
        assert not code.number or code_named(code.number) == code
        assert [rule_named(rule).id for rule in code.rules] == list(code.rules)


@pytest.mark.parametrize(("log", "cause"), list(zip(LOGS, CAUSES, strict=True)), ids=CAUSES)
def test_a_log_leads_to_its_cause(log: str, cause: str) -> None:
    """What names the cause comes before what only reports that something failed."""
    assert codes_in(log)[0].code == cause


@pytest.mark.parametrize(
    ("log", "ends"),
    [("nrt_execute status=101", True), ("NRT_EXEC_OOB (1006)", False), ("NRT_TIMEOUT", True), ("exit status 5", False)],
)
def test_statuses_that_end_a_process(log: str, ends: bool) -> None:
    """A time-out and a failed unit end it, an error of a kernel does not."""
    assert is_terminal(log) is ends


def test_forms_of_a_code() -> None:
    """With and without prefix and brackets; an unlisted one by its letter; what is no code is none."""
    assert code_named("[ebvf030]") == code_named("NCC_EBVF030")
    assert code_named("NRT 1006") == code_named("nrt_exec_oob") == code_named("1006")
    unlisted = code_named("NCC_IABC123")
    assert unlisted is not None
    assert unlisted.kind == "compiler, internal error"
    assert code_named("NK103") is None
    assert codes_in("E   AssertionError: exit status 1, 1006 elements differ") == []


def test_known_bugs_are_those_of_the_installed_versions() -> None:
    """By package, version and chip."""
    versions = {"neuronx-cc": "2.25.3371+a", "torch-neuronx": "2.14.3.0"}
    on_inf2 = [(bug.package, bug.what) for bug in known_bugs("inf2", versions.get)]
    assert ("neuronx-cc", "a kernel of neuronxcc.nki no longer compiles; the last SDK for that dialect is 2.29.1 "
            "(neuronx-cc 2.24)") in on_inf2  # fmt: skip
    assert any("Trn1 and Inf2 take torch-neuronx 2.9" in what for _, what in on_inf2)
    on_trn2 = [bug.what for bug in known_bugs("trn2", {"nki": "0.2.0", "neuronx-cc": "2.24.5133"}.get)]
    assert on_trn2 == ["an SBUF tensor may be widened beyond its partition (NCC_IBIR229)"]
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
    return [bug.what for bug in known_bugs(chip, {"nki": version}.get) if "AWS documents" in bug.what]
