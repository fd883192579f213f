"""``nkitools demo``: the example kernels of the three worlds, a finding, a print and a page, in a minute."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import ArrayCommand

if TYPE_CHECKING:
    from types import ModuleType

    from nkitools.record.run import Run

_SEED = 0
_WIDTH = 29  # characters of the arguments' shapes

_BROKEN = Path(__file__).with_name("demo_mistake.txt")


@click.command("demo", short_help="Show the example kernels, a finding, a print and a page.", cls=ArrayCommand)
@click.option("--all", "shows_all", is_flag=True, help="Show every example, also those much like another one.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the page of a run goes.  [default: nkitools-demo.html in the temporary directory]",
)
@click.pass_context
def show_examples(context: click.Context, shows_all: bool, page: Path | None) -> None:
    """Run the example kernels in simulation, and show findings, times and a page.

    Each is compared with a reference in NumPy: the error is the largest difference divided by the largest value of the
    reference. Times are estimates for each chip. Without JAX or a C++ compiler their examples are left out. Exit code:
    1 if the error of an example is greater than its limit, else 0.
    """
    from nkitools.targets.imports import stand_in

    with stand_in("always"):
        show = _Show(_gallery(), shows_all)
        for line in show.lines(page or Path(tempfile.gettempdir()) / "nkitools-demo.html"):
            click.echo(line)
    context.exit(int(show.has_failed))


def _gallery() -> ModuleType:
    """Return the list of examples: that of the package, or of the repository around it."""
    if find_spec("nkitools.examples") is not None:
        from nkitools.examples.kernels import gallery as packed  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return packed  # type: ignore[no-any-return, unused-ignore]
    root = str(Path(__file__).parents[2])
    if root not in sys.path:
        sys.path.append(root)
    from kernels import gallery

    return gallery


class _Show:
    """Makes the lines of the show; ``has_failed``: an example disagreed with its reference."""

    def __init__(self, gallery: ModuleType, shows_all: bool) -> None:
        self.gallery = gallery
        self.shows_all = shows_all
        self.has_failed = False
        self.printing: Run | None = None
        self.chips = tuple(dict.fromkeys(chip for each in gallery.NKI for chip in each.chips))

    def lines(self, page: Path) -> Iterator[str]:
        """Yield all that is shown."""
        chips = "".join(f"{each:>8}" for each in self.chips)
        yield f"{'NKI kernels, simulated':22}{'arguments':>{_WIDTH - 2}}    error{chips}"
        for example in self._chosen(self.gallery.NKI):
            yield self._nki(example)
        yield "the legacy dialect, neuronxcc.nki"
        for example in self._chosen(self.gallery.LEGACY):
            yield self._nki(example)
        yield from self._pallas()
        yield from self._operators()
        yield from self._prints()
        yield from _mistake()
        yield from self._page(page)
        yield from _next()

    def _chosen(self, examples: Sequence[Any]) -> list[Any]:
        return [each for each in examples if each.is_first or self.shows_all]

    def _line(self, example: Any, args: Sequence[Any], outputs: Any, rest: str) -> str:
        """Return the line of an example whose outputs are there."""
        ranks = args if example.ranks else (args,)
        expected = example.reference(*args, **example.keywords)
        error: float = self.gallery.relative_error(outputs, expected)
        wrong: bool = error > example.within
        self.has_failed |= wrong
        shown = "exact" if error == 0 else f"{error:.0e}"
        name = f"{example.name} x{example.ranks} ranks" if example.ranks else example.name
        return f"  {name:26.26}{_shapes(ranks[0]):>{_WIDTH - 6}.{_WIDTH - 6}}{shown:>9}{rest}" + wrong * "  DISAGREES"

    def _nki(self, example: Any) -> str:
        from nkitools.launch.simulate import simulate

        args = example.arguments(self._random())
        settings = {"ranks": example.ranks} if example.ranks else {}
        times, outputs = [], None
        for chip in self.chips:
            if chip not in example.chips:
                times.append(f"{'-':>8}")
                continue
            run = simulate(example.kernel, *args, chip=chip, **settings, **example.keywords)
            outputs = run.outputs
            times.append(f"{run.estimate().latency_us:>5.0f} us")
            if run.prints and self.printing is None:
                self.printing = run
        return self._line(example, args, outputs, "".join(times))

    def _pallas(self) -> Iterator[str]:
        if find_spec("jax") is None:
            yield "Pallas kernels: JAX is not here; pip install 'nkitools[pallas]'"
            return
        import nkitools.pallas as pallas
        from nkitools.pallas.imports import jax_module

        with _on_the_host():
            jax_module()

        yield "Pallas kernels, interpreted as on a TPU"
        for example in self._chosen(self.gallery.PALLAS):
            args = example.arguments(self._random())
            run = pallas.check(example.kernel, *args, modes=("interpret", "lower"), rules="error")
            yield self._line(example, args, run.outputs, "   lowered for v5e")

    def _operators(self) -> Iterator[str]:
        from nkitools.customop.errors import BuildError

        sources = Path(str(self.gallery.__file__)).parents[1] / "cpp_ops"
        for example in self._chosen(self.gallery.OPERATORS):
            args = example.arguments(self._random())
            try:
                operator = operator_of(example, sources)
            except BuildError as error:
                yield f"custom C++ operators: {error}"
                return
            run = operator.run(*args, rules="error")
            if example is self.gallery.OPERATORS[0]:
                yield "custom C++ operators, on simulated GpSimd cores"
            cores = len(run.cores)
            yield self._line(example, args, run.outputs, f"   on {cores} core" + "s" * (cores > 1))

    def _prints(self) -> Iterator[str]:
        if self.printing is None:
            return
        from nkitools.report.prints import first_prints

        yield ""
        yield "A device print, as its kernel's line made it:"
        text = first_prints(self.printing.prints, 1, 5)[0]
        yield from (f"  {line[:78]}" for line in text.splitlines())

    def _page(self, path: Path) -> Iterator[str]:
        """Write the page of a run in which tiles were watched."""
        from nkitools.launch.simulate import simulate
        from nkitools.report.page.document import write_page

        example = next(each for each in self.gallery.NKI if each.name == "softmax")
        args = example.arguments(self._random())
        run = simulate(example.kernel, *args, watch="*")
        yield ""
        try:
            write_page(run, path, example.reference(*args))
        except OSError as error:
            yield f"No page could be written into {path}: {error.strerror}"
            return
        yield f"A run of softmax, turn by turn and tile by tile: open {path}"

    def _random(self) -> Any:
        import numpy as np

        return np.random.default_rng(_SEED)


def operator_of(example: Any, sources: Path) -> Any:
    """Return the custom operator of an example, built; its folder lies in that of all sources."""
    from nkitools.customop import load

    place, _, name = example.place.partition(":")
    folder = sources / place
    kernels = [each for each in sorted(folder.glob("*.cpp")) if each.name != "shape.cpp"]
    library = load(place.replace("/", "_"), kernels, [folder / "shape.cpp"], multicore=example.programs > 1)
    return getattr(library, name)


@contextmanager
def _on_the_host() -> Iterator[None]:
    """Let JAX, which is imported inside, look for no accelerator: looking for a TPU prints a page of warnings."""
    known = os.environ.get("JAX_PLATFORMS")
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        yield
    finally:
        if known is None:
            del os.environ["JAX_PLATFORMS"]
        else:
            os.environ["JAX_PLATFORMS"] = known


def _shapes(args: Sequence[Any]) -> str:
    """Return the shapes of arguments, equal ones counted."""
    import numpy as np

    shapes = [str(list(np.shape(each))).replace(" ", "") for each in args if np.ndim(each)]
    parts: list[str] = []
    for shape in dict.fromkeys(shapes):
        count = shapes.count(shape)
        parts.append(f"{count}x{shape}" if count > 1 else shape)
    return " ".join(parts)


def mistaken_run(folder: Path) -> Run:
    """Return the run of a kernel that forgets its last tile; its source goes into a folder."""
    import numpy as np

    from nkitools.launch.simulate import simulate

    file = folder / "doubled.py"
    text = _BROKEN.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "doubled"}
    exec(compile(text, str(file), "exec"), names)
    return simulate(names["doubled"], np.ones((300, 64), np.float32), rules="report")


def _mistake() -> Iterator[str]:
    """Yield the finding of a kernel that forgets its last tile."""
    from nkitools.report.pictures import shows_blocks
    from nkitools.report.run_counts import tally_of

    with tempfile.TemporaryDirectory() as folder:
        run = mistaken_run(Path(folder))
        yield ""
        yield "A kernel with a mistake: 300 rows, and a loop over `x.shape[0] // 128` tiles:"
        for finding in tally_of([run], folder).ranked():
            yield from (f"  {line}" for line in finding.lines(blocks=shows_blocks(sys.stdout)))


def _next() -> Iterator[str]:
    yield ""
    yield "Next:"
    yield "  nkitools estimate FILE::KERNEL   how long it takes on a chip, and which line is why"
    yield "  nkitools lint FILE               what can be said without running it"
    yield "  nkitools explain NK403           why a rule exists, and where that is written"
    yield "  pytest -m sim                    your tests with the fixture `run_kernel`, in simulation"
    yield "  nkitools doctor                  what this machine can do"
