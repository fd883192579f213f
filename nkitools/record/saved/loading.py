"""Saved runs read again; how a file is laid out says `nkitools.record.saved.saving`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any, TypeVar
from zipfile import ZIP_STORED, ZipFile

from nkitools.comparison.rule import Rule
from nkitools.record.expected_outputs import Reference
from nkitools.record.kept_layouts import layouts_in_use
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints
from nkitools.record.run_contents import RunContents
from nkitools.record.saved.decoding import MOST_BYTES, Reader
from nkitools.record.saved.packing import SavedRecord
from nkitools.record.saved.saving import ARRAYS, FORMAT, JSON, VERSION
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding, error_of

_Run = TypeVar("_Run", bound=RunContents)


class SavedRunError(ValueError):
    """Raised for a file or a text that is no saved run, is cut off or damaged, comes from a later version, or has more
    bytes of arrays than the caller allows.
    """


class SavedError(Exception):
    """A stand-in for the exception that ended a saved run: its class has the original's name, and it has its text.

    ``finding``: the finding that the original carried, None if it was no rule's.
    """

    finding: Finding | None = None


def run_of_file(content: bytes, kind: type[_Run], most_bytes: int = MOST_BYTES) -> _Run:
    """Return the run of class ``kind`` in a file's content; its arrays take at most ``most_bytes``."""
    if not content.startswith(b"PK"):
        return run_from_json(content, kind, Reader(most=most_bytes))  # of version 1
    try:
        with ZipFile(BytesIO(content)) as file:
            if not {JSON, ARRAYS} <= set(file.namelist()):
                raise SavedRunError(f"this is a zip, but no saved run of nkitools (those have {JSON} and {ARRAYS})")
            reader = Reader(most=most_bytes)
            text = _member(file, JSON)
            reader.beside = _bytes_of(_member(file, ARRAYS))
    except SavedRunError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        raise SavedRunError(
            f"a saved run that is cut off or damaged (of it {len(content):,} bytes are there): {_said(error)}"
        ) from error
    return run_from_json(text, kind, reader)


def _member(file: ZipFile, name: str) -> bytes:
    """Return a member of a zip. Compressed members are refused, so that no small file becomes a large one."""
    member = file.getinfo(name)
    if member.compress_type != ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    return file.read(member)


def _bytes_of(member: bytes) -> memoryview:
    """Return the bytes after the header of a uint8 array in NumPy's format, version 1.0."""
    return memoryview(member)[10 + int.from_bytes(member[8:10], "little") :]


def run_from_json(text: str | bytes, kind: type[_Run], reader: Reader | None = None) -> _Run:
    """Return the run of class ``kind`` that is ``text``; a ``reader`` has the bytes of arrays that stand beside it."""
    plain = _parsed(text)
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise SavedRunError("this is JSON, but no saved run of nkitools (those begin with its format)")
    found = plain.get("version")
    if not isinstance(found, int) or found < 1:
        raise SavedRunError(f"a saved run of version {found!r}; versions are numbers from 1 on")
    if found > VERSION:
        raise SavedRunError(
            f"a saved run of version {found}, made by nkitools {plain.get('made_by')}; this nkitools reads up to "
            f"version {VERSION}. Install a later one, or save the run again with this."
        )
    try:
        with layouts_in_use():
            return _run(plain, kind, reader or Reader())
    except Exception as error:  # whatever a damaged file leads to
        raise SavedRunError(f"a saved run that is damaged: {_said(error)}") from error


def _said(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _parsed(text: str | bytes) -> Any:
    start = text[:64].lstrip() if isinstance(text, str) else text[:64].lstrip().decode("latin-1")
    is_ours = start.startswith(f'{{"format":"{FORMAT}"')
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if not is_ours:
            raise SavedRunError("this is no saved run of nkitools, which are zips or JSON") from error
        size = f"{len(text):,} bytes"
        raise SavedRunError(f"a saved run that is cut off or damaged (of it {size} are there): {error}") from error


def _run(plain: Mapping[str, Any], kind: type[_Run], reader: Reader) -> _Run:
    findings = reader.field(list[Finding], plain["findings"])
    allowed = [(reader.fields(Finding, each["finding"]), str(each["reason"])) for each in plain["allowed"]]
    judged = [*findings, *(finding for finding, _ in allowed)]
    records = tuple(SavedRecord(each, reader) for each in plain["records"])
    prints = Prints(reader.field(list[Print], plain["prints"]))
    for record in records:
        record.prints = prints
    reference = plain["reference"]
    run = kind(
        str(plain["kernel"]),
        str(plain["target"]),
        str(plain["chip"]),
        str(plain["precision"]),
        outputs=reader.value(plain["outputs"]),
        prints=prints,
        findings=findings,
        expected=[judged[place] for place in plain["expected"]],
        error=_error(plain["error"], findings, reader),
        record=records[0] if records else None,
        records=records if plain["ranks"] else (),
        set_aside=allowed,
        settings=dict(plain["settings"]),
        peak_bytes=int(plain.get("peak_bytes", 0)),  # runs saved before version 0.2 have none
        kept_call=plain.get("call"),  # likewise
        kept_sources={str(file): str(text) for file, text in plain["sources"].items()},
        reference=reference
        and Reference(
            reader.value(reference["values"]),
            reference["rtol"],
            reference["atol"],
            reference.get("equal_nan", True),
            rules=tuple(Rule(*each) for each in reference.get("rules", ())),
        ),
    )
    for name, value in plain["more"].items():
        if not hasattr(run, name):
            setattr(run, name, reader.value(value))
    return run


def _error(plain: Mapping[str, Any] | None, findings: list[Finding], reader: Reader) -> BaseException | None:
    """Return a `KernelError` if the run ended with one, else a stand-in with the class's name."""
    if plain is None:
        return None
    name, text, place = str(plain["type"]), str(plain["text"]), plain["finding"]
    finding = findings[place] if isinstance(place, int) else place and reader.fields(Finding, place)
    if finding is not None and finding.rule in RULES:
        error = error_of(finding)
        if (type(error).__name__, str(error)) == (name, text):
            return error
    stand_in: BaseException = type(name, (SavedError,), {"finding": finding})(text)
    return stand_in
