"""What packing may take of the machine that packs: a stranger's wheels and sources are read, and may be made to hurt."""

from __future__ import annotations

import contextlib

#: Bytes of memory. pip with two hundred packages takes a fifth of it; the parser takes a hundred times a source's size.
MOST_MEMORY = 3 << 30

#: Bytes of a file that is written. What all wheels have unpacked is less.
MOST_FILE = 256 << 20

#: Seconds of CPU time, of which pip needs some ten.
MOST_CPU = 600

#: Seconds for one run of pip, which mostly waits for the network.
MOST_TIME = 900

#: Bytes that are read of what a program says.
MOST_SAID = 1 << 20


def bind() -> None:
    """Bound this process, and each one that it starts."""
    try:
        import resource
    except ImportError:
        # A machine without these bounds.
        return
    limits = ((resource.RLIMIT_AS, MOST_MEMORY), (resource.RLIMIT_FSIZE, MOST_FILE), (resource.RLIMIT_CPU, MOST_CPU))
    for kind, most in limits:
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        # macOS bounds no memory, and says so by an error.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
