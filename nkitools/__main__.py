"""``python -m nkitools`` is the command ``nkitools``."""

from nkitools.cli import main

if __name__ == "__main__":
    main(prog_name="python -m nkitools")
