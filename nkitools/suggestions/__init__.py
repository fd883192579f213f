"""Edits of a file's text that mend a finding, where they follow from the source."""
