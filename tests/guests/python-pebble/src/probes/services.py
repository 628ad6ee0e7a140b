"""Layers, the plan, and services."""

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import ops
from ops.pebble import ChangeError, ChangeID, ChangeState, Layer, ServiceStartup, ServiceStatus, TimeoutError

from .probing import Probes, contains, equal, raises, text_of, until

PROBES = Probes()

#: A command that runs until it is stopped.
LASTING = "sleep 1000"


@contextlib.contextmanager
def layered(container: ops.Container, **services: dict[str, Any]) -> Iterator[None]:
    """Have services in the plan, and leave none of them running or enabled."""
    said: Any = {name: {"override": "replace", **service} for name, service in services.items()}
    container.add_layer("services", {"services": said}, combine=True)
    try:
        yield
    finally:
        container.stop(*services)
        idle: Any = {name: {"override": "replace", "command": LASTING} for name in services}
        container.add_layer("services", {"services": idle}, combine=True)


def _running(container: ops.Container, *names: str) -> list[bool]:
    return [container.get_service(name).is_running() for name in names]


@PROBES
def add_layer_and_get_plan(container: ops.Container, place: str) -> None:
    said: Any = {"command": LASTING, "summary": "Lasts", "startup": "enabled", "environment": {"A": "1"}}
    with layered(container, planned=said):
        planned = container.get_plan().services["planned"]
        equal((planned.command, planned.summary, planned.startup), (LASTING, "Lasts", "enabled"))
        equal(planned.environment, {"A": "1"})
        # As text, and as an object; both are merged.
        container.add_layer("services", "services: {planned: {override: merge, environment: {B: '2'}}}", combine=True)
        layer = Layer({"services": {"planned": {"override": "merge", "summary": "Lasts longer"}}})
        container.add_layer("services", layer, combine=True)
        planned = container.get_plan().services["planned"]
        equal((planned.command, planned.summary, planned.environment), (LASTING, "Lasts longer", {"A": "1", "B": "2"}))
        contains(container.get_plan().to_yaml(), "planned:")
        equal(container.get_plan().to_dict()["services"]["planned"]["startup"], "enabled")


@PROBES
def autostart(container: ops.Container, place: str) -> None:
    with layered(container, enabled={"command": LASTING, "startup": "enabled"}, other={"command": LASTING}):
        container.autostart()
        equal(_running(container, "enabled", "other"), [True, False])


@PROBES
def start_and_stop(container: ops.Container, place: str) -> None:
    second: Any = {"command": LASTING, "requires": ["first"], "after": ["first"]}
    with layered(container, first={"command": LASTING}, second=second):
        container.start("second")
        equal(_running(container, "first", "second"), [True, True])
        container.stop("second")
        equal(_running(container, "first", "second"), [True, False])
        container.start("first", "second")
        container.stop("first", "second")
        equal(_running(container, "first", "second"), [False, False])
        # What does not run can be stopped.
        container.stop("first")


def _counting(place: str, name: str) -> str:
    """A command that leaves a line at each start."""
    return f"sh -c 'echo started >>{place}/{name}; exec {LASTING}'"


def _starts(container: ops.Container, place: str, name: str) -> int:
    return len(text_of(container, f"{place}/{name}").splitlines())


@PROBES
def restart(container: ops.Container, place: str) -> None:
    with layered(container, again={"command": _counting(place, "again")}):
        container.restart("again")
        equal((_running(container, "again"), _starts(container, place, "again")), ([True], 1))
        container.restart("again")
        equal((_running(container, "again"), _starts(container, place, "again")), ([True], 2))


@PROBES
def replan(container: ops.Container, place: str) -> None:
    services: Any = {name: {"command": _counting(place, name), "startup": "enabled"} for name in ("changed", "same")}
    with layered(container, **services):
        container.replan()
        container.replan()
        equal([_starts(container, place, name) for name in services], [1, 1])
        change: Any = {"changed": {"override": "merge", "environment": {"A": "1"}}}
        container.add_layer("services", {"services": change}, combine=True)
        container.replan()
        equal(_running(container, *services), [True, True])
        equal([_starts(container, place, name) for name in services], [2, 1])


