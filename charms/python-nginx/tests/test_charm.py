"""What the charm promises, on Scenario's model of Juju. `tools/demo-workload` has it with its server."""

import ops
import pytest
from ops import pebble, testing

from charm import CONFIGURATION, PAGE, NginxCharm

# Releases of Scenario differ in how they name a check without a level.
ALIVE = pebble.CheckLevel.ALIVE


@pytest.fixture
def context():
    return testing.Context(NginxCharm)


def nginx(**more):
    return testing.Container("nginx", can_connect=True, **more)


def test_without_its_container_it_waits(context):
    given = testing.State(containers={testing.Container("nginx", can_connect=False)})
    state = context.run(context.on.config_changed(), given)
    assert state.unit_status == testing.WaitingStatus("waiting for the container")
    assert state.opened_ports == {testing.TCPPort(8080)}


def test_once_the_container_is_ready_nginx_serves_the_page(context):
    given = testing.State(containers={nginx()}, config={"title": "Hello & welcome", "port": 8081})
    state = context.run(context.on.pebble_ready(nginx()), given)
    container = state.get_container("nginx")
    root = container.get_filesystem(context)
    assert "Hello &amp; welcome" in (root / PAGE.lstrip("/")).read_text(encoding="utf-8")
    configuration = (root / CONFIGURATION.lstrip("/")).read_text(encoding="utf-8")
    assert "listen 8081;" in configuration
    assert "user www-data;" in configuration
    assert container.service_statuses == {"nginx": pebble.ServiceStatus.ACTIVE}
    assert container.layers["nginx"].checks["page"].http == {"url": "http://localhost:8081/"}
    assert state.unit_status == testing.ActiveStatus("Hello & welcome")


def test_in_a_container_with_root_alone_nginx_runs_as_root(context, monkeypatch):
    push = ops.Container.push

    def as_root_alone(self, path, source, *, user=None, **more):
        if user is not None:
            raise pebble.PathError("generic-file-error", f"chown {path}: invalid argument")
        push(self, path, source, **more)

    monkeypatch.setattr(ops.Container, "push", as_root_alone)
    state = context.run(context.on.pebble_ready(nginx()), testing.State(containers={nginx()}))
    root = state.get_container("nginx").get_filesystem(context)
    assert "user root;" in (root / CONFIGURATION.lstrip("/")).read_text(encoding="utf-8")
    assert (root / PAGE.lstrip("/")).exists()


def test_who_collects_numbers_is_told_the_port(context):
    relation = testing.Relation("metrics")
    given = testing.State(containers={nginx()}, relations={relation})
    state = context.run(context.on.relation_created(relation), given)
    assert state.get_relation(relation.id).local_unit_data["port"] == "8080"


def test_a_failed_check_is_in_the_status(context):
    check = testing.CheckInfo("page", level=ALIVE, failures=3, threshold=3, status=pebble.CheckStatus.DOWN)
    layer = pebble.Layer({
        "services": {"nginx": {"override": "replace", "command": "nginx", "startup": "enabled"}},
        "checks": {"page": {"override": "replace", "threshold": 3, "startup": "enabled", "level": "alive"}},
    })
    running = {"nginx": pebble.ServiceStatus.ACTIVE}
    container = nginx(layers={"nginx": layer}, service_statuses=running, check_infos={check})
    state = context.run(context.on.update_status(), testing.State(containers={container}))
    assert state.unit_status == testing.WaitingStatus("nginx does not answer")
