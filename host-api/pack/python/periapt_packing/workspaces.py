"""The directories of a workspace's members, by their patterns. A stranger wrote these: what is looked at is bounded."""

from __future__ import annotations

import fnmatch
import os
import pathlib
from collections.abc import Iterator, Sequence

from .lines import RequirementError

#: The most members of a workspace.
_MOST_MEMBERS = 500

#: The most directories that are looked at for members.
_MOST_DIRECTORIES = 20_000

#: How deep members may lie.
_MOST_PARTS = 50


def directories(root: pathlib.Path, members: Sequence[str], others: Sequence[str], shown: str) -> Iterator[pathlib.Path]:
    """The directories that the patterns of members take in, and those of others leave out; `shown` is the workspace's file."""
    walk, found = _Walk(root.resolve(), shown), 0
    for pattern in members:
        parts = pathlib.PurePosixPath(pattern).parts
        if pattern.startswith("/") or ".." in parts:
            continue
        for directory in walk.matching(root, parts):
            found += 1
            if found > _MOST_MEMBERS:
                raise RequirementError(f"{shown}: a workspace has at most {_MOST_MEMBERS} members")
            if not any(_leaves_out(other, directory.relative_to(root), shown) for other in others):
                yield directory


def _leaves_out(pattern: str, directory: pathlib.PurePath, shown: str) -> bool:
    try:
        return directory.match(pattern)
    except ValueError:
        raise RequirementError(f"{shown}: {pattern[:80]!r} is no pattern of directories") from None


class _Walk:
    """A walk through directories, which ends."""

    def __init__(self, root: pathlib.Path, shown: str):
        self._root, self._shown, self._left = root, shown, _MOST_DIRECTORIES

    def matching(self, directory: pathlib.Path, parts: Sequence[str], depth: int = 0) -> Iterator[pathlib.Path]:
        """The directories below one that the parts of a pattern lead to; `**` leads through directories, and no links."""
        if depth > _MOST_PARTS:
            raise RequirementError(f"{self._shown}: members of a workspace lie at most {_MOST_PARTS} directories deep")
        if not parts:
            yield directory
            return
        first, *rest = parts
        if first == "**":
            yield from self.matching(directory, rest, depth + 1)
        for entry in self._below(directory):
            if first == "**" and not entry.is_symlink():
                yield from self.matching(directory / entry.name, parts, depth + 1)
            elif first != "**" and fnmatch.fnmatchcase(entry.name, first):
                yield from self.matching(directory / entry.name, rest, depth + 1)

    def _below(self, directory: pathlib.Path) -> Iterator[os.DirEntry]:
        with os.scandir(directory) as entries:
            found = sorted((entry for entry in entries if entry.name != ".git"), key=lambda entry: entry.name)
        for entry in found:
            self._left -= 1
            if self._left < 0:
                raise RequirementError(f"{self._shown}: for its members more than {_MOST_DIRECTORIES} files and directories are looked at")
            # A link may lead out, or to itself.
            real = pathlib.Path(os.path.realpath(entry.path)) if entry.is_symlink() else None
            if os.path.isdir(entry.path) if real is None else real.is_relative_to(self._root) and os.path.isdir(real):
                yield entry
