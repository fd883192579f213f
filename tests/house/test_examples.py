"""What the documentation shows is what happens: its code runs, and its output blocks are that code's output."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.processes import LEAN

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
TUTORIAL = DOCS / "tutorial" / "first-kernel.md"
SCRIPT = DOCS / "how-to" / "script.md"
SAVED_RUNS = DOCS / "how-to" / "saved-runs.md"
ESTIMATE = DOCS / "how-to" / "estimate.md"
WHY = DOCS / "how-to" / "why.md"
PAGE = DOCS / "how-to" / "page.md"
PRINTS = DOCS / "how-to" / "device-prints.md"
PRECISION = DOCS / "how-to" / "precision.md"
PALLAS = DOCS / "how-to" / "pallas.md"
README = REPOSITORY / "README.md"


def run(directory: Path, *command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``python command...`` in ``directory`` as a user would: with none of this session's settings."""
    theirs = ("PYTEST_", "NKITOOLS_", "NKI_", "NEURON_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


def run_pytest(directory: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run(directory, "-m", "pytest", "-m", "sim", "-p", "no:cacheprovider", *LEAN, *flags)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def assert_shows(output: str, block: str) -> None:
    """Every line of ``block`` stands in ``output``, in that order; a line `...` stands for lines left out."""
    rest = iter([line.rstrip() for line in output.splitlines()])
    for line in block.splitlines():
        if line.strip() != "...":
            assert line.rstrip() in rest, f"not in the output at this place: {line!r}\n{output}"


def test_the_examples_of_the_how_to_pages_pass(tmp_path: Path) -> None:
    """The example tests, copied into an empty directory, pass in one session; those of a missing extra are skipped."""
    shutil.copytree(DOCS / "how-to" / "example", tmp_path, dirs_exist_ok=True)
    done = run_pytest(tmp_path, "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "findings of passing tests" not in done.stdout, "an example that readers copy breaks a rule"
    for path in sorted((DOCS / "how-to" / "example").glob("test_*.py")):
        needed = re.findall(r'importorskip\("(\w+)"\)', path.read_text())
        if all(map(find_spec, needed)):
            assert re.search(rf"^{path.name}::.* PASSED", done.stdout, re.MULTILINE), path.name + done.stdout


def test_the_tutorial_is_refused_where_it_says_so(tmp_path: Path) -> None:
    """The tutorial's first kernel fails with the error that the page shows."""
    example = DOCS / "tutorial" / "example"
    shutil.copy(example / "row_sums_first.py", tmp_path / "row_sums.py")
    shutil.copy(example / "test_row_sums.py", tmp_path)
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert_shows(done.stdout, blocks(TUTORIAL, "text")[0])


def test_the_tutorial_ends_with_a_passing_test_and_its_prints(tmp_path: Path) -> None:
    """The mended kernel passes and prints what the page shows."""
    example = DOCS / "tutorial" / "example"
    for name in ("row_sums.py", "test_row_sums.py"):
        shutil.copy(example / name, tmp_path)
    done = run_pytest(tmp_path, "--nki-prints")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_shows(done.stdout, blocks(TUTORIAL, "text")[1])


def test_the_script_of_the_how_to_page_runs_as_shown(tmp_path: Path) -> None:
    """An unmodified script runs under the stand-in and ends with the summary that the page shows."""
    shutil.copy(DOCS / "how-to" / "example" / "double.py", tmp_path)
    done = run(tmp_path, "-m", "nkitools", "run", "double.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_shows(done.stdout + done.stderr, blocks(SCRIPT, "text")[0])


def test_the_comparison_of_the_how_to_page_is_as_shown(tmp_path: Path) -> None:
    """The commands of the page, in their order, and the differences that it shows."""
    shutil.copy(DOCS / "how-to" / "example" / "row_maxima.py", tmp_path)
    *saving, comparing = blocks(SAVED_RUNS, "sh")[1].splitlines()
    for command in saving:
        done = run(tmp_path, "-m", *command.split())
        assert done.returncode == 0, done.stdout + done.stderr
    done = run(tmp_path, "-m", *comparing.split())
    assert done.returncode == 1, done.stderr
    assert_shows(done.stdout, blocks(SAVED_RUNS, "text")[0])


def test_the_timeline_of_the_how_to_page_is_written(tmp_path: Path) -> None:
    """The command of the page makes the file."""
    pytest.importorskip("perfetto")
    shutil.copy(DOCS / "how-to" / "example" / "row_maxima.py", tmp_path)
    for command in (blocks(SAVED_RUNS, "sh")[0], blocks(SAVED_RUNS, "sh")[2].splitlines()[1]):
        done = run(tmp_path, "-m", *command.split())
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "before.pftrace").stat().st_size > 1000


def test_the_pages_of_the_how_to_page_are_written(tmp_path: Path) -> None:
    """A report directory gets pages and an index, a script and two saved runs get one, by the commands of the text."""
    for name in ("test_reference.py", "double.py"):
        shutil.copy(DOCS / "how-to" / "example" / name, tmp_path)
    for day in ("yesterday", "today"):
        run(tmp_path, "-m", "nkitools", "run", "--watch", "*", "--save", f"{day}.npz", "double.py")
    commands = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    assert [command.split()[0] for command in commands] == ["pytest", "nkitools", "nkitools", "nkitools"]
    for command in commands:
        done = run(tmp_path, "-m", *command.split())
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "report").glob("*.html"))) == 2
    assert (tmp_path / "double.html").is_file()
    assert (tmp_path / "difference.html").is_file()


