"""Which releases of a package cannot run in the sandbox, as far as that is known before anything is fetched.

This is the one place that says so: `reason` for a version, `first_that_runs` for a range.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from . import markers
from .unpacked import normalised


@dataclasses.dataclass(frozen=True)
class _Series:
    """Releases of a package from one version up to another, of which only the last ones know CPython 3.14."""

    #: The first and the one after the last.
    begin: str
    end: str
    #: The first that runs; none, if none does.
    first: str | None
    why: str


_ANNOTATIONS = "it reads annotations in a way that ended with CPython 3.13"

#: By package.
_KNOWN = {
    "httpcore": (_Series("0", "2", "1.0.8", "it changes typing.Union, which CPython 3.14 does not let it"),),
    "pydantic": (
        _Series("0", "2", "1.10.25", _ANNOTATIONS),
        _Series("2", "3", "2.12", _ANNOTATIONS),
    ),
}


def reason(name: str, version: str) -> str | None:
    """Why a version of a package cannot run in the sandbox; none if nothing is known against it."""
    for series in _KNOWN.get(normalised(name), ()):
        if markers.fits(version, f">={series.begin},<{series.end}.dev0") and not _runs(version, series):
            return series.why
    return None


def is_known(name: str) -> bool:
    """Whether anything is known against releases of a package."""
    return normalised(name) in _KNOWN


def first_that_runs(name: str, specifiers: Iterable[str] = ()) -> str | None:
    """The range of a package within some specifiers that runs in the sandbox, as a specifier; empty if all of it does, none
    if nothing in it does."""
    known = _KNOWN.get(normalised(name), ())
    if not known:
        return ""
    said = ",".join(specifier for specifier in specifiers if specifier)
    # The newest series first: it is what a resolver would take.
    for series in reversed(known):
        if series.first and any(markers.fits(version, said) for version in _versions_from(series)):
            return f">={series.first},<{series.end}.dev0"
    # One that is newer than all that is known here.
    return "" if markers.fits("9999", said) else None


def beyond(name: str, specifiers: Iterable[str]) -> str:
    """The range that runs in the series of releases that some specifiers lead to, as a specifier; empty if they lead to none.

    One exact version outweighs all ranges: a charm's libraries allow more than the charm was tested with. Of what ranges allow
    the newest series counts, which a resolver would take.
    """
    said = [specifier for specifier in specifiers if specifier]
    exact = [f"=={version}" for specifier in said if (version := markers.exact_version(f"x{specifier}"))]
    for one in exact or ([",".join(said), *said] if said else []):
        for series in reversed(_KNOWN.get(normalised(name), ())):
            if series.first and any(markers.fits(version, one) for version in _versions_of(series, one)):
                return f">={series.first},<{series.end}"
    return ""


def known() -> Iterable[str]:
    """The packages of which something is known."""
    return _KNOWN.keys()


def why(name: str) -> str:
    """Why older releases of a package cannot run in the sandbox."""
    return _KNOWN[normalised(name)][-1].why


def said(name: str) -> str:
    """Which releases of a package run, in words."""
    first = [f"{series.first}" for series in _KNOWN[normalised(name)] if series.first]
    return f"it runs from {' and from '.join(reversed(first))} on" if first else "no release of it does"


def _runs(version: str, series: _Series) -> bool:
    return series.first is not None and markers.fits(version, f">={series.first}")


def _versions_of(series: _Series, range_: str) -> Iterable[str]:
    """Versions that a range names in a series, and others that there may be in the series."""
    named = (found.rstrip(".") for found in re.findall(r"\d[0-9.]*", range_))
    yield from (version for version in named if markers.fits(version, f">={series.begin},<{series.end}.dev0"))
    for major in range(int(series.begin), int(series.end)):
        yield from (f"{major}.{minor}.{patch}" for minor in range(50) for patch in range(30))


def _versions_from(series: _Series) -> Iterable[str]:
    """Versions that there are or may come to be in a series, from the first that runs."""
    major, minor, patch = ([int(part) for part in series.first.split(".")] + [0, 0])[:3]
    yield from (f"{major}.{minor}.{number}" for number in range(patch, 50))
    yield from (f"{major}.{number}.{deep}" for number in range(minor + 1, minor + 50) for deep in range(10))
