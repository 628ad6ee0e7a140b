"""The version that this stands for; the packer writes that of the package in its place."""

__version__ = "0"
