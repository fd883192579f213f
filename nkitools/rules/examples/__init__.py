"""The examples of the rules, a module a family: for each rule a kernel that breaks it and the kernel mended.

``edges`` has a second pair for each rule of NKI.
"""
