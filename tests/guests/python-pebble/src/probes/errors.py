"""What is refused, and what cannot be reached."""

import errno
import socket

import ops
from ops.pebble import APIError, ChangeID, Client, ConnectionError

from .probing import Probes, contains, equal, raises

PROBES = Probes()


@PROBES
def bad_layers(container: ops.Container, place: str) -> None:
    before = container.get_plan().to_yaml()
    bad = [
        "services: [",
        "services: {bad: {override: replace}}",
        "services: {bad: {override: sometimes, command: sleep 1}}",
        "services: {bad: {override: replace, command: sleep 1, surprise: 1}}",
        "services: {a: {override: replace, command: x, after: [b]}, b: {override: replace, command: x, after: [a]}}",
        "checks: {bad: {override: replace}}",
    ]
    for layer in bad:
        with raises(APIError, code=400) as raised:
            container.add_layer("bad", layer)
        assert raised.error.message, layer
    equal(container.get_plan().to_yaml(), before)


@PROBES
def a_label_that_is_taken(container: ops.Container, place: str) -> None:
    container.add_layer("taken", {"summary": "first"}, combine=True)
    with raises(APIError, code=400) as raised:
        container.add_layer("taken", {"summary": "second"})
    contains(raised.error.message, "taken")


@PROBES
def unknown_names(container: ops.Container, place: str) -> None:
    calls = [
        lambda: container.start("missing"),
        lambda: container.stop("missing"),
        lambda: container.restart("missing"),
        lambda: container.send_signal("SIGHUP", "missing"),
        lambda: container.start_checks("missing"),
        lambda: container.stop_checks("missing"),
    ]
    for call in calls:
        with raises(APIError) as raised:
            call()
        contains(raised.error.message, "missing")
    with raises(APIError, code=404):
        container.pebble.get_change(ChangeID("987654321"))


@PROBES
def no_container_of_this_name(container: ops.Container, place: str) -> None:
    client = Client("/charm/containers/nobody/pebble.socket")
    with raises(ConnectionError) as raised:
        client.get_system_info()
    contains(str(raised.error), "socket not found")
    with raises(ConnectionError):
        Client("/run/pebble.socket").get_services()


@PROBES
def more_streams_than_a_hook_may_have(container: ops.Container, place: str) -> None:
    opened = []
    try:
        with raises(OSError, errno=errno.EMFILE):
            for _ in range(64):
                opened.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                opened[-1].connect("/charm/containers/web/pebble.socket")
        # ops tells it as it does any failure to connect.
        with raises(ConnectionError):
            container.get_services()
    finally:
        for stream in opened:
            stream.close()
    assert container.can_connect()
