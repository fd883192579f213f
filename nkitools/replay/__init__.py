"""Replay: a kernel's steps, recorded in one run and executed in later ones instead of its Python.

`purity` judges whether a kernel's code may be left out, `recording` keeps the steps of a run, and `step_list` executes
them.
"""
