"""From addresses in a library to the author's files and lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from nkitools.customop.errors import BuildError
from nkitools.customop.toolchain import find_compiler
from nkitools.platforms import APPLES_LINE_TOOL, LINE_TOOLS

_SECONDS = 60


@dataclass(frozen=True)
class Place:
    """A line of a source, and the function that it is in."""

    file: str
    line: int
    function: str = ""


class Symbols:
    """The places of one library, looked up once each."""

    def __init__(self, library: str, sources: Iterable[str]) -> None:
        self.library = library
        self.sources = {os.path.realpath(path): path for path in sources}
        self._frames: dict[int, list[Place]] = {}

    def author_place(self, addresses: Iterable[int]) -> Place | None:
        """Return the innermost place in the author's sources on a path of addresses; None if there is none.

        None also if the system has no tool that reads debug information (`LINE_TOOLS`).
        """
        wanted = list(addresses)
        self._look_up([address for address in wanted if address not in self._frames])
        for address in wanted:
            for place in self._frames.get(address, ()):
                known = self.sources.get(os.path.realpath(place.file))
                if known is not None and place.line > 0:
                    return Place(known, place.line, place.function)
        return None

    def warm(self, addresses: Iterable[int]) -> None:
        """Look up many addresses at once."""
        self._look_up([address for address in dict.fromkeys(addresses) if address not in self._frames])

    def _look_up(self, addresses: list[int]) -> None:
        if not addresses:
            return
        self._frames.update((address, []) for address in addresses)
        tool = _reader_of_debug_information()
        if tool is not None:
            self._with_addr2line(tool, addresses)
        elif shutil.which(APPLES_LINE_TOOL) is not None:
            self._with_atos(addresses)

    def _with_addr2line(self, tool: str, addresses: list[int]) -> None:
        command = [tool, "-e", self.library, "-a", "-f", "-i", "-C", *(hex(address) for address in addresses)]
        lines = iter(self._whole_names(_output(command)).splitlines())
        current: list[Place] = []
        for line in lines:
            if re.fullmatch("0x[0-9a-f]+", line):
                current = self._frames.setdefault(int(line, 16), [])
                continue
            found = re.match(r"(.*):(\d+)", next(lines, ""))
            if found is not None:
                current.append(Place(found[1].replace("\0", "\n"), int(found[2]), line.partition("(")[0]))

    def _whole_names(self, text: str) -> str:
        """Return text of a tool in which a source's name is in one line, the end of a line in the name being a zero."""
        for name in self.sources:
            text = text.replace(name, name.replace("\n", "\0")) if "\n" in name else text
        return text

    def _with_atos(self, addresses: list[int]) -> None:
        command = [
            APPLES_LINE_TOOL,
            "-o",
            self.library,
            "-l",
            "0x0",
            "-i",
            "-fullPath",
            *(hex(each) for each in addresses),
        ]
        blocks = _output(command).rstrip("\n").split("\n\n")
        for address, block in zip(addresses, blocks, strict=False):
            for line in block.splitlines():
                found = re.fullmatch(r"(.*) \(in .*\) \((.*):(\d+)\)", line)
                if found is not None:
                    self._frames[address].append(Place(found[2], int(found[3]), found[1].partition("(")[0]))


def _reader_of_debug_information() -> str | None:
    """Return the path of addr2line: one on the path, or the one beside the compiler's own file."""
    return _on_path(None) or _on_path(_folder_of_the_compiler())


def _on_path(path: str | None) -> str | None:
    return next((found for name in LINE_TOOLS if (found := shutil.which(name, path=path))), None)


def _folder_of_the_compiler() -> str:
    try:
        return os.path.dirname(os.path.realpath(find_compiler().path))
    except BuildError:  # the library is from the cache
        return ""


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
