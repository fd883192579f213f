"""The code of authors: the names that a function reads, and the key of its content."""
