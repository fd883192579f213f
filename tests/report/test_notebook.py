"""What a notebook shows: prints and findings as tables, cells by their names, short reprs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.report import notebook
from nkitools.rules.finding import Finding
from nkitools.rules.shown_text import shown_file


class Formatter(dict[type, Callable[[Any], Any]]):
    """What IPython has for a kind of output: a function by class."""

    def for_type(self, kind: type, function: Callable[[Any], Any]) -> None:
        self[kind] = function


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A shell like IPython's, in which this file is the cell 3."""
    compiler = SimpleNamespace(format_code_name=lambda file: ("Cell", "In[3]") if file == __file__ else None)
    formatter = SimpleNamespace(formatters={"text/html": Formatter()})
    found = SimpleNamespace(compile=compiler, display_formatter=formatter)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: found))
    notebook.attach(found)
    yield found
    notebook.detach(found)


def kernel(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for m in range(2):
        tile = nl.load(x[0 : 4 - 0 * m, :])
        nl.device_print("<tile>", tile)
        nisa.dma_copy(dst=out, src=nl.sqrt(tile))
    return out


X = -np.ones((4, 8), np.float32)


def test_prints_and_findings_are_tables(shell: Any) -> None:
    """Each has a row with its place, by the cell's name; texts are escaped; other lists stay as they are."""
    run = nkitools.simulate(kernel, X, rules="report")
    formats = shell.display_formatter.formatters["text/html"]
    prints = formats[type(run.prints)](run.prints)
    assert prints.count("&lt;tile&gt;") == 2
    assert "m=1, In[3]:" in prints
    findings = formats[list](run.findings)
    assert f"<code>In[3]:{run.findings[0].line}</code>" in findings
    assert findings.count("<tr>") == len(run.findings) + 1
    assert formats[Finding](run.findings[0]).count("<tr>") == 2
    assert formats[list]([1, 2]) is None
    assert formats[list]([]) is None
    assert run.findings[0].text().startswith("In[3]:")
    assert '"name":"In[3]"' in nkitools.page(run)


def test_after_it_lists_show_themselves(shell: Any) -> None:
    """What is unloaded leaves nothing; cells keep their names, which the notebook gives them."""
    notebook.detach(shell)
    assert shell.display_formatter.formatters["text/html"] == {}
    run = nkitools.simulate(kernel, X, rules="report")
    assert run.findings[0].text().startswith("In[3]:")


def test_reprs_are_short() -> None:
    """A run, its instructions and a finding say what they are in a line each."""
    run = nkitools.simulate(kernel, X, rules="report")
    first, second = run.findings[0], run.instructions[1]
    assert repr(run).startswith("<Run of kernel on trn2 (builtin): float32 [4, 8], ")
    assert len(repr(run).splitlines()) == 1
    assert repr(first).startswith(f"<Finding {first.rule} {first.severity} test_notebook.py:{first.line}")
    assert repr(second).startswith(f"<{second.name} ({second.engine}) test_notebook.py:{second.line} m=0: ")
    assert " from tile>" in repr(second)
    assert repr(run.instructions[0].operands[0]).endswith("float32 [4, 8]>")
    assert repr(run.instructions).startswith(
        f"<Instructions: {len(run.instructions)}\n  0: dma_copy at test_notebook.py"
    )


def test_an_estimate_and_a_slice_show_themselves(shell: Any) -> None:
    """As their texts, with the cell's name, and as one line each elsewhere."""
    run = nkitools.simulate(kernel, -X)
    estimate, why = run.estimate(), run.why(0, (0, 0))
    assert "In[3]:" in estimate._repr_html_()
    assert f"<pre>{run.kernel} on trn2: " in estimate._repr_html_()
    assert repr(estimate).startswith("<Estimate of kernel on trn2: ")
    assert len(repr(estimate)) < 100
    assert "out[0, 0] = 1" in why._repr_html_()
    assert "In[3]:" in why._repr_html_()
    assert repr(why).startswith("<Slice of out[0, 0]: ")


def test_cells_have_their_names_without_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is enough that IPython runs; files that are no cells, and sessions without a shell, keep their names."""
    compiler = SimpleNamespace(format_code_name=lambda file: ("Cell", "In[7]") if file == "/tmp/12.py" else None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=compiler)))
    assert (shown_file("/tmp/12.py"), shown_file("/tmp/13.py")) == ("In[7]", "/tmp/13.py")
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert shown_file("/tmp/12.py", whole=False) == "12.py"
