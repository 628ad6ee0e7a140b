"""The charm that `charmcraft init --profile kubernetes` writes.

It adds a layer, replans, and waits for services and checks; its action restarts the service. It reads a secret of the user's by
a setting, and has one of its own.
"""

from __future__ import annotations

import jubilant
import pytest
import yaml
from conftest import Juju

APP, UNIT, CONTAINER = 'public-charm', 'public-charm/0', 'some-container'


@pytest.fixture(scope='module', autouse=True)
def deployed(juju: Juju, place) -> None:
    # It assumes k8s-api, which is more than the containers that it uses.
    image = str(place / 'busy.tar')
    juju.deploy(place / 'kubernetes.charm', resources={'some-container-image': image}, force=True)
    juju.wait(lambda status: jubilant.all_active(status, APP) and jubilant.all_agents_idle(status), error=jubilant.any_error)


def wait_for(juju: Juju, current: str, message: str) -> None:
    """Waits for a status of the unit."""

    def has(status: jubilant.Status) -> bool:
        told = status.apps[APP].units[UNIT].workload_status
        return (told.current, told.message) == (current, message)

    juju.wait(has, error=jubilant.any_error)


def process(juju: Juju) -> str:
    """Returns the process of the service, by the container's list of processes."""
    script = 'for each in /proc/[0-9]*; do name=; read -r name <"$each/comm"; [ "$name" != sleep ] || echo "$each"; done'
    return juju.cli('exec', '--unit', UNIT, '--container', CONTAINER, '--', 'sh', '-c', script)


def test_its_action_restarts_the_service(juju: Juju):
    before = process(juju)
    assert len(before.split()) == 1
    assert juju.run(UNIT, 'restart').success
    after = process(juju)
    assert len(after.split()) == 1 and after != before


def test_a_setting_names_a_secret_whose_changes_it_follows(juju: Juju):
    uri = juju.add_secret('api', {'key': 'wrong'})
    juju.grant_secret('api', APP)
    juju.config(APP, {'api-token': uri})
    wait_for(juju, 'blocked', "api-token secret has no 'token' key")
    juju.update_secret('api', {'token': 'opensesame'})
    wait_for(juju, 'active', '')
    assert 'api-token resolved (10 chars)' in juju.debug_log()


def test_its_own_secret_is_there(juju: Juju):
    [secret] = juju.secrets(owner=f'application-{APP}')
    assert (secret.label, secret.rotation) == ('workload-password', 'monthly')
    shown = yaml.safe_load(juju.cli('show-unit', UNIT))[UNIT]['containers'][CONTAINER]
    assert [service['name'] for service in shown['services']] == ['some-service']
