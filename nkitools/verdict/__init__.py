"""One verdict for one kernel: rows of pass, fail and unknown, each with what was tried and why."""
