"""Python code in the place of a package's native code, one directory for each package.

The packer copies it into what pip has unpacked (`packing.vendor`); nothing here is imported as part of `periapt_ops`.
"""
