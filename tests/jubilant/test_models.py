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

    with pytest.raises(jubilant.CLIError) as error:
        second.destroy_model('second', timeout=60.5)
    assert error.value.returncode == 2 and error.value.stderr.startswith('ERROR --timeout can only be used with --force')
    second.destroy_model('second', destroy_storage=True, force=True, timeout=60.5)
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


def test_configuration_is_read_set_and_reset(juju: Juju):
    config = juju.model_config()
    assert config['automatically-retry-hooks'] is True and config['update-status-hook-interval'] == '5m'
    juju.model_config({'automatically-retry-hooks': False, 'update-status-hook-interval': '10m'})
    config = juju.model_config()
    assert config['automatically-retry-hooks'] is False and config['update-status-hook-interval'] == '10m'
    juju.model_config({'hook-timeout': '1m'}, reset='update-status-hook-interval')
    juju.model_config(reset=['automatically-retry-hooks', 'logging-config'])
    juju.model_config(reset='logging-config')
    config = juju.model_config()
    assert config['automatically-retry-hooks'] is True and config['update-status-hook-interval'] == '5m'
    assert config['hook-timeout'] == '1m'
    with pytest.raises(jubilant.CLIError) as error:
        juju.model_config({'no-such-key': 1})
    assert 'no-such-key' in error.value.stderr


def test_a_model_is_added_with_configuration_and_cloud(controller: str):
    with jubilant.temp_model(cloud='localhost', config={'automatically-retry-hooks': False}) as juju:
        assert juju.model_config()['automatically-retry-hooks'] is False
        with pytest.raises(jubilant.CLIError) as error:
            Juju().add_model('elsewhere', 'aws/eu-west-1')
        assert 'aws/eu-west-1' in error.value.stderr
        with pytest.raises(jubilant.CLIError):
            Juju().add_model('elsewhere', config={'no-such-key': 1})
        assert 'elsewhere' not in names(juju)


def test_constraints_are_read_and_set(juju: Juju):
    assert not juju.model_constraints()
    juju.model_constraints({'mem': '1G', 'cores': 4})
    assert juju.model_constraints() == {'mem': 1024, 'cores': 4}
    asked = {'mem': '8G', 'root-disk': '20G', 'instance-type': 'm5.large', 'allocate-public-ip': True}
    juju.model_constraints(asked)
    assert juju.model_constraints() == asked | {'mem': 8192, 'root-disk': 20480}
    with pytest.raises(jubilant.CLIError) as error:
        juju.model_constraints({'spaces': 'dmz'})
    assert 'spaces' in error.value.stderr
    juju.cli('set-model-constraints')
    assert not juju.model_constraints()


def test_a_model_is_shown_by_each_of_its_names(juju: Juju, controller: str, charm):
    juju.deploy(charm('mysql'))
    juju.wait(jubilant.all_active)
    info = juju.show_model()
    assert (info.short_name, info.name) == (juju.model, f'admin/{juju.model}')
    assert (info.controller_name, info.cloud, info.model_type) == (controller, 'periapt', 'iaas')
    assert not info.is_controller and info.life == 'alive' and info.status.current == 'available'
    assert uuid.UUID(info.model_uuid) != uuid.UUID(info.controller_uuid)
    assert info.users['admin'].access == 'admin' and info.agent_version == juju.status().model.version
    assert [machine.cores > 0 for machine in info.machines.values()] == [True]
    [feature] = info.supported_features
    assert (feature.name, feature.version) == ('juju', info.agent_version)
    assert {name: (it.status, it.num_secrets) for name, it in info.secret_backends.items()} == {'internal': ('active', 0)}
    for name in (juju.model, f'admin/{juju.model}', f'{controller}:admin/{juju.model}', f'{controller}:{juju.model}'):
        assert juju.show_model(name).model_uuid == info.model_uuid
        assert Juju(model=name).show_model().model_uuid == info.model_uuid
        assert Juju(model=name).status().model.name == juju.model
    with pytest.raises(jubilant.CLIError):
        juju.show_model(f'nobody/{juju.model}')


def test_a_second_controller_is_bootstrapped_beside_the_first(controller: str):
    juju = Juju()
    juju.bootstrap('localhost', 'second', model_defaults={'hook-timeout': '1m'}, force=True)
    try:
        assert juju.cli('switch', include_model=False).split(':')[0].split()[0] == controller, 'it was not switched to'
        juju.add_model('there', controller='second')
        assert juju.status().model.controller == 'second'
        assert juju.model_config()['hook-timeout'] == '1m'
        with pytest.raises(jubilant.CLIError) as error:
            juju.bootstrap('localhost', 'second')
        assert 'already exists' in error.value.stderr
    finally:
        juju.cli('kill-controller', 'second', '--no-prompt', include_model=False)
    for arguments, text in [
        ({'cloud': 'aws', 'controller': 'third'}, 'cannot hold a controller'),
        ({'cloud': 'localhost', 'controller': 'third', 'to': 'zone=a'}, 'bootstrap --to is not supported'),
        ({'cloud': 'localhost', 'controller': 'third', 'model_defaults': {'no-such-key': 1}}, 'no-such-key'),
    ]:
        with pytest.raises(jubilant.CLIError) as error:
            juju.bootstrap(**arguments)
        assert error.value.returncode == 1 and text in error.value.stderr
    assert 'third' not in juju.cli('controllers', include_model=False)


def test_the_version_is_taken_apart(juju: Juju):
    version = juju.version()
    assert str(version) == juju.cli('version', include_model=False).strip()
    assert version.tuple >= (3, 6)
    assert version.release == 'linux'
    number = '.'.join(map(str, version.tuple))
    assert juju.status().model.version == number == juju.show_model().agent_version
    told = json.loads(juju.cli('version', '--all', '--format', 'json', include_model=False))
    own = json.loads(juju.cli('status', '--format', 'json'))['controller']['periapt-version']
    assert told['periapt-version'] == own and own not in (number, '')
