"""A kernel call becomes programs: arguments in, programs run, results out."""
