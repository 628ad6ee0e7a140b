"""Where the input for a field is found: under its name, or under other names and paths."""

from __future__ import annotations

_NOTHING = object()


class Lookup:
    """The places of one field."""

    __slots__ = ("name", "paths")

    def __init__(self, name, alias):
        self.name = name
        #: Paths of keys and positions, the first that leads somewhere counts; none if there is no alias.
        self.paths = _paths(alias)

    def find(self, source, by_alias, by_name, used):
        """Where the input is and what it is; no place if it is nowhere. Keys that were looked under are `used`."""
        if self.paths is not None and by_alias:
            for path in self.paths:
                used.add(path[0])
            for path in self.paths:
                found = _along(source, path)
                if found is not _NOTHING:
                    return path, found
        if self.paths is None or by_name or not by_alias:
            used.add(self.name)
            if self.name in source:
                return (self.name,), source[self.name]
        return None, None

    def missing(self, by_alias, in_location):
        """Where it is said to be missing."""
        if self.paths is not None and by_alias and in_location:
            return tuple(self.paths[0])
        return (self.name,)

    def names(self, name):
        """The first key of each place."""
        return {name} | {path[0] for path in self.paths or ()}


def _paths(alias):
    if alias is None:
        return None
    if isinstance(alias, str):
        return [(alias,)]
    if alias and isinstance(alias[0], (list, tuple)):
        return [tuple(path) for path in alias]
    return [tuple(alias)]


def _along(source, path):
    if path[0] not in source:
        return _NOTHING
    found = source[path[0]]
    for step in path[1:]:
        if isinstance(found, str):
            return _NOTHING
        try:
            found = found[step]
        except (LookupError, TypeError):
            return _NOTHING
    return found
