"""Traces of hooks, which have nowhere to go.

`ops[tracing]` keeps what a hook did in a file beside the code, and a thread sends it over HTTP. A hook has neither the
file, nor the thread, nor the network; setting it up fails each hook. So it is not set up: spans are opentelemetry's own
that record nothing, and all else that charms ask of `ops.tracing` does what it does where tracing was never set up.

Charms of the time before have a library for it, `charm_tracing`, which starts threads in each hook as well. It has a
switch of its own, in the environment.
"""

from __future__ import annotations

import os
import sys

#: The switch of the library.
SWITCH = "CHARM_TRACING_ENABLED"

#: Where `ops` finds the function that sets it up, by module.
PLACES = (("ops_tracing", "_setup"), ("ops_tracing._backend", "setup"))


def install() -> None:
    """Take it out, where the charm has it."""
    for module, name in PLACES:
        if hasattr(sys.modules.get(module), name):
            setattr(sys.modules[module], name, _leave)


def begin() -> None:
    """Switch the library off, in a hook."""
    os.environ[SWITCH] = "0"


def _leave(*arguments: object, **options: object) -> None:
    """Set nothing up."""
