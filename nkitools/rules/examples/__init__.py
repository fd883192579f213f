"""The examples of the rules, a module a family: for each rule a kernel that breaks it and the kernel mended."""
