"""Health checks."""

import contextlib
from collections.abc import Iterator
from typing import Any

import ops
from ops.pebble import CheckLevel, CheckStartup, CheckStatus

from .probing import Probes, equal, raises, until

PROBES = Probes()


@contextlib.contextmanager
def layered(container: ops.Container, **checks: dict[str, Any]) -> Iterator[None]:
    """Have checks in the plan, and leave none of them running."""
    usual = {"override": "replace", "period": "50ms", "timeout": "30s"}
    said: Any = {name: {**usual, **check} for name, check in checks.items()}
    container.add_layer("checks", {"checks": said}, combine=True)
    try:
        yield
    finally:
        container.stop_checks(*checks)


GOOD: Any = {"exec": {"command": "echo foo"}}
BAD: Any = {"exec": {"command": "sleep x"}, "threshold": 2}


@PROBES
def get_checks(container: ops.Container, place: str) -> None:
    with layered(container, alive={**GOOD, "level": "alive"}, ready={**GOOD, "level": "ready"}, unset=GOOD):
        names = ("alive", "ready", "unset")
        found = container.get_checks(*names)
        equal([found[name].level for name in names], [CheckLevel.ALIVE, CheckLevel.READY, CheckLevel.UNSET])
        equal([found[name].status for name in names], [CheckStatus.UP] * 3)
        assert set(names) <= set(container.get_checks()), container.get_checks()
        assert "alive" in container.get_checks(level=CheckLevel.ALIVE)
        assert "unset" not in container.get_checks(level=CheckLevel.ALIVE)
        check = container.get_check("alive")
        equal((check.name, check.threshold, check.startup), ("alive", 3, CheckStartup.ENABLED))
        until("a success", lambda: container.get_check("alive").successes)
        with raises(ops.ModelError):
            container.get_check("missing")
    equal(set(container.get_plan().checks) & {"alive", "ready", "unset"}, {"alive", "ready", "unset"})


@PROBES
def one_that_fails(container: ops.Container, place: str) -> None:
    with layered(container, bad=BAD, good=GOOD):
        check = until("the check is down", lambda: _if_down(container, "bad"))
        assert check.failures >= 2 and check.threshold == 2, check
        equal(container.get_check("good").status, CheckStatus.UP)


@PROBES
def one_that_recovers(container: ops.Container, place: str) -> None:
    with layered(container, changing={"exec": {"command": f"test -e {place}/up"}, "threshold": 1}):
        until("the check is down", lambda: _if_down(container, "changing"))
        container.push(f"{place}/up", "")
        until("the check is up", lambda: container.get_check("changing").status == CheckStatus.UP)


def _if_down(container: ops.Container, name: str) -> ops.pebble.CheckInfo | None:
    check = container.get_check(name)
    return check if check.status == CheckStatus.DOWN else None


@PROBES
def start_and_stop(container: ops.Container, place: str) -> None:
    with layered(container, running=GOOD, idle={**GOOD, "startup": "disabled"}):
        equal(container.get_check("idle").status, CheckStatus.INACTIVE)
        equal(container.start_checks("running", "idle"), ["idle"])
        equal(container.get_check("idle").status, CheckStatus.UP)
        equal(sorted(container.stop_checks("running", "idle")), ["idle", "running"])
        equal(container.stop_checks("running"), [])
        equal(container.get_check("running").status, CheckStatus.INACTIVE)
        equal(container.start_checks("running"), ["running"])


@PROBES
def replan_starts_them(container: ops.Container, place: str) -> None:
    with layered(container, stopped=GOOD):
        equal(container.stop_checks("stopped"), ["stopped"])
        container.replan()
        equal(container.get_check("stopped").status, CheckStatus.UP)
