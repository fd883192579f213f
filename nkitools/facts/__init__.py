"""Facts that depend on no code of this package: tables, and what reads them."""
