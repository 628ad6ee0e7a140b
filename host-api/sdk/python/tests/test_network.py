"""Sockets and look-ups, on a machine without a network."""

import contextlib
import errno
import io
import urllib.request

import pytest

from periapt_ops.stand_ins import hosts


def number_of(call, *arguments):
    """The number of the error that a call ends with."""
    with pytest.raises(OSError) as caught:
        call(*arguments)
    return caught.value.errno


def test_a_host_is_called_after_its_unit(socket, monkeypatch):
    monkeypatch.setenv("JUJU_UNIT_NAME", "web/3")
    names = socket.gethostname(), socket.getfqdn(), socket.getfqdn("127.0.0.1"), socket.getfqdn("db")
    assert names == ("web-3", "web-3", "web-3", "db")
    assert (socket.gethostbyname("web-3"), socket.gethostbyname("10.1.2.3")) == ("127.0.0.1", "10.1.2.3")
    assert socket.gethostbyname_ex("web-3") == ("web-3", [], ["127.0.0.1"])
    assert socket.gethostbyaddr("127.0.0.1") == ("web-3", [], ["127.0.0.1"])
    assert socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICSERV) == ("web-3", "80")
    monkeypatch.delenv("JUJU_UNIT_NAME")
    assert hosts.hostname() == "localhost"


def test_no_other_name_leads_anywhere(socket):
    calls = [
        (socket.getaddrinfo, "example.com", 80),
        (socket.gethostbyname, "example.com"),
        (socket.gethostbyname_ex, "example.com"),
        (socket.gethostbyaddr, "example.com"),
        (socket.create_connection, ("example.com", 80)),
        (socket.socket().connect, ("example.com", 80)),
        (socket.socket().connect_ex, ("example.com", 80)),
        (socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("example.com", 53)),
    ]
    for call, *arguments in calls:
        with pytest.raises(socket.gaierror) as caught:
            call(*arguments)
        assert caught.value.errno == socket.EAI_AGAIN, call
    with pytest.raises(socket.herror):
        socket.gethostbyaddr("10.1.2.3")


def test_addresses_in_numbers_are_understood(socket):
    stream = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("10.1.2.3", 443))
    assert socket.getaddrinfo("10.1.2.3", "https", type=socket.SOCK_STREAM) == [stream]
    (found,) = socket.getaddrinfo(b"::1", 53, proto=socket.IPPROTO_UDP)
    assert found == (socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_UDP, "", ("::1", 53, 0, 0))
    places = {of[4][0] for of in socket.getaddrinfo("localhost", 0)}
    assert places == {of[4][0] for of in socket.getaddrinfo(None, 0)} == {"127.0.0.1", "::1"}
    assert {of[4][0] for of in socket.getaddrinfo(None, 0, flags=socket.AI_PASSIVE)} == {"0.0.0.0", "::"}
    assert socket.getaddrinfo("localhost", 0, flags=socket.AI_CANONNAME)[0][3] == "localhost"
    for arguments, number in [
        (("10.1.2.3", 0, socket.AF_INET6), socket.EAI_FAMILY),
        (("10.1.2.3", "no such service"), socket.EAI_SERVICE),
        (("localhost", 0, 0, 0, 0, socket.AI_NUMERICHOST), socket.EAI_NONAME),
    ]:
        assert number_of(socket.getaddrinfo, *arguments) == number, arguments


def test_a_socket_can_be_made_and_set_up_and_reaches_nobody(socket):
    for family in (socket.AF_INET, socket.AF_INET6):
        address = "127.0.0.1" if family == socket.AF_INET else "::1"
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(family, kind) as made:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                made.settimeout(5)
                assert (made.family, made.type, made.timeout, made.gettimeout()) == (family, kind, 5.0, 5.0)
                assert made.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == kind
                assert made.getsockname()[1] == 0
                refused = errno.ECONNREFUSED if kind == socket.SOCK_STREAM else errno.ENETUNREACH
                assert number_of(made.connect, (address, 80)) == refused
                assert made.connect_ex((address, 80)) == refused
                assert number_of(made.sendto, b"x", (address, 80)) == errno.ENETUNREACH
                assert number_of(made.bind, (address, 0)) == errno.EADDRNOTAVAIL
                assert number_of(made.listen) == errno.EADDRNOTAVAIL
                assert number_of(made.getpeername) == errno.ENOTCONN
                assert number_of(made.sendall, b"x") == errno.ENOTCONN
                assert number_of(made.recv, 1) == errno.ENOTCONN
                assert number_of(made.recvfrom_into, bytearray(1)) == errno.ENOTCONN
                assert number_of(made.accept) == errno.EINVAL
                assert made.fileno() > 1000 and "closed" not in repr(made)
            assert made.fileno() == -1 and "closed" in repr(made)
            assert number_of(made.connect, (address, 80)) == errno.EBADF
    assert number_of(socket.socketpair) == errno.EADDRNOTAVAIL
    assert number_of(socket.create_server, ("", 80)) == errno.EADDRNOTAVAIL
    assert number_of(socket.create_connection, ("10.1.2.3", 80)) == errno.ENETUNREACH
    assert number_of(socket.fromfd, 1, socket.AF_INET, socket.SOCK_STREAM) == errno.EBADF
    assert number_of(socket.socket, 99) == errno.EAFNOSUPPORT
    with pytest.raises(TypeError):
        socket.socket().connect("10.1.2.3")


def test_sockets_take_the_timeout_that_is_set_for_all(socket):
    assert socket.getdefaulttimeout() is None and socket.socket().timeout is None
    socket.setdefaulttimeout(3)
    assert socket.socket().gettimeout() == 3.0
    with pytest.raises(ValueError):
        socket.setdefaulttimeout(-1)


def test_a_path_that_is_nobodys_is_not_there(socket):
    made = socket.socket(socket.AF_UNIX)
    with pytest.raises(FileNotFoundError, match="/dev/log"):
        made.connect("/dev/log")
    assert number_of(made.bind, "/tmp/own.socket") == errno.EADDRNOTAVAIL
    assert isinstance(made, socket.socket)


def test_a_client_over_http_fails_as_without_a_network(socket, monkeypatch):
    import http.client

    monkeypatch.setattr(http.client, "socket", socket)
    for url, error in [("http://example.com/", socket.gaierror), ("http://10.1.2.3/", OSError)]:
        with pytest.raises(urllib.error.URLError) as caught:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=1)
        assert isinstance(caught.value.reason, error)


def test_a_workloads_answer_is_received_in_pieces(fake, socket):
    def answer(_, peer):
        peer.recv(100)
        peer.sendall(b"HTTP/1.1 200\r\n\r\n0123456789")

    fake.workload = answer
    for read_to_end in (False, True):
        with socket.socket(socket.AF_UNIX) as made:
            made.connect("/charm/containers/web/pebble.socket")
            assert made.send(b"GET / HTTP/1.1\r\n\r\n") == 18
            if read_to_end:
                with contextlib.closing(io.BufferedReader(socket.SocketIO(made, "r"))) as file:
                    assert file.read().endswith(b"0123456789")
            else:
                buffer = bytearray(8)
                assert (made.recv_into(buffer), bytes(buffer)) == (8, b"HTTP/1.1")
                pieces = iter(lambda: made.recv(7), b"")
                assert b"".join(pieces).endswith(b"\r\n\r\n0123456789")
            assert number_of(made.connect, "/charm/containers/web/pebble.socket") == errno.EISCONN
