"""Models: made, described, configured, destroyed."""

from __future__ import annotations

import uuid

import json

import jubilant
import pytest
from conftest import Juju


def names(juju: Juju) -> list[str]:
    listing = juju.cli('models', '--format', 'json', include_model=False)
    return [model['name'].split('/')[-1] for model in json.loads(listing)['models']]


def test_a_model_is_added_without_being_switched_to_and_destroyed(controller: str):
    juju = Juju()
    juju.add_model('first')
    assert juju.model == 'first'
    assert juju.status().model.name == 'first'
    second = Juju()
    second.add_model('second', controller=controller)
    assert second.model == f'{controller}:second'
    assert second.status().model.controller == controller
    assert {'first', 'second'} <= set(names(juju))

    with pytest.raises(jubilant.CLIError) as error:
        Juju().add_model('first')
    assert error.value.returncode == 1
    assert 'already exists' in error.value.stderr

    second.destroy_model('second', destroy_storage=True, timeout=60.5)
    assert second.model is None
    juju.destroy_model(f'{controller}:first', force=True)
    assert juju.model is None
    assert not {'first', 'second'} & set(names(juju))


def test_a_temporary_model_is_gone_when_it_was_used(controller: str):
    with jubilant.temp_model(controller=controller) as juju:
        assert juju.model is not None
        name = juju.model.split(':')[-1]
        status = juju.status()
        assert (status.model.name, status.model.type, status.apps, status.machines) == (name, 'iaas', {}, {})
        assert status.model.model_status.current == 'available'
        assert name in names(Juju())
    assert name not in names(Juju())


def test_a_model_that_is_not_there_is_an_error():
    with pytest.raises(jubilant.CLIError) as error:
        Juju(model='nowhere').status()
    assert error.value.returncode == 1
    assert 'nowhere' in error.value.stderr


def test_the_version_is_taken_apart(juju: Juju):
    version = juju.version()
    assert str(version) == juju.cli('version', include_model=False).strip()
    assert version.tuple >= (0, 1, 0)
    assert version.release == 'linux'
    assert juju.status().model.version == '.'.join(map(str, version.tuple))
