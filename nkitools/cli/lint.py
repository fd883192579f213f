"""``nkitools lint``: the source rules, without running anything."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nkitools.cli.shared_options import format_option, version_option
from nkitools.cli.terminal import SEVERITY_STYLES, console, say
from nkitools.facts import options

if TYPE_CHECKING:
    from nkitools.lint.settings import Settings
    from nkitools.rules.finding import Finding

_FORMATS = ("text", "json", "sarif", "github")
_FAILING = ("error", "warning")


@click.command("lint", short_help="Check the sources of kernels without running them.")
@format_option(_FORMATS)
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules or families: NK601, NK6 (also a,b).")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these, and not those that the settings ignore.")
@click.option(
    "--dialect",
    type=click.Choice(["auto", "modern", "legacy"]),
    help="The dialect of files whose imports do not show it; modern refuses neuronxcc.nki.  [default: auto]",
)
@version_option
@click.option("--diff", "base", metavar="BASE", help="Show only findings at lines that have changed since this commit.")
@click.option("--migrate", is_flag=True, help="List instead the lines that the newest NKI changes, with what to write.")
@click.option("--fix", is_flag=True, help="First rewrite what the newest NKI changes: ranges, loops, names.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.pass_context
def lint_paths(
    context: click.Context,
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    dialect: str | None,
    base: str | None,
    migrate: bool,
    fix: bool,
    paths: tuple[Path, ...],
) -> None:
    """Check the sources of the kernels in PATHs (files and directories), and the project's functions that they call.

    Each finding is one line: path:line:col: NK601 message. To ignore one, put a comment on its line:
    # nki: ignore[NK601] why. [tool.nkitools.lint] in pyproject.toml, the nearest above the first PATH, may set select,
    ignore, dialect, exclude and per-file-ignores. --fix changes files in place, whatever --select, --ignore and
    --diff say. Exit code: 0 without errors and warnings (hints do not count), 1 with some, 2 for a mistake in the
    command.
    """
    from nkitools.cli.remembered_interface import RememberedInterface
    from nkitools.cli.since import must_be_commit
    from nkitools.lint.engine import lint
    from nkitools.lint.migration import migration
    from nkitools.report.run_counts import relative

    if base is not None:
        must_be_commit(base, paths[0])
    settings = _settings(paths[0], select, ignore, dialect)
    files = _files(paths, settings)
    if fix:
        _rewrite(files)
    _check_version()
    interface = RememberedInterface()
    findings = migration(files, interface) if migrate else lint(files, settings.dialect, interface).findings
    interface.keep()
    if base is not None:
        findings = _since(findings, base)
    found = [replace(each, file=relative(each.file, os.getcwd())) for each in findings if settings.wants(each)]
    if not files:
        say(f"no Python files in {', '.join(str(path) for path in paths)}", err=True)
    _show(found, form, len(files), remedies=migrate)
    context.exit(int(any(finding.severity in _FAILING for finding in found)))


def _settings(path: Path, select: tuple[str, ...], ignore: tuple[str, ...], dialect: str | None) -> Settings:
    from nkitools.lint.settings import rule_ids, settings_for

    try:
        settings = settings_for(path)
        chosen = rule_ids(_split(select)) or settings.select
        return replace(
            settings,
            select=chosen,
            ignore=settings.ignore | rule_ids(_split(ignore)),
            dialect=dialect or settings.dialect,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _since(findings: list[Finding], base: str) -> list[Finding]:
    """Return the findings at lines that have changed since a commit."""
    from nkitools.cli.since import changed_lines

    lines = {file: changed_lines(Path(file), base) for file in {each.file for each in findings}}
    return [each for each in findings if (changed := lines[each.file]) is None or each.line in changed]


def _check_version() -> None:
    try:
        options.value("nki_version")
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _split(names: tuple[str, ...]) -> list[str]:
    return [each for name in names for each in name.split(",") if each.strip()]


def _files(paths: tuple[Path, ...], settings: Settings) -> list[Path]:
    from nkitools.lint.files import python_files

    for path in paths:
        if path.suffix == ".ipynb":
            raise click.UsageError(
                f"{path} is a notebook, which lint does not read. Save its cells as a script "
                f"(jupyter nbconvert --to script {path}) and lint that."
            )
    return python_files(paths, settings.excludes)


def _rewrite(files: list[Path]) -> None:
    """Rewrite the files in which a newer form follows from the old text; one that is no Python stays."""
    from nkitools.lint.module import Unreadable, read
    from nkitools.lint.rewriting import rewritten
    from nkitools.record.whole_file import write_whole

    for path in files:
        try:
            text = read(path)
            new = rewritten(text, str(path))
        except (Unreadable, OSError):
            continue
        if new != text:
            write_whole(path, new)
            say(f"rewritten: {path}", err=True)


def _show(findings: list[Finding], form: str, files: int, *, remedies: bool) -> None:
    from nkitools.facts import __version__

    if form == "json":
        import json

        from nkitools.report.findings import with_suggestions
        from nkitools.serve.tried_edits import tried_by_lint

        plain = with_suggestions(findings, tried_by_lint(findings))
        click.echo(json.dumps({"version": __version__, "files": files, "findings": plain}, indent=2))
    elif form == "sarif":
        from nkitools.report.sarif import as_sarif
        from nkitools.serve.tried_edits import tried_by_lint

        click.echo(as_sarif(findings, Path.cwd(), __version__, tried_by_lint(findings)))
    elif form == "github":
        from nkitools.report.github import annotation

        for finding in findings:
            click.echo(annotation(finding))
    else:
        _show_text(findings, files, remedies=remedies)


def _show_text(findings: list[Finding], files: int, *, remedies: bool) -> None:
    from nkitools.report.run_counts import counted

    for finding in findings:
        _print(finding.text(), SEVERITY_STYLES[finding.severity])
        if remedies:
            _print(f"    {finding.remedy}", "")
    counts = Counter(finding.severity for finding in findings)
    said = [counted(counts[severity], severity) for severity in SEVERITY_STYLES if counts[severity]]
    _print(f"{', '.join(said) or 'nothing found'} in {counted(files, 'file')}", "bold", err=True)


def _print(text: str, style: str, *, err: bool = False) -> None:
    """Print a line in colour on a terminal, else without rich, whose import takes longer than a small lint."""
    if (sys.stderr if err else sys.stdout).isatty():
        console(stderr=err).print(text, style=style)
    else:
        say(text, err=err)
