"""The code of authors: its text, positions and bytecode, what a function reads and calls, the key of its content."""
