"""The record of a run: instructions, prints, findings, source lines and loop counters."""
