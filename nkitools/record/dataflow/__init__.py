"""The instructions that made, overwrote or read the elements of an access: exact, element by element."""
