"""Streams to workloads: Pebble's client of `ops`, and plain HTTP, over the stand-in for sockets."""

import errno
import http.client
import json
import time

import pytest
from ops import pebble

from periapt_ops.stand_ins import sockets, threads


@pytest.fixture
def client(fake, socket, monkeypatch):
    monkeypatch.setattr(pebble, "socket", socket)
    return pebble.Client("/charm/containers/web/pebble.socket")


def read_request(peer):
    """One request with a length, or in chunks."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += peer.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    head = head.decode().lower()
    if "chunked" in head:
        while not body.endswith(b"0\r\n\r\n"):
            body += peer.recv(1 << 16)
    length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length")), 0)
    while len(body) < length:
        body += peer.recv(1 << 16)
    return head, body


def respond(peer, status, content):
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 {status} \r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    peer.sendall(head.encode() + body)


def test_nobody_listens(client):
    with pytest.raises(pebble.ConnectionError):
        client.get_system_info()


def test_a_request_goes_to_its_container_and_back(client, fake):
    def serve(target, peer):
        head, _ = read_request(peer)
        assert (target, head.split("\r\n")[0]) == ("web", "get /v1/system-info http/1.1")
        respond(peer, 200, {"type": "sync", "result": {"version": "v9"}})

    fake.workload = serve
    assert client.get_system_info().version == "v9"


def test_a_body_is_sent_whole(client, fake):
    seen = []

    def serve(_, peer):
        seen.append(read_request(peer))
        respond(peer, 400, {"type": "error", "result": {"message": "no"}})

    fake.workload = serve
    with pytest.raises(pebble.APIError, match="no"):
        client.add_layer("a", "summary: x")
    assert json.loads(seen[0][1])["layer"].startswith("summary: x")


def test_a_file_is_pushed_in_chunks(client, fake):
    seen = []

    def serve(_, peer):
        seen.append(read_request(peer))
        respond(peer, 200, {"type": "sync", "result": [{"path": "/x"}]})

    fake.workload = serve
    client.push("/x", "content " * 100_000)
    head, body = seen[0]
    assert "multipart/form-data" in head and body.count(b"content ") > 90_000


def test_a_path_that_is_no_containers_is_not_there(fake):
    for path in ("/run/docker.sock", "/charm/containers/web/other.socket"):
        with pytest.raises(FileNotFoundError):
            sockets.Stream.to_path(path)


def test_the_loopback_and_the_units_address_lead_to_its_workloads(fake, socket, monkeypatch):
    monkeypatch.setattr(http.client, "socket", socket)
    fake.answers["unit-get"] = b"10.1.2.3\n"

    def serve(target, peer):
        read_request(peer)
        respond(peer, 200, target)

    fake.workload = serve
    for place in ("localhost", "127.0.0.1", "::1", "10.1.2.3"):
        connection = http.client.HTTPConnection(place, 8080, timeout=5)
        connection.request("GET", "/")
        assert json.loads(connection.getresponse().read()) == 8080, place
    with pytest.raises(OSError) as caught:
        socket.create_connection(("10.9.9.9", 8080))
    assert caught.value.errno == errno.ENETUNREACH


def test_a_receiver_waits_for_its_time_and_not_longer(fake, socket):
    fake.workload = lambda _, peer: time.sleep(1)
    with socket.create_connection(("127.0.0.1", 80)) as made:
        made.settimeout(0.05)
        with pytest.raises(TimeoutError):
            made.recv(1)
        made.setblocking(False)
        with pytest.raises(BlockingIOError):
            made.recv(1)
        made.settimeout(5)
        assert made.recv(1) == b""
        assert made.getpeername() == ("127.0.0.1", 80)


def test_what_is_peeked_at_stays(fake, socket):
    fake.workload = lambda _, peer: peer.sendall(b"hello")
    with socket.create_connection(("127.0.0.1", 80)) as made:
        assert made.recv(2, 2) == b"he"
        assert made.recv(9) == b"hello"
        assert made.recv(9) == b""


def test_a_receiver_that_waits_runs_the_threads_that_feed_it(fake, socket, monkeypatch):
    import threading

    for name in ("start", "join", "is_alive"):
        monkeypatch.setattr(threading.Thread, name, getattr(threads, name))
    fake.workload = lambda _, peer: peer.sendall(peer.recv(9).upper())
    with socket.create_connection(("127.0.0.1", 80)) as made:
        made.settimeout(20)
        threading.Thread(target=lambda: made.sendall(b"ping")).start()
        assert made.recv(9) == b"PING"


def test_an_end_that_sends_while_it_receives_goes_on(fake, socket):
    def echo(_, peer):
        while data := peer.recv(1 << 16):
            peer.sendall(data)

    fake.workload = echo
    content = b"0123456789" * 500_000
    with socket.create_connection(("127.0.0.1", 80)) as made:
        made.settimeout(20)
        made.sendall(content)
        made.shutdown(socket.SHUT_WR)
        pieces = iter(lambda: made.recv(1 << 16), b"")
        assert b"".join(pieces) == content


def test_no_more_is_read_ahead_than_its_bound(fake, socket, monkeypatch):
    monkeypatch.setattr(sockets, "AHEAD", 1 << 20)
    fake.workload = lambda target, peer: peer.sendall(b"x" * 8_000_000) if target == 1 else time.sleep(2)
    with socket.create_connection(("127.0.0.1", 1)) as output, socket.create_connection(("127.0.0.1", 2)) as errors:
        errors.settimeout(1)
        with pytest.raises(TimeoutError):
            errors.recv(9)
        output.settimeout(20)
        pieces = iter(lambda: output.recv(1 << 24), b"")
        assert 1 << 20 <= len(next(pieces)) < 3 << 19
        assert len(b"".join(pieces)) > 8_000_000 - (3 << 19) - 1


def test_an_end_that_sends_on_one_stream_and_then_on_another_goes_on(fake, socket):
    """As a command that writes much to its output, while the hook waits for its errors."""
    gate = []

    def serve(target, peer):
        if target == 1:
            peer.sendall(b"x" * 20_000_000)
            gate.append(True)
        else:
            while not gate:
                time.sleep(0.01)
            peer.sendall(b"done")

    fake.workload = serve
    with socket.create_connection(("127.0.0.1", 1)) as output, socket.create_connection(("127.0.0.1", 2)) as errors:
        errors.settimeout(20)
        output.settimeout(20)
        assert errors.recv(9) == b"done"
        pieces = iter(lambda: output.recv(1 << 20), b"")
        assert len(b"".join(pieces)) == 20_000_000