def test_the_prints_of_the_how_to_page_are_as_shown(tmp_path: Path) -> None:
    """The watch, its complaint, the prints under pytest, and a tensor at a breakpoint."""
    shutil.copytree(DOCS / "how-to" / "example", tmp_path, dirs_exist_ok=True)
    watched, complaint, live, tensor = blocks(PRINTS, "text")
    done = run(tmp_path, "-m", "nkitools", "run", "--watch", "exponentials", "run_softmax.py")
    assert_shows(done.stdout + done.stderr, watched)
    done = run(tmp_path, "-m", "nkitools", "run", "--watch", "exponential", "run_softmax.py")
    assert_shows(done.stderr, complaint)
    done = run_pytest(tmp_path, "--nki-prints", "test_device_prints.py::test_whole_structures")
    assert_shows(done.stdout, live)
    source = (tmp_path / "softmax.py").read_text().replace("nl.device_print(", "breakpoint(); nl.device_print(")
    (tmp_path / "softmax.py").write_text(source)
    done = run(tmp_path, "-m", "nkitools", "run", "run_softmax.py", typed="sums\nc\nc\n")
    assert_shows(done.stdout.replace("(Pdb) ", ""), tensor)


def test_the_split_of_the_how_to_page_is_as_shown(tmp_path: Path) -> None:
    """The script prints the table that the page shows."""
    shutil.copy(DOCS / "how-to" / "example" / "row_sums_split.py", tmp_path)
    done = run(tmp_path, "-m", "nkitools", "run", "row_sums_split.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks(PRECISION, "text")[0]


def test_the_check_of_the_how_to_page_finds_what_is_shown(tmp_path: Path) -> None:
    """The script prints the findings that the page shows, with the real compiler and without it."""
    pytest.importorskip("jax")
    for name in ("column_sums.py", "check_column_sums.py"):
        shutil.copy(DOCS / "how-to" / "example" / name, tmp_path)
    done = run(tmp_path, "check_column_sums.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks(PALLAS, "text")[0]


def test_the_test_in_the_readme_passes_and_fails_as_shown(tmp_path: Path) -> None:
    """As it is, under another name; given the 256 rows that the README speaks of, with the error that it shows."""
    test = blocks(README, "python")[0]
    (tmp_path / "test_as_it_is.py").write_text(test)
    (tmp_path / "test_double.py").write_text(test.replace("(128, 64)", "(256, 64)"))
    done = run_pytest(tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    shown = blocks(README, "text")[0].replace("nki: 1 kernel run", "nki: 2 kernels run")
    assert_shows(done.stdout, shown)


def test_the_origin_of_a_nan_and_the_lines_to_migrate_are_as_shown(tmp_path: Path) -> None:
    """The script of the first page, and the old kernel of the second."""
    for name in ("logarithms.py", "old_dialect.py"):
        shutil.copy(DOCS / "how-to" / "example" / name, tmp_path)
    done = run(tmp_path, "-m", "nkitools", "run", "logarithms.py")
    assert_shows(done.stdout + done.stderr, blocks(DOCS / "how-to" / "find-a-nan.md", "text")[0])
    done = run(tmp_path, "-m", "nkitools", "lint", "--migrate", "old_dialect.py")
    assert done.returncode == 1
    assert_shows(done.stdout, blocks(DOCS / "how-to" / "migrate.md", "text")[0])


def test_estimates_and_slices_are_as_shown(tmp_path: Path) -> None:
    """The page of a kernel's time, its variants, and what a wrong element was made of."""
    kernel, script = blocks(ESTIMATE, "python")
    (tmp_path / "matmul.py").write_text(kernel)
    page, ranked = blocks(ESTIMATE, "text")
    done = run(tmp_path, "-m", "nkitools", "estimate", "matmul.py::product")
    assert done.returncode == 0, done.stderr
    assert_shows(done.stdout, page)
    (tmp_path / "script.py").write_text(script)
    assert_shows(run(tmp_path, "script.py").stdout, ranked)
    (tmp_path / "wrong.py").write_text(blocks(WHY, "python")[0])
    assert_shows(run(tmp_path, "wrong.py").stdout, blocks(WHY, "text")[0])
    saved = run(tmp_path, "-m", "nkitools", "run", "--watch", "*", "--save", "run.npz", "wrong.py")
    assert saved.returncode == 0, saved.stderr
    told = run(tmp_path, "-m", "nkitools", "why", "run.npz", "--element", "3,400")
    assert_shows(told.stdout, "...\n    a sum of 128 terms, the largest inf (number 5), 1 (number 0), 1 (number 1)")


def test_the_cells_of_the_notebook_page_run(tmp_path: Path) -> None:
    """In their order, as files of one session; the last value is a run with a page."""
    cells = blocks(DOCS / "how-to" / "notebook.md", "python")
    session = "from pathlib import Path\n\nnames = {}\nfor path in sorted(Path().glob('cell*.py')):\n"
    session += "    exec(compile(path.read_text(), str(path.absolute()), 'exec'), names)\n"
    for number, cell in enumerate(cells):
        (tmp_path / f"cell{number}.py").write_text(cell)
    (tmp_path / "session.py").write_text(session + "assert '<iframe' in names['run']._repr_html_()\n")
    done = run(tmp_path, "session.py")
    assert done.returncode == 0, done.stderr
