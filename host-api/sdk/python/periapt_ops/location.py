"""Where modules lie: in `/charm` for a hook, in a directory of the packer's while the component is built.

A module keeps for ever what it learned when it was imported: `__file__`, `__path__`, the file names in its code, the
working directory, paths that `importlib.resources` told it. So all of that must name the place in `/charm` from the
beginning. While the component is built, `sys.path` names those places already, a hook on imports finds the sources where
they are at that time, and so do the functions that read files (`reading`). A module that was not imported then is found
by the ordinary means in a hook, if it is one of the charm's own or of its libraries': their files are there. The standard
library's are not.
"""

from __future__ import annotations

import importlib.machinery
import os
import posixpath
import sys

#: The charm's directory in a hook.
CHARM = "/charm"

#: Where modules are looked for, in the order of a charm that was packed for Juju: its script `dispatch` says so.
PARTS = ("src", "lib", "venv")


class Building:
    """The time while the component is built, with the charm's files in a directory of the packer's."""

    def __init__(self, directory: str):
        self._directory = directory
        self._is_over = False

    def begin(self) -> None:
        """Let `sys.path` name the places of later; nothing of the packer's own can be imported from here on."""
        sys.path_hooks.insert(0, self._finder)
        kept = [entry for entry in sys.path if entry.startswith("/python") or entry in ("/world", "/bundled")]
        sys.path[:] = [posixpath.join(CHARM, part) for part in PARTS] + kept
        sys.path_importer_cache.clear()

    def end(self) -> None:
        """Leave importing to the ordinary means."""
        self._is_over = True
        sys.path_hooks.remove(self._finder)
        sys.path_importer_cache.clear()

    def now(self, path: str) -> str:
        """Where something is at present; only what is the charm's is elsewhere than later."""
        if self._is_over or not is_charms(path):
            return path
        return self._directory + path.removeprefix(CHARM)

    def later(self, path: str) -> str:
        """Where something of the charm's will be."""
        return CHARM + path.removeprefix(self._directory)

    def _finder(self, entry: str):
        if not is_charms(entry):
            raise ImportError("not of the charm", path=entry)
        return _Finder(self, entry)


def is_charms(path: str) -> bool:
    """Whether a path lies in the charm's directory of later."""
    return path == CHARM or path.startswith(CHARM + "/")


class _Finder:
    """Finds modules of a directory in `/charm` where they are while the component is built."""

    def __init__(self, building: Building, entry: str):
        self._building = building
        native = (lambda name, path: _NativeLoader(building, name, path), importlib.machinery.EXTENSION_SUFFIXES)
        loader = (lambda name, path: _Loader(building, name, path), importlib.machinery.SOURCE_SUFFIXES)
        self._finder = importlib.machinery.FileFinder(building.now(entry), native, loader)

    def find_spec(self, name, target=None):
        """As a finder of `sys.path_hooks` does."""
        spec = self._finder.find_spec(name, target)
        if spec is None:
            return None
        later = self._building.later
        if spec.origin is not None:
            spec.origin = later(spec.origin)
            # Nothing compiled is kept in an archive.
            spec.cached = None
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations[:] = map(later, spec.submodule_search_locations)
        return spec

    def invalidate_caches(self):
        """As a finder of `sys.path_hooks` does."""
        self._finder.invalidate_caches()


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a source from where it is, and names where it will be: `importlib.resources` starts from there."""

    def __init__(self, building: Building, name: str, path: str):
        super().__init__(name, building.later(path))
        self._building = building

    def get_code(self, fullname):
        """Compile the source; what was compiled before names other places."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def source_to_code(self, data, path, *, _optimize=-1):
        """Compile, and keep nothing of it in a file."""
        return compile(data, path, "exec", dont_inherit=True, optimize=_optimize)

    def get_data(self, path):
        """Read a file from where it is."""
        return super().get_data(self._building.now(os.fspath(path)))

    def path_stats(self, path):
        """Look at a file where it is."""
        return super().path_stats(self._building.now(path))


class _NativeLoader(importlib.machinery.ExtensionFileLoader):
    """Loads a module in native code, which is a part of the component, by the name that it has while this is built."""

    def __init__(self, building: Building, name: str, path: str):
        super().__init__(name, building.later(path))
        self._building = building

    def create_module(self, spec):
        """Load it; what the module keeps of its place is that of later."""
        later = spec.origin
        spec.origin = self._building.now(later)
        try:
            return super().create_module(spec)
        finally:
            spec.origin = later
