"""The network: a hook has none, and WASI's sockets cannot be part of a component's snapshot.

WASI's own `_socket` keeps a handle of the network once a name was looked up. Libraries look names up when they are
imported, which is while the component is built, and a hook that used the handle would trap. So `_socket` is Python
here: numbers and conversions are WASI's own; sockets and look-ups do what they do on a machine without any network
interface, but for those that lead to the unit's own workloads (`sockets`).
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from .. import host
from . import hosts
from .sockets import Stream

#: The family of sockets on paths: a number that WASI gives to no family of its own.
UNIX = 0x7FFF

#: What `fileno` returns: numbers that no descriptor reaches, so that code that waits for one gets an error.
_NUMBERS = itertools.count(1 << 20)

#: What of the real module only native code reads, or makes sockets that are not of the class below.
_LEFT_OUT = ("CAPI", "socketpair")


def install() -> None:
    """Put it in place, before the standard library's `socket` is imported."""
    sys.modules["_socket"] = socket_module()


def socket_module() -> types.ModuleType:
    """A `_socket` that reaches nobody, for the standard library's `socket` to stand on."""
    import _socket as real

    module = types.ModuleType("_socket", "Sockets without a network.")
    vars(module).update((name, value) for name, value in vars(real).items() if not name.startswith("__"))
    for name in _LEFT_OUT:
        vars(module).pop(name, None)
    module.AF_UNIX = UNIX
    members = {"__slots__": (), "__module__": "_socket", "_sockets": module}
    made = module.socket = module.SocketType = type("socket", (Socket,), members)
    module.close = module.dup = _no_descriptor
    module.setdefaulttimeout = lambda timeout: setattr(made, "_default_timeout", _seconds(timeout))
    module.getdefaulttimeout = lambda: made._default_timeout
    names = hosts.Names(module)
    module.gethostname = hosts.hostname
    module.gethostbyname = names.address
    module.gethostbyname_ex = names.addresses
    module.gethostbyaddr = names.by_address
    module.getaddrinfo = names.information
    module.getnameinfo = names.of_address
    return module


def _no_descriptor(number: int) -> None:
    raise _error(errno.EBADF)


def _error(number: int, *path: str) -> OSError:
    return OSError(number, os.strerror(number), *path)


def _seconds(timeout: float | None) -> float | None:
    if timeout is not None and float(timeout) < 0:
        raise ValueError("Timeout value out of range")
    return None if timeout is None else float(timeout)


def _refusing(number: int) -> Callable[..., Any]:
    """A method that fails as the kernel would."""

    def refuse(self, *arguments, **options):
        self._check_open()
        raise _error(number)

    refuse.__doc__ = f"Raise {errno.errorcode[number]}."
    return refuse


def own_address() -> str | None:
    """The address of the unit, if it is known."""
    try:
        told = host.current().run_tool("unit-get", ["private-address"], None)
    except RuntimeError:
        return None
    return None if told.exit_code else told.stdout.decode().strip()


