"""``nkitools lsp``: the language server."""

from __future__ import annotations

import click


@click.command("lsp", short_help="Serve an editor: findings, hovers, quick fixes.")
def serve_editor() -> None:
    """Serve an editor over stdin and stdout: diagnostics, hovers, code actions and inlay hints.

    The protocol is LSP. It takes the extra lsp: pip install 'nkitools[lsp]'.
    """
    try:
        from nkitools.serve.language_server import make_server
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("pygls", "lsprotocol")):
            raise
        raise click.ClickException("the language server takes pygls: pip install 'nkitools[lsp]'") from None
    make_server().start_io()
