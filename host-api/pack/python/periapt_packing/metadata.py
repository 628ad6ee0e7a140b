"""What a wheel that was fetched requires."""

from __future__ import annotations

import email.parser
import pathlib
import zipfile

from . import markers

#: The most bytes of a wheel's METADATA that are read.
_MOST = 4 << 20


def requires(wheel: pathlib.Path) -> list[str]:
    """What a wheel requires in the sandbox, without extras."""
    with zipfile.ZipFile(wheel) as opened:
        name = next((name for name in opened.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1), None)
        if name is None:
            return []
        with opened.open(name) as metadata:
            text = metadata.read(_MOST).decode("utf-8", errors="replace")
    lines = email.parser.HeaderParser().parsestr(text).get_all("Requires-Dist") or []
    return [line for line in lines if _counts(line)]


def _counts(line: str) -> bool:
    try:
        marker = markers.requirement_of(line).marker
        return marker is None or markers.applies(str(marker))
    except markers.UnreadableError:
        return False


def fits(line: str, version: str) -> bool:
    """Whether a version is in the range that a requirement names."""
    try:
        return markers.fits(version, str(markers.requirement_of(line).specifier))
    except markers.UnreadableError:
        return True
