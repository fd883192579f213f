"""The command line. Exit codes: 0 clean, 1 findings or a failing script, 2 a mistake in the command."""

from __future__ import annotations

import click

from nkitools import __version__
from nkitools.cli.compare import compare_targets
from nkitools.cli.diff import diff_runs
from nkitools.cli.doctor import examine_machine
from nkitools.cli.explain import explain_rule
from nkitools.cli.lint import lint_paths
from nkitools.cli.rules import list_rules
from nkitools.cli.run import run_script
from nkitools.cli.timeline import write_timeline
from nkitools.cli.view import view_run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="nkitools %(version)s")
def main() -> None:
    """Test and debug AWS NKI kernels, Pallas kernels and Neuron custom operators on a laptop."""


main.add_command(run_script)
main.add_command(lint_paths)
main.add_command(list_rules)
main.add_command(explain_rule)
main.add_command(diff_runs)
main.add_command(write_timeline)
main.add_command(view_run)
main.add_command(examine_machine)
main.add_command(compare_targets)
