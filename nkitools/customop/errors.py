"""Errors before an operator runs."""

from __future__ import annotations

from nkitools.rules.shown_text import shown


class DamagedCall(Exception):
    """The error of a call whose description its operator has overwritten; the text says which part."""


class BuildError(Exception):
    """The error of a library that cannot be built or loaded, or whose process has been ended from outside.

    Its text says what is wrong. ``output``: all that the compiler has printed; '' if it is not the reason.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(shown(message))  # which quotes sources and names of files
        self.output = output

    def __reduce__(self) -> tuple[type[BuildError], tuple[str, str]]:
        return type(self), (str(self), self.output)
