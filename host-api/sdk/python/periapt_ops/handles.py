"""What is open when the component's snapshot is taken.

A handle of the sandbox's (an open file or directory) belongs to the instance that opened it, and a hook runs in another
one. So whatever modules left open while they were imported is closed before the snapshot is taken: a file object that is
kept at the top of a module is one that was closed, and says so to code that reads it in a hook.
"""

from __future__ import annotations

import gc
import io
import os

#: More descriptors than a build has open.
_MOST = 4096

#: Files, outermost first: closing one writes what it still holds, and closes what is below it.
_FILES = ((io.TextIOWrapper,), (io.BufferedReader, io.BufferedWriter, io.BufferedRandom), (io.FileIO,))


def descriptors() -> frozenset[int]:
    """The descriptors that are open."""
    return frozenset(filter(_is_open, range(_MOST)))


def close_all_but(kept: frozenset[int]) -> None:
    """Close all files and descriptors but some."""
    if descriptors() == kept:
        # As nearly always. A list of all objects would leave its traces in each hook's memory.
        return
    gc.collect()
    living = gc.get_objects()
    for kind in _FILES:
        for file in living:
            # Not `isinstance`, which asks objects that pretend to be others.
            if issubclass(type(file), kind) and _number(file) not in {None, *kept}:
                _close(file)
    for number in descriptors() - kept:
        os.close(number)


def _number(file) -> int | None:
    try:
        return file.fileno()
    except (OSError, ValueError):
        # Closed, or of something in memory.
        return None


def _close(file) -> None:
    try:
        file.close()
    except OSError:
        # What it still held cannot be written; it is closed all the same.
        pass


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
