"""Reports of runs for people: counts, folded findings, the first prints, JSON, tracebacks of the author's own lines."""