@PROBES
def get_services(container: ops.Container, place: str) -> None:
    with layered(container, one={"command": LASTING, "startup": "enabled"}, two={"command": LASTING}):
        container.start("one")
        found = container.get_services("one", "two")
        told = {name: (info.startup, info.current) for name, info in found.items()}
        expected = {
            "one": (ServiceStartup.ENABLED, ServiceStatus.ACTIVE),
            "two": (ServiceStartup.DISABLED, ServiceStatus.INACTIVE),
        }
        equal(told, expected)
        assert {"one", "two"} <= set(container.get_services()), container.get_services()
        equal(list(container.get_services("missing")), [])
        with raises(ops.ModelError):
            container.get_service("missing")


@PROBES
def send_signal(container: ops.Container, place: str) -> None:
    traps = "; ".join(f'trap "echo {name} >>{place}/seen" {name}' for name in ("HUP", "USR1", "USR2"))
    command = f"sh -c '{traps}; echo ready >>{place}/seen; while true; do sleep 0.05; done'"
    with layered(container, trapping={"command": command}):
        container.start("trapping")

        def until_seen(word: str) -> None:
            until(word, lambda: word in text_of(container, f"{place}/seen").split())

        until_seen("ready")
        for given, word in (("SIGHUP", "HUP"), (signal.SIGUSR1, "USR1"), (12, "USR2")):
            container.send_signal(given, "trapping")
            until_seen(word)
        with raises(ops.pebble.APIError):
            container.send_signal("SIGNONE", "trapping")
        container.stop("trapping")
        with raises(ops.pebble.APIError):
            container.send_signal("SIGHUP", "trapping")


@PROBES
def start_one_that_fails(container: ops.Container, place: str) -> None:
    with layered(container, failing={"command": "sh -c 'echo this is why; exit 3'", "startup": "enabled"}):
        for call in (container.replan, lambda: container.start("failing")):
            with raises(ChangeError) as raised:
                call()
            contains(raised.error.err, "failing")
            # With what the service wrote, from the log of the task.
            contains(str(raised.error), "this is why")
            assert any("this is why" in "\n".join(task.log) for task in raised.error.change.tasks), raised.error.change
        equal(_running(container, "failing"), [False])
    with layered(container, hollow={"command": "/not/there"}), raises(ChangeError):
        container.start("hollow")


@PROBES
def wait_change(container: ops.Container, place: str) -> None:
    client = container.pebble
    with layered(container, waited={"command": LASTING}):
        change_id = client.start_services(["waited"], timeout=0)
        assert isinstance(change_id, ChangeID), change_id
        change = client.wait_change(change_id)
        equal((change.id, change.kind, change.status), (change_id, "start", "Done"))
        equal((change.ready, change.err), (True, None))
        equal([task.status for task in change.tasks], ["Done"])
        equal(client.get_change(change_id).status, "Done")
        assert change_id in [change.id for change in client.get_changes(ChangeState.ALL, "waited")]
        assert change_id not in [change.id for change in client.get_changes()]


@PROBES
def wait_change_in_vain(container: ops.Container, place: str) -> None:
    client = container.pebble
    deaf = "sh -c 'trap : TERM; while true; do sleep 0.05; done'"
    with layered(container, slow={"command": deaf, "kill-delay": "15s"}):
        container.start("slow")
        change_id = client.stop_services(["slow"], timeout=0)
        # Before it looks the first time, and after it did.
        for timeout in (0.2, 4.5):
            with raises(TimeoutError):
                client.wait_change(change_id, timeout=timeout)
        assert client.wait_change(change_id).ready


@PROBES
def log_targets(container: ops.Container, place: str) -> None:
    target: Any = {
        "type": "loki",
        "override": "replace",
        "location": "https://example.com",
        "services": ["all"],
        "labels": {"foo": "bar"},
    }
    container.add_layer("log-targets", {"log-targets": {"pretend-loki": target}}, combine=True)
    found = container.get_plan().log_targets["pretend-loki"]
    equal((found.type, found.override, found.location), ("loki", "replace", "https://example.com"))
    equal((found.services, found.labels), (["all"], {"foo": "bar"}))
