"""Secrets of the model's users, and those that charms make."""

from __future__ import annotations

import datetime
import hashlib
import json

import jubilant
import pytest
from conftest import Juju

CONTENT = {'username': 'usr', 'password': 'hunter2'}


@pytest.fixture(scope='module')
def uri(juju: Juju) -> jubilant.SecretURI:
    uri = juju.add_secret('sec1', CONTENT, info='A description.')
    assert isinstance(uri, jubilant.SecretURI) and uri.startswith('secret:')
    juju.add_secret('sec2', {'key': 'multi\nline: yes'})
    juju.update_secret('sec2', {'key': 'second'}, info='- changed')
    return uri


def test_secrets_are_listed_in_the_order_in_which_they_were_made(juju: Juju, uri):
    first, second = juju.secrets()
    assert (first.uri, first.name, first.owner, first.revision) == (uri, 'sec1', '<model>', 1)
    assert first.description == 'A description.' and first.label is None and first.rotation is None
    now = datetime.datetime.now(datetime.timezone.utc)
    assert now - first.created < datetime.timedelta(minutes=10) and first.created == first.updated
    assert (second.name, second.revision, second.description) == ('sec2', 2, '- changed')
    assert juju.secrets(owner='application-nobody') == []
    model = juju.cli('show-secret', 'sec1', '--format', 'json')
    assert list(json.loads(model)) == [uri.unique_identifier]


def test_a_secret_is_shown_and_revealed_by_name_and_uri(juju: Juju, uri):
    shown = juju.show_secret('sec1')
    assert not hasattr(shown, 'content') and shown.revisions is None and shown.access is None
    assert 'hunter2' not in juju.cli('show-secret', 'sec1', '--reveal', '--reveal=false')
    for identifier in ('sec1', uri, uri.unique_identifier):
        revealed = juju.show_secret(identifier, reveal=True)
        assert revealed.content == CONTENT and revealed.uri == uri
    encoded = b'{"password":"aHVudGVyMg==","username":"dXNy"}'
    assert revealed.checksum == hashlib.sha256(encoded).hexdigest()


def test_revisions_have_content_of_their_own(juju: Juju, uri):
    assert juju.show_secret('sec2', reveal=True, revision=1).content == {'key': 'multi\nline: yes'}
    assert juju.show_secret('sec2', reveal=True, revision=2).content == {'key': 'second'}
    shown = juju.show_secret('sec2', revisions=True)
    assert [revision.revision for revision in shown.revisions or []] == [1, 2]
    assert {revision.backend for revision in shown.revisions or []} == {'internal'}
    juju.remove_secret('sec2', revision=1)
    assert [revision.revision for revision in juju.show_secret('sec2', revisions=True).revisions or []] == [2]


def test_a_secret_is_renamed_granted_to_a_charm_and_read_by_it(juju: Juju, uri, charm):
    juju.deploy(charm('probe'), config={'script': 'act: open-token'})
    juju.wait(jubilant.all_agents_idle)
    juju.update_secret(uri, {'token': 'opensesame'}, name='door', auto_prune=True)
    juju.grant_secret('door', 'probe')
    [access] = juju.show_secret('door').access or []
    assert (access.target, access.role) == ('application-probe', 'view')
    juju.config('probe', {'token': uri})
    assert juju.config('probe')['token'] == uri
    assert isinstance(juju.config('probe')['token'], jubilant.SecretURI)
    juju.wait(jubilant.all_agents_idle)
    juju.run('probe/0', 'act')
    # The charm writes backwards what it has read, so that no log holds what a secret holds.
    assert any('opened token=emasesnepo' in line for line in juju.debug_log().splitlines())
    assert 'opensesame' not in juju.debug_log()


def test_a_charms_secret_has_its_owner(juju: Juju, charm):
    juju.deploy(charm('tls-certificates'), 'ca')
    juju.wait(lambda status: bool(juju.secrets(owner='application-ca')))
    [secret] = juju.secrets(owner='application-ca')
    assert secret.owner == 'ca' and secret.name is None and secret.label
    assert (secret.rotation, secret.expires) == ('yearly', None)
    # Without a tag, which Juju refuses.
    assert juju.secrets(owner='ca') == [secret] and juju.secrets(owner='unit-ca-0') == []
    users = juju.secrets(owner=f'model-{juju.show_model().model_uuid}')
    assert {user.owner for user in users} == {'<model>'}
    with pytest.raises(jubilant.CLIError, match='invalid owner "a b"'):
        juju.secrets(owner='a b')


def test_removed_and_unknown_secrets_are_errors(juju: Juju, uri):
    juju.remove_secret('sec2')
    assert 'sec2' not in [secret.name for secret in juju.secrets()]
    for call in (
        lambda: juju.show_secret('sec2'),
        lambda: juju.remove_secret('sec2'),
        lambda: juju.grant_secret('sec2', 'probe'),
        lambda: juju.add_secret('door', CONTENT),
        lambda: juju.add_secret('empty', {}),
    ):
        with pytest.raises(jubilant.CLIError) as error:
            call()
        assert error.value.returncode == 1
