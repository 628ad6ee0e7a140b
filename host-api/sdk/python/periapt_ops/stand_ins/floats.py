"""Numbers of four bytes for protobuf.

protobuf before 5.29 rounds numbers with `ctypes.c_float`, and asks `ctypes`, which WASI's CPython is built without, for nothing
else. Exporters of traces hold many charms at such a release. While that one module of it is imported there is a `ctypes` with
`c_float`; to all other code the real one is missing, as ever.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import math
import struct
import sys
import types

from .names import ASKS_FOR_FLOATS


def install() -> None:
    """Put it before the finders of modules, where `ctypes` is missing."""
    if importlib.util.find_spec("_ctypes") is None:
        sys.meta_path.insert(0, Finder())


class c_float:  # noqa: N801
    """`ctypes.c_float`: a number as it is in four bytes."""

    def __init__(self, value: float = 0.0):
        try:
            (self.value,) = struct.unpack("<f", struct.pack("<f", value))
        except OverflowError:
            self.value = math.copysign(math.inf, value)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the one module where it is, and has it imported with a `ctypes`."""

    def find_spec(self, fullname, path=None, target=None):
        """Answer for the one module."""
        if fullname != ASKS_FOR_FLOATS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, real: importlib.abc.Loader):
        self._real = real

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        before = {"ctypes": sys.modules["ctypes"]} if "ctypes" in sys.modules else {}
        sys.modules["ctypes"] = types.ModuleType("ctypes", "What protobuf asks of it.")
        sys.modules["ctypes"].c_float = c_float
        try:
            self._real.exec_module(module)
        finally:
            del sys.modules["ctypes"]
            sys.modules.update(before)
