"""The host's name and address: WASI has none, and says `(none)`.

Libraries of charms tell others where they are by `socket.getfqdn()`, and do so in `__init__`. A hook runs on no host of
its own; the name that a unit's host would have in Kubernetes is at least its own: the unit's, with a dash. It is known
when a hook runs; while the component is built it is `localhost`. Numbers are understood, and no other name leads
anywhere: looking it up fails as it does where no name server can be reached.
"""

from __future__ import annotations

import os
import types

#: What the loopback is called.
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "")


def install() -> None:
    """Put the name in the place of the real one."""
    if hasattr(os, "uname"):
        real = os.uname()

        def uname():
            return type(real)((real[0], hostname(), *real[2:]))

        os.uname = uname


def hostname() -> str:
    """The unit's name, as a host's."""
    return os.environ.get("JUJU_UNIT_NAME", "localhost").replace("/", "-")


class Names:
    """What a `_socket` module knows of names and addresses."""

    def __init__(self, module: types.ModuleType):
        """`module` has the numbers and the errors."""
        self._module = module

    def address(self, name: str) -> str:
        """As `gethostbyname`: the loopback's address for the host's own names, and none for others."""
        name = _text(name)
        if self._family_of(name) == self._module.AF_INET:
            return name
        if name in LOOPBACK or name == hostname():
            return "127.0.0.1"
        raise self._unknown()

    def addresses(self, name: str) -> tuple[str, list[str], list[str]]:
        """As `gethostbyname_ex`."""
        return _text(name), [], [self.address(name)]

    def by_address(self, name: str) -> tuple[str, list[str], list[str]]:
        """As `gethostbyaddr`: the host of its own name or address."""
        name = _text(name)
        if name in LOOPBACK or name == hostname():
            return hostname(), [], [self.address(name)]
        if self._family_of(name) is None:
            raise self._unknown()
        raise self._module.herror(1, "Unknown host")

    def information(self, host, port, family=0, type=0, proto=0, flags=0):
        """As `getaddrinfo`."""
        sockets = self._module
        number = self._port(port)
        kinds = [(sockets.SOCK_STREAM, sockets.IPPROTO_TCP), (sockets.SOCK_DGRAM, sockets.IPPROTO_UDP)]
        kinds = [(kind, of) for kind, of in kinds if type in (0, kind) and proto in (0, of)]
        found = []
        for of, address in self._resolved(host, flags):
            if family in (0, of):
                place = (address, number) if of == sockets.AF_INET else (address, number, 0, 0)
                named = _text(host) if flags & sockets.AI_CANONNAME and host and not found else ""
                found += [(of, kind, protocol, named, place) for kind, protocol in kinds]
        if not found:
            raise sockets.gaierror(sockets.EAI_FAMILY, "Address family for hostname not supported")
        return found

    def of_address(self, address, flags):
        """As `getnameinfo`: numbers stay numbers, but for the host's own."""
        sockets = self._module
        host, port = _text(address[0]), address[1]
        if self._family_of(host) is None:
            raise sockets.gaierror(sockets.EAI_NONAME, "Name or service not known")
        if not flags & sockets.NI_NUMERICHOST:
            if host in LOOPBACK:
                host = hostname()
            elif flags & sockets.NI_NAMEREQD:
                raise self._unknown()
        if not flags & sockets.NI_NUMERICSERV:
            try:
                return host, sockets.getservbyport(port, "udp" if flags & sockets.NI_DGRAM else "tcp")
            except OSError:
                pass
        return host, str(port)

    def _resolved(self, host, flags: int) -> list[tuple[int, str]]:
        """The family and the address of a host, each that it has."""
        sockets = self._module
        if host is None:
            passive = flags & sockets.AI_PASSIVE
            return [(sockets.AF_INET, "0.0.0.0" if passive else "127.0.0.1"), (sockets.AF_INET6, "::" if passive else "::1")]
        name = _text(host)
        family = self._family_of(name)
        if family is not None:
            return [(family, name)]
        if flags & sockets.AI_NUMERICHOST:
            raise sockets.gaierror(sockets.EAI_NONAME, "Name or service not known")
        if name in LOOPBACK or name == hostname():
            return [(sockets.AF_INET, "127.0.0.1"), (sockets.AF_INET6, "::1")]
        raise self._unknown()

    def _family_of(self, name: str) -> int | None:
        """The family of an address in numbers; none of a name."""
        for family in (self._module.AF_INET, self._module.AF_INET6):
            try:
                self._module.inet_pton(family, name)
            except (OSError, ValueError):
                continue
            return family
        return None

    def _port(self, port) -> int:
        if port is None:
            return 0
        if isinstance(port, int):
            return port
        text = _text(port)
        if text.isdecimal():
            return int(text)
        try:
            return self._module.getservbyname(text)
        except OSError:
            raise self._module.gaierror(self._module.EAI_SERVICE, "Servname not supported for ai_socktype") from None

    def _unknown(self) -> OSError:
        return self._module.gaierror(self._module.EAI_AGAIN, "Temporary failure in name resolution")


def _text(name) -> str:
    return name.decode("ascii", "replace") if isinstance(name, (bytes, bytearray)) else name
