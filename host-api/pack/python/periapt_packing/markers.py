"""Markers, versions and requirements, judged for the sandbox's interpreter by pip's own `packaging`."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from pip._vendor.packaging.markers import Marker
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.specifiers import SpecifierSet
from pip._vendor.packaging.version import Version

from .wheels import ENVIRONMENT

#: The longest marker, specifier or requirement that is read: a lock is a stranger's, and reading one takes a recursion for each
#: parenthesis. The longest that uv writes for charms have some hundred characters.
MOST_TEXT = 4096


class UnreadableError(Exception):
    """A marker, version or requirement that is none; for the author to read."""


@functools.lru_cache(maxsize=10_000)
def applies(marker: str, extras: tuple[str, ...] = ()) -> bool:
    """Whether a marker holds in the sandbox, with some extras of the package that it stands in."""
    if not marker.strip():
        return True
    try:
        read = Marker(_bounded(marker))
        return any(read.evaluate({**ENVIRONMENT, "extra": extra}) for extra in (*extras, ""))
    except UnreadableError:
        raise
    except Exception:
        # packaging has errors of its own for each of them, and of some releases a parser's besides.
        raise UnreadableError(f"{_shown(marker)} is no marker") from None


def any_applies(markers: Iterable[str]) -> bool:
    """Whether one of several markers holds; without any, all is well."""
    markers = list(markers)
    return not markers or any(applies(marker) for marker in markers)


def fits(version: str, specifier: str) -> bool:
    """Whether a version is in a range. One before a release counts, as it was chosen."""
    try:
        return SpecifierSet(_bounded(specifier)).contains(Version(_bounded(version)), prereleases=True)
    except UnreadableError:
        raise
    except Exception:
        raise UnreadableError(f"{_shown(version)} or {_shown(specifier)} is no version") from None


def version_of(text: str) -> Version:
    """A version, to be compared."""
    try:
        return Version(_bounded(text))
    except UnreadableError:
        raise
    except Exception:
        raise UnreadableError(f"{_shown(text)} is no version") from None


def requirement_of(line: str) -> Requirement:
    """A requirement in its parts, without digests."""
    try:
        return Requirement(_bounded(line.split(" --hash", 1)[0].strip()))
    except UnreadableError:
        raise
    except Exception:
        raise UnreadableError(f"{_shown(line)} is no requirement") from None


def exact_version(line: str) -> str | None:
    """The one version that a requirement allows; none if it allows several or names a wheel."""
    specifiers = list(requirement_of(line).specifier)
    if len(specifiers) != 1 or specifiers[0].operator not in ("==", "===") or specifiers[0].version.endswith("*"):
        return None
    return specifiers[0].version


def _bounded(text: str) -> str:
    if len(text) > MOST_TEXT:
        raise UnreadableError(f"{_shown(text)} has more than {MOST_TEXT} characters")
    return text


def _shown(text: str) -> str:
    return repr(text if len(text) < 80 else text[:77] + "...")
