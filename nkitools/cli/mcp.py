"""``nkitools mcp``: the tools for coding agents."""

from __future__ import annotations

from pathlib import Path

import click

from nkitools.platforms import end_at_ctrl_c


@click.command("mcp", short_help="Serve a coding agent: lint, simulate, why, compare.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Files below this folder can be read and run, others not.",
)
def serve_agent(root: Path) -> None:
    """Serve a coding agent over stdin and stdout: lint, simulate, why, compare, verify, repair and others.

    The protocol is MCP. A simulated kernel runs with the rights of the user. The server needs the extra mcp: pip
    install 'nkitools[mcp]'.
    """
    try:
        from nkitools.serve.agent_tools import make_server
        from nkitools.serve.plain_text import make_stdin_readable
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise click.ClickException("the server takes the package mcp: pip install 'nkitools[mcp]'") from None
    end_at_ctrl_c()
    server = make_server(root)
    make_stdin_readable()
    server.run("stdio")
