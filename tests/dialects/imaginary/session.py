"""Answers of kernels, lint and documents under a table of versions with NKI 0.99, as JSON: see the test beside it."""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nkitools.facts import versions

versions.FILES += (str(Path(__file__).with_name("versions.tsv")),)  # before anything has read the table

import numpy as np  # noqa: E402

import nkitools  # noqa: E402
from docs.generate_coverage import coverage_page  # noqa: E402
from nkitools.dialects.version_forms import signature_in  # noqa: E402
from nkitools.facts import options  # noqa: E402
from nkitools.issue.element_maps import made  # noqa: E402
from nkitools.issue.element_rules import SAME  # noqa: E402
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction  # noqa: E402
from nkitools.lint.engine import lint  # noqa: E402
from nkitools.rules.finding import KernelError  # noqa: E402
from nkitools.suggestions.lint_interface import Dialects  # noqa: E402


@instruction
def double(check: Check, dst: Dst, src: Src, name: Any = None) -> Plan:
    """``dst = 2 * src``."""
    return Plan(
        "vector", 1.0, lambda destination, source: np.multiply(source, 2, out=destination), made(dst={"src": SAME})
    )


LINTED = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    t = nl.load(x)
    nisa.double(t, t)
    nisa.tensor_copy(t, t, engine=nisa.engine.vector)
    nisa.max8(t, t)
    for i in nl.dynamic_range(2):
        nl.softmax(t, dtype=nl.float32)
    return t
"""


def said(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the rule, message and remedy of the finding that it raises."""
    try:
        return call()
    except KernelError as error:
        return [error.finding.rule, error.finding.message, error.finding.remedy]


def run(kernel: Callable[..., Any], version: str | None) -> Any:
    """Return the first row of a kernel's output under a version, or what it is refused with."""
    x = np.arange(1, 513, dtype=np.float32).reshape(128, 4)
    return said(lambda: nkitools.simulate(kernel, x, nki_version=version, chip="trn3").outputs[0].tolist())


def linted(version: str) -> list[str]:
    """Return what lint says of a file under a version."""
    with tempfile.TemporaryDirectory() as folder, options.override(nki_version=version):
        path = Path(folder, "kernel.py")
        path.write_text(LINTED)
        report = lint([path], interface=Dialects())
    return [f"{each.line} {each.rule} {each.message}" for each in report.findings]


def made_kernels(version: Callable[[], str]) -> tuple[Callable[..., Any], ...]:
    """Return kernels that differ between versions, made once the stand-in is there; ``version`` returns today's."""
    import nki.isa as nisa
    import nki.language as nl

    imported = nisa.double

    def loaded(x: Any) -> Any:
        tile = nl.ndarray(x.shape, x.dtype, nl.sbuf)
        nisa.dma_copy(tile, x)
        return tile

    def stored(tile: Any) -> Any:
        out = nl.ndarray(tile.shape, tile.dtype, nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    def doubled(x: Any) -> Any:
        tile = loaded(x)
        nisa.double(tile, tile)
        return stored(tile)

    def doubled_by_name(x: Any) -> Any:
        tile = loaded(x)
        imported(tile, tile)
        return stored(tile)

    def copied(x: Any) -> Any:
        tile = loaded(x)
        other = nl.ndarray(tile.shape, tile.dtype, nl.sbuf)
        nisa.tensor_copy(other, tile, engine=nisa.engine.vector)
        return stored(other)

    def copied_by_position(x: Any) -> Any:
        tile = loaded(x)
        other = nl.ndarray(tile.shape, tile.dtype, nl.sbuf)
        nisa.tensor_copy(other, tile, *(("a name",) if version() == "0.6" else (nisa.engine.vector, "a name")))
        return stored(other)

    def reduced(x: Any) -> Any:
        tile = loaded(x)
        total = nl.ndarray((128, 1), tile.dtype, nl.sbuf)
        nisa.tensor_reduce(total, nl.add, tile, 1)
        return stored(total)

    def softmaxed(x: Any) -> Any:
        return stored(nl.softmax(loaded(x), dtype=nl.float32))

    def largest(x: Any) -> Any:
        tile = nl.ndarray((128, 8), x.dtype, nl.sbuf)
        nisa.memset(tile, 1.0)
        found = nl.ndarray((128, 8), tile.dtype, nl.sbuf)
        nisa.max8(found, tile)
        return stored(found)

    def ninth(x: Any) -> Any:
        return stored(nl.copy(loaded(x), dtype=nl.float9))

    return (doubled, doubled_by_name, copied, copied_by_position, reduced, softmaxed, largest, ninth)


def outcome() -> dict[str, Any]:
    """Return everything that the test asks."""
    nkitools.install_stand_in("builtin")
    import nki.isa as nisa
    import nki.language as nl

    version, imported = "", nisa.double
    kernels = made_kernels(lambda: version)
    results: dict[str, Any] = {}
    for version in ("0.6", "0.99", "auto"):
        results[version] = {kernel.__name__: run(kernel, version) for kernel in kernels}
        with options.override(nki_version=version):
            results[version]["names"] = sorted(set(nisa.__all__) & {"double", "max8", "topk"})
            results[version]["has"] = [hasattr(nisa, "double"), hasattr(nisa, "max8"), hasattr(nl, "float9")]
            results[version]["imported"] = said(lambda: __import__("nki.isa", fromlist=["double"]).double is imported)
            namespace: dict[str, Any] = {}
            exec("from nki.isa import *", namespace)
            results[version]["starred"] = sorted(set(namespace) & {"double", "max8", "topk"})
        functions = (nisa.tensor_copy, nisa.tensor_reduce, nl.softmax)
        results[version]["signatures"] = [str(signature_in(each, versions.language_of(version))) for each in functions]
        results[version]["lint"] = linted(version)
    with suppress(ValueError):
        nkitools.simulate(lambda: None, nki_version="0.98")
    largest = next(kernel for kernel in kernels if kernel.__name__ == "largest")
    run_of_auto = nkitools.simulate(largest, np.ones((128, 8), np.float32), nki_version="auto", chip="trn3")
    results["findings"] = [[each.rule, each.severity, each.message] for each in run_of_auto.findings]
    results["settings"] = run_of_auto.settings["nki_version"]
    results["choices"] = options.OPTIONS["nki_version"].choices
    results["page"] = [line for line in coverage_page().splitlines() if "0.99" in line]
    results["help"] = str(inspect.signature(nisa.tensor_copy))
    return results


if __name__ == "__main__":
    import tests.dialects.imaginary.session as this  # the table names the module, which must not be there twice

    print(json.dumps(this.outcome()))
