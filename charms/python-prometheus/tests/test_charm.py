"""What the charm promises, on Scenario's model of Juju. `tools/demo-workload` has it with its server."""

import json

import pytest
from ops import pebble, testing

from charm import TARGETS, PrometheusCharm


@pytest.fixture
def context():
    return testing.Context(PrometheusCharm)


def prometheus():
    return testing.Container("prometheus", can_connect=True)


def test_without_its_container_it_waits(context):
    given = testing.State(containers={testing.Container("prometheus", can_connect=False)})
    state = context.run(context.on.config_changed(), given)
    assert state.unit_status == testing.WaitingStatus("waiting for the container")


def test_units_that_tell_their_port_are_targets(context):
    relation = testing.Relation("targets", remote_app_name="web", remote_units_data={0: {"port": "8080"}, 1: {}})
    given = testing.State(containers={prometheus()}, relations={relation})
    state = context.run(context.on.relation_changed(relation), given)
    container = state.get_container("prometheus")
    targets = json.loads((container.get_filesystem(context) / TARGETS.lstrip("/")).read_text(encoding="utf-8"))
    assert targets == [{"targets": ["web-0:8080"], "labels": {"unit": "web/0"}}]
    assert container.service_statuses == {"prometheus": pebble.ServiceStatus.ACTIVE}
    assert state.unit_status == testing.ActiveStatus("targets: 1")
