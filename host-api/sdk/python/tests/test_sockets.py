"""Pebble's client of `ops`, over the stand-in for its socket."""

import json

import pytest
from ops import pebble

from periapt_ops import host
from periapt_ops.stand_ins import sockets


@pytest.fixture
def client(fake, socket, monkeypatch):
    monkeypatch.setattr(pebble, "socket", socket)
    return pebble.Client("/charm/containers/web/pebble.socket")


def test_nobody_listens(client):
    with pytest.raises(pebble.ConnectionError):
        client.get_system_info()


def test_an_exchange_goes_to_its_container_and_back(client, fake):
    def answer(container, request):
        assert (container, request.method, request.target) == ("web", "GET", "/v1/system-info")
        assert ("Accept", "application/json") in request.headers
        result = {"type": "sync", "result": {"version": "v9"}}
        return host.Response(200, [("Content-Type", "application/json")], json.dumps(result).encode())

    fake.pebble = answer
    assert client.get_system_info().version == "v9"


def test_a_body_is_sent_whole(client, fake):
    def answer(container, request):
        assert json.loads(request.body)["action"] == "ack-warnings" or request.method == "POST"
        return host.Response(400, [("Content-Type", "application/json")], b'{"type":"error","result":{"message":"no"}}')

    fake.pebble = answer
    with pytest.raises(pebble.APIError, match="no"):
        client.add_layer("a", "summary: x")


def test_a_chunked_body_is_joined():
    content = b"POST /v1/files HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n"
    assert sockets.parse_request(content).body == b"abcde"


def test_a_path_that_is_no_containers_is_not_there():
    for path in ("/run/docker.sock", "/charm/containers/web/other.socket"):
        with pytest.raises(FileNotFoundError):
            sockets.Exchange.connect(path)
