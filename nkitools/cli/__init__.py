"""The command line. Exit codes: 0 clean, 1 findings or a failing script, 2 a mistake in the command, 130 Ctrl-C."""

from __future__ import annotations

import click

from nkitools.cli.bisect import find_first_wrong
from nkitools.cli.commands import Commands
from nkitools.cli.compare import compare_targets
from nkitools.cli.compile import compile_kernel
from nkitools.cli.completion import show_completion
from nkitools.cli.demo import show_examples
from nkitools.cli.diff import diff_runs
from nkitools.cli.doctor import examine_machine
from nkitools.cli.estimate import estimate_kernel
from nkitools.cli.explain import explain_rule
from nkitools.cli.guide import print_guide
from nkitools.cli.lint import lint_paths
from nkitools.cli.lsp import serve_editor
from nkitools.cli.mcp import serve_agent
from nkitools.cli.mutate import mutate_kernel
from nkitools.cli.new import new_kernel
from nkitools.cli.reproduce import reproduce_run
from nkitools.cli.rules import list_rules
from nkitools.cli.run import run_script
from nkitools.cli.sweep import sweep_kernel
from nkitools.cli.sweep_report import report_sweeps
from nkitools.cli.timeline import write_timeline
from nkitools.cli.try_folder import try_folder
from nkitools.cli.tune import tune_kernel
from nkitools.cli.verify import verify_kernel
from nkitools.cli.view import view_run
from nkitools.cli.why import explain_element
from nkitools.facts import __version__

_GROUPS = {
    "Start": (show_examples, new_kernel, examine_machine, show_completion),
    "Check": (
        run_script,
        try_folder,
        lint_paths,
        verify_kernel,
        find_first_wrong,
        sweep_kernel,
        mutate_kernel,
        compare_targets,
        diff_runs,
    ),
    "Explain": (explain_rule, list_rules, explain_element, print_guide),
    "Measure": (estimate_kernel, tune_kernel, compile_kernel),
    "Save": (view_run, write_timeline, reproduce_run),
    "Serve": (serve_editor, serve_agent),
}

sweep_kernel.add_command(report_sweeps)


@click.group(cls=Commands, groups=_GROUPS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="nkitools %(version)s")
def main() -> None:
    """Test and debug AWS NKI kernels, Pallas kernels and Neuron custom operators on a laptop."""