class Socket:
    """A socket on a machine that has no network interface."""

    __slots__ = ("_family", "_number", "_peer", "_proto", "_stream", "_timeout", "_type")

    #: The `_socket` module that it is of, which has its numbers.
    _sockets: types.ModuleType
    _default_timeout: float | None = None

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        sockets = self._sockets
        if fileno is not None:
            raise _error(errno.EBADF)
        self._family = sockets.AF_INET if family == -1 else family
        self._type = sockets.SOCK_STREAM if type == -1 else type
        self._proto = 0 if proto == -1 else proto
        if self._family not in (sockets.AF_INET, sockets.AF_INET6, sockets.AF_UNIX):
            raise _error(errno.EAFNOSUPPORT)
        self._number = next(_NUMBERS)
        self._timeout = self._default_timeout
        #: The way to a workload, once it is connected to one, and the address that was given.
        self._stream: Stream | None = None
        self._peer: Any = None

    family = property(lambda self: self._family)
    type = property(lambda self: self._type)
    proto = property(lambda self: self._proto)
    timeout = property(lambda self: self._timeout)

    def connect(self, address):
        """Connect to a workload of the unit; there is no way to anything else."""
        self._check_open()
        if self._stream is not None:
            raise _error(errno.EISCONN)
        if self._is_on_path():
            self._stream = Stream.to_path(address)
        else:
            self._stream = Stream.to_port(self._own_port(address))
        self._peer = address

    def connect_ex(self, address):
        """Connect, and return the number of the error."""
        try:
            self.connect(address)
        except self._sockets.gaierror:
            raise
        except OSError as error:
            return error.errno
        return 0

    def bind(self, address):
        """Raise EADDRNOTAVAIL: no address is this machine's."""
        self._check_open()
        raise _error(errno.EADDRNOTAVAIL, *([os.fsdecode(address)] if self._is_on_path() else []))

    listen = _refusing(errno.EADDRNOTAVAIL)
    _accept = _refusing(errno.EINVAL)
    recvmsg = recvmsg_into = _refusing(errno.ENOTCONN)

    def getpeername(self):
        """Return the address that it is connected to."""
        self._connected()
        return self._peer

    def send(self, data, flags=0):
        """Send all of it at once."""
        self.sendall(data)
        return memoryview(data).nbytes

    def sendall(self, data, flags=0):
        """Send to the workload."""
        self._connected().send(data, self._timeout)

    def sendmsg(self, buffers, ancillary=(), flags=0, address=None):
        """Send some buffers to the workload."""
        data = b"".join(buffers)
        return self.send(data) if address is None else self.sendto(data, address)

    def sendto(self, data, *flags_and_address):
        """Raise ENETUNREACH."""
        self._check_open()
        if not flags_and_address:
            raise TypeError("sendto() takes 2 or 3 arguments (1 given)")
        if self._is_on_path():
            raise _error(errno.EOPNOTSUPP)
        self._refuse_address(flags_and_address[-1])

    def recv(self, bufsize, flags=0):
        """Receive from the workload."""
        peeks = bool(flags & getattr(self._sockets, "MSG_PEEK", 2))
        return self._connected().receive(bufsize, self._timeout, keeps=peeks)

    def recv_into(self, buffer, nbytes=0, flags=0):
        """Receive from the workload into a buffer."""
        with memoryview(buffer).cast("B") as view:
            data = self.recv(nbytes or len(view), flags)
            view[: len(data)] = data
        return len(data)

    def recvfrom(self, bufsize, flags=0):
        """Receive from the workload; no address is told with it."""
        return self.recv(bufsize), None

    def recvfrom_into(self, buffer, nbytes=0, flags=0):
        """Receive from the workload into a buffer; no address is told with it."""
        return self.recv_into(buffer, nbytes), None

    def getsockname(self):
        """Return the address of a socket that is bound to none."""
        self._check_open()
        if self._is_on_path():
            return ""
        return ("0.0.0.0", 0) if self._family == self._sockets.AF_INET else ("::", 0, 0, 0)

    def getsockopt(self, level, option, buflen=0):
        """Return zero, of every option but the type."""
        self._check_open()
        if buflen:
            return bytes(buflen)
        is_type = (level, option) == (self._sockets.SOL_SOCKET, self._sockets.SO_TYPE)
        return int(self._type) if is_type else 0

    def setsockopt(self, *option):
        """Do nothing: no option makes a difference."""
        self._check_open()

    def settimeout(self, timeout):
        """Keep it, for those that wait."""
        self._timeout = _seconds(timeout)

    def gettimeout(self):
        """Return what was set."""
        return self._timeout

    def setblocking(self, flag):
        """Wait without end, or not at all."""
        self._timeout = None if flag else 0.0

    def getblocking(self):
        """Return whether it would wait."""
        return self._timeout != 0.0

    def fileno(self):
        """Return a number that is no descriptor's; -1 once it is closed."""
        return self._number

    def shutdown(self, how):
        """End the sending; what still comes can be received."""
        stream = self._connected()
        if how != self._sockets.SHUT_RD:
            stream.shutdown()

    def close(self):
        """End the stream, if there is one."""
        stream, self._number, self._stream = self._stream, -1, None
        if stream is not None:
            stream.close()

    def detach(self):
        """Close it, and return the number that it had."""
        number = self._number
        self.close()
        return number

    def _check_open(self) -> None:
        if self._number == -1:
            raise _error(errno.EBADF)

    def _is_on_path(self) -> bool:
        return self._family == self._sockets.AF_UNIX

    def _connected(self) -> Stream:
        self._check_open()
        if self._stream is None:
            raise _error(errno.ENOTCONN)
        return self._stream

    def _own_port(self, address) -> int:
        """The port of an address of the unit's own; raise what the kernel would for any other."""
        sockets = self._sockets
        if self._type != sockets.SOCK_STREAM or not isinstance(address, tuple) or len(address) < 2:
            self._refuse_address(address)
        found = sockets.getaddrinfo(address[0], address[1], self._family, self._type)
        place, port = found[0][4][:2]
        if place not in hosts.LOOPBACK and place != own_address():
            raise _error(errno.ENETUNREACH)
        return port

    def _refuse_address(self, address) -> None:
        """Raise ENETUNREACH, or that the host's name is not known."""
        if not isinstance(address, tuple) or len(address) < 2:
            raise TypeError(f"an address is a tuple of host and port, not {type(address).__name__}")
        self._sockets.getaddrinfo(address[0], None, self._family)
        raise _error(errno.ENETUNREACH)
