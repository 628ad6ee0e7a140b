"""The host's name: WASI has none, and says `(none)`.

Libraries of charms tell others where they are by `socket.getfqdn()`, and do so in `__init__`. A hook runs on no host of
its own; the name that a unit's host would have in Kubernetes is at least its own: the unit's, with a dash. It is known
when a hook runs; while the component is built it is `localhost`. No other name leads anywhere.
"""

import os
import socket

#: What the loopback is called.
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "")


def install() -> None:
    """Put it in the place of the real one."""
    socket.gethostname = hostname
    socket.getfqdn = fqdn
    socket.gethostbyname = address
    socket.gethostbyaddr = by_address
    if hasattr(os, "uname"):
        real = os.uname()

        def uname():
            return type(real)((real[0], hostname(), *real[2:]))

        os.uname = uname


def hostname() -> str:
    """The unit's name, as a host's."""
    return os.environ.get("JUJU_UNIT_NAME", "localhost").replace("/", "-")


def fqdn(name: str = "") -> str:
    """A name, which is as full as it gets."""
    name = name.strip()
    return hostname() if name in LOOPBACK else name


def address(name: str) -> str:
    """The loopback's address for the host's own names, and none for others."""
    if name in LOOPBACK or name == hostname():
        return "127.0.0.1"
    if all(part.isdigit() and int(part) < 256 for part in name.split(".")) and name.count(".") == 3:
        return name
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def by_address(name: str) -> tuple[str, list[str], list[str]]:
    """The host of its own name or address."""
    return hostname(), [], [address(name)]
