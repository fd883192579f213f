"""Why an element of a result is what it is: backward slices of a run, element by element."""
