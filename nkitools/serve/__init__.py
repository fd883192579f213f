"""Language server and agent tools: thin, each calls a room below."""
