"""Repair of a wrong kernel: single edits of it are run until its outputs are the reference's."""
