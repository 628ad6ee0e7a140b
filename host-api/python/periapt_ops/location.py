"""Where modules lie: in `/charm` for a hook, in a directory of the packer's while the component is built.

A module keeps for ever what it learned when it was imported: `__file__`, `__path__`, the file names in its code. So all
of that must name the place in `/charm` from the beginning. While the component is built, `sys.path` names those places
already, and a hook on imports finds the sources where they are at that time. A module that was not imported then is
found by the ordinary means in a hook, if it is one of the charm's own or of its libraries': their files are there. The
standard library's are not.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib.machinery
import importlib.util
import io
import os
import posixpath
import sys
from collections.abc import Iterator

#: The charm's directory in a hook.
CHARM = "/charm"

#: Where modules are looked for, in the order of a charm that was packed for Juju: its script `dispatch` says so.
PARTS = ("src", "lib", "venv")


class Building:
    """The time while the component is built, with the charm's files in a directory of the packer's."""

    def __init__(self, directory: str):
        self.directory = directory
        self._own_path = list(sys.path)

    def begin(self) -> None:
        """Let `sys.path` name the places of later; nothing of the packer's own can be imported from here on."""
        sys.path_hooks.insert(0, self._finder)
        kept = [entry for entry in sys.path if entry.startswith("/python") or entry in ("/world", "/bundled")]
        sys.path[:] = [posixpath.join(CHARM, part) for part in PARTS] + kept
        sys.path_importer_cache.clear()

    def end(self) -> None:
        """Leave importing to the ordinary means."""
        sys.path_hooks.remove(self._finder)
        sys.path_importer_cache.clear()
        for module in list(sys.modules.values()):
            loader = getattr(module, "__loader__", None)
            if isinstance(loader, _Loader):
                loader.path = self.later(loader.path)

    def now(self, path: str) -> str:
        """Where something of the charm's is at present."""
        return self.directory + path.removeprefix(CHARM)

    def later(self, path: str) -> str:
        """Where something of the charm's will be."""
        return CHARM + path.removeprefix(self.directory)

    def _finder(self, entry: str):
        if entry != CHARM and not entry.startswith(CHARM + "/"):
            raise ImportError("not of the charm", path=entry)
        return _Finder(self, entry)

    @contextlib.contextmanager
    def files_in_place(self) -> Iterator[None]:
        """Let reading from `/charm` read the packer's directory, for modules that read files while they are imported."""
        in_place = True

        def through(function):
            # A module that is imported now may keep this for ever (`from os import listdir`): later it is the function itself.
            @functools.wraps(function)
            def call(path, *arguments, **options):
                if in_place and isinstance(path, (str, os.PathLike)):
                    text = os.fspath(path)
                    if isinstance(text, str) and (text == CHARM or text.startswith(CHARM + "/")):
                        path = self.now(text)
                return function(path, *arguments, **options)

            return call

        places = [(os, name) for name in ("stat", "lstat", "listdir", "scandir", "open", "access")]
        places += [(io, "open"), (builtins, "open")]
        kept = [(place, name, getattr(place, name)) for place, name in places]
        for place, name, function in kept:
            setattr(place, name, through(function))
        try:
            yield
        finally:
            in_place = False
            for place, name, function in kept:
                setattr(place, name, function)


class _Finder:
    """Finds modules of a directory in `/charm` where they are while the component is built."""

    def __init__(self, building: Building, entry: str):
        self._building = building
        loader = (lambda name, path: _Loader(building, name, path), importlib.machinery.SOURCE_SUFFIXES)
        self._finder = importlib.machinery.FileFinder(building.now(entry), loader)

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
    """Loads a source from where it is, into code that names where it will be."""

    def __init__(self, building: Building, name: str, path: str):
        super().__init__(name, path)
        self._building = building

    def get_code(self, fullname):
        """Compile the source; what somebody compiled before names other places."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def source_to_code(self, data, path, *, _optimize=-1):
        """Compile, under the name of later."""
        return compile(data, self._building.later(path), "exec", dont_inherit=True, optimize=_optimize)
