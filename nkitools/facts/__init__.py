"""Facts that depend on no code of this package: tables, and what reads them."""

__version__ = "0.2.0"
