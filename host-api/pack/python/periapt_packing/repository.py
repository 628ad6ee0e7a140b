"""The repository that a charm lies in: what of it, outside of the charm's own directory, may be packed."""

from __future__ import annotations

import dataclasses
import errno
import os
import pathlib

from .lines import RequirementError


#: The most characters of a path that are shown.
_MOST_SHOWN = 120


@dataclasses.dataclass(frozen=True)
class Repository:
    """A directory, out of which nothing that is packed may lead: that of the charm, or the checkout around it."""

    root: pathlib.Path
    charm: pathlib.Path

    @classmethod
    def of(cls, charm: pathlib.Path, root: pathlib.Path | None = None) -> Repository:
        """The repository of a charm; without a root it is the charm's directory."""
        charm = charm.resolve()
        return cls((root or charm).resolve(), charm)

    def within(self, path: pathlib.Path, place: str) -> pathlib.Path:
        """Where a path leads, if that is in the repository; `place` is told where it is not."""
        real = self._real(path, place)
        inside = real.is_relative_to(self.root)
        if inside and ".git" not in real.relative_to(self.root).parts:
            return real
        out = "out of the charm's directory" if self.root == self.charm else f"out of the repository ({self.root})"
        where = "among the files of git" if inside else out
        link = self._link_of(path)
        subject = (
            "it" if link is not None and place == self.shown(link) or place == self.shown(path) else self.shown(link or path)
        )
        if link is not None:
            raise RequirementError(
                f"{place}: {subject} is a link to {os.readlink(link)}, and leads {where}: replace it with its target"
            )
        raise RequirementError(f"{place}: {subject} leads {where}")

    def _real(self, path: pathlib.Path, place: str) -> pathlib.Path:
        """Where a path leads, be something there or not."""
        shown = self.shown(path)
        subject = shown if shown.isprintable() and len(shown) < _MOST_SHOWN else repr(shown[:_MOST_SHOWN])
        place, subject = (subject, "it") if place == shown else (place, subject)
        try:
            real = path.resolve()
            real.stat()
        except (FileNotFoundError, NotADirectoryError):
            return real
        except ValueError:
            raise RequirementError(f"{place}: {subject} is no path") from None
        except (OSError, RuntimeError) as error:
            # A circle of links is the one or the other, by the release of Python.
            if isinstance(error, RuntimeError) or error.errno == errno.ELOOP:
                raise RequirementError(f"{place}: {subject} is a link that leads back to itself") from None
            raise RequirementError(f"{place}: {subject} cannot be read: {error.strerror}") from None
        return real

    def shown(self, path: pathlib.Path) -> str:
        """A path as the charm's author would write it."""
        path = pathlib.Path(os.path.normpath(path))
        for base in (self.charm, self.root):
            if path.is_relative_to(base):
                return path.relative_to(base).as_posix()
        return os.path.relpath(path, self.charm)

    def _link_of(self, path: pathlib.Path) -> pathlib.Path | None:
        """The link in a path by which it leads elsewhere."""
        path = pathlib.Path(os.path.normpath(self.charm / path))
        return next((part for part in (path, *path.parents) if part.is_symlink()), None)
