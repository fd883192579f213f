"""Edits of an author's text: pieces of it and what takes their place; single edits of a kernel, kind by kind."""
