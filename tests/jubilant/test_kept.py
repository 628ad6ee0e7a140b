"""Clouds, credentials and keys, which are kept for Juju's clients and have no effect."""

from __future__ import annotations

import json

import jubilant
import pytest
from conftest import Juju

KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMWk9a2vTqCdRZlJ+0SoOAmZDJAfQTvuXULOZrkN8Z4R jane@host'


def definition(name: str, endpoint: str) -> dict:
    regions = {'dev-region': {'endpoint': endpoint}}
    return {'clouds': {name: {'type': 'openstack', 'auth-types': ['userpass'], 'regions': regions}}}


@pytest.mark.parametrize('place', [{'client': True}, {'controller': 'local'}])
def test_a_cloud_is_kept_changed_and_forgotten(juju: Juju, place: dict, tmp_path):
    option = ['--client'] if 'client' in place else ['--controller', 'local']

    def shown(*arguments: str) -> str:
        return juju.cli('show-cloud', *option, 'mystack', *arguments, include_model=False)

    juju.add_cloud('mystack', definition('mystack', 'https://one:5000/v3'), **place)
    assert 'https://one:5000/v3' in shown()
    [cloud] = json.loads(shown('--format', 'json'))
    assert (cloud['name'], cloud['type'], cloud['auth-types']) == ('mystack', 'openstack', ['userpass'])
    with pytest.raises(jubilant.CLIError) as error:
        juju.add_cloud('mystack', definition('mystack', 'https://two:5000/v3'), **place)
    assert 'already exists' in error.value.stderr

    file = tmp_path / 'clouds.yaml'
    file.write_text(json.dumps(definition('mystack', 'https://two:5000/v3')))
    juju.update_cloud('mystack', file, **place)
    assert 'https://two:5000/v3' in shown() and 'https://one' not in shown()
    assert 'mystack' in juju.cli('clouds', *option, include_model=False)
    juju.cli('remove-cloud', *option, 'mystack', include_model=False)
    with pytest.raises(jubilant.CLIError):
        shown()
    with pytest.raises(jubilant.CLIError) as error:
        juju.add_cloud('mystack', definition('another', 'https://one'), **place)
    assert 'not found in file' in error.value.stderr


def test_client_and_controller_keep_a_cloud_of_their_own(juju: Juju):
    juju.add_cloud('both', definition('both', 'https://one'), client=True, controller='local')
    juju.update_cloud('both', definition('both', 'https://two'), client=True)
    assert 'https://two' in juju.cli('show-cloud', 'both', '--client', include_model=False)
    assert 'https://one' in juju.cli('show-cloud', 'both', '--controller', 'local', include_model=False)
    juju.cli('remove-cloud', 'both', '--client', '--controller', 'local', include_model=False)


def test_credentials_are_kept_and_what_is_secret_of_them_stays_with_the_client(juju: Juju):
    credential = {'auth-type': 'access-key', 'access-key': 'fake-access-key', 'secret-key': 'fake-secret-key'}
    juju.add_credential('aws', {'credentials': {'aws': {'cred1': credential}}}, client=True, region='eu')
    listed = json.loads(juju.cli('credentials', '--format', 'json', include_model=False))
    kept = listed['client-credentials']['aws']['cloud-credentials']['cred1']
    assert kept == {'auth-type': 'access-key', 'details': {'access-key': 'fake-access-key'}}
    assert 'fake-secret-key' in juju.cli('credentials', '--show-secrets', '--format', 'yaml', include_model=False)

    juju.add_credential('aws', {'credentials': {'aws': {'cred1': credential}}}, controller='local')
    listed = juju.cli('credentials', '--controller', 'local', '--format', 'json', '--show-secrets', include_model=False)
    kept = json.loads(listed)['controller-credentials']['aws']['cloud-credentials']['cred1']
    assert kept == {'auth-type': 'access-key'}
    shown = json.loads(juju.cli('show-credential', 'aws', 'cred1', '--format', 'json', include_model=False))
    assert shown['client-credentials']['aws']['cred1']['content']['auth-type'] == 'access-key'
    juju.cli('remove-credential', 'aws', 'cred1', '--client', '--controller', 'local', include_model=False)
    assert json.loads(juju.cli('credentials', '--format', 'json', include_model=False)) == {}


def test_a_model_takes_a_credential_that_is_kept(juju: Juju):
    mine = {'credentials': {'localhost': {'mine': {'auth-type': 'empty'}}}}
    juju.add_credential('localhost', mine, client=True)
    for cloud in (None, 'localhost'):
        with jubilant.temp_model(cloud=cloud, credential='mine') as model:
            assert model.status().model.cloud == 'periapt'
    with pytest.raises(jubilant.CLIError) as error:
        Juju().add_model('elsewhere', credential='nobodys')
    assert 'credential "nobodys"' in error.value.stderr and 'not found' in error.value.stderr
    juju.cli('remove-credential', 'localhost', 'mine', '--client', include_model=False)


def test_keys_are_kept_in_the_model(juju: Juju):
    juju.add_ssh_key(KEY, 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 john@host')
    assert KEY in juju.cli('ssh-keys', '--full').splitlines()
    for call in (lambda: juju.add_ssh_key(KEY), lambda: juju.add_ssh_key('no key'), lambda: juju.remove_ssh_key('nobody')):
        with pytest.raises(jubilant.CLIError) as error:
            call()
        assert error.value.returncode == 1
    juju.remove_ssh_key(KEY, 'john@host')
    assert juju.cli('ssh-keys') == ''
