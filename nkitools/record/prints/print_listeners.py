"""Receivers of device prints: `capture_prints` keeps the prints of every run inside a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, SupportsIndex, overload

from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import PrintFilters, Prints, joined
from nkitools.record.run_listeners import collect_runs

if TYPE_CHECKING:
    from nkitools.record.run import Run


class LivePrints(PrintFilters, Sequence[Print]):
    """The device prints of some runs so far, one run after the other: a view that grows while the runs print.

    It can do what `Prints` can: index, slice, ``prints["preds"]``, ``where``, ``program``, ``rank``, ``at``,
    ``values``, equality.
    """

    name = "prints"

    def __init__(self, runs: Callable[[], Iterable[Run]]) -> None:
        self._runs = runs
        self._kept: Prints | None = None

    @property
    def now(self) -> Prints:
        """The prints so far, as a sequence of their own."""
        return joined(run.prints for run in self._runs()) if self._kept is None else self._kept

    def end(self) -> None:
        """Keep the prints so far, and let go of the runs."""
        self._kept = self.now

    def __call__(self, prefix: str | None = None) -> Prints:
        """Return the prints so far, with ``prefix`` only those printed under it."""
        return self.now if prefix is None else self.now[prefix]

    @overload
    def __getitem__(self, which: SupportsIndex) -> Print: ...
    @overload
    def __getitem__(self, which: slice | str) -> Prints: ...
    def __getitem__(self, which: SupportsIndex | slice | str) -> Print | Prints:
        return self.now[which]

    def __len__(self) -> int:
        return sum(len(run.prints) for run in self._runs()) if self._kept is None else len(self._kept)

    def __iter__(self) -> Iterator[Print]:
        return iter(self.now)

    def __eq__(self, other: object) -> bool:
        return self.now == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # its content changes

    def __repr__(self) -> str:
        return repr(self.now).replace("Prints", self.name, 1)


@contextmanager
def capture_prints() -> Iterator[LivePrints]:
    """Capture the device prints of every run that starts inside a block, also of a run that fails.

    ``with nkitools.capture_prints() as prints:`` gives a sequence with the filters of `Prints`, one run after the
    other. It grows with each print, and stays as it is when the block ends. Nested blocks each get all prints. Prints
    are still written to stdout where they are without the block.
    """
    with collect_runs() as runs:
        prints = LivePrints(lambda: runs)
        try:
            yield prints
        finally:
            prints.end()
