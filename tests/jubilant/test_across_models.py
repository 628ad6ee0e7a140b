"""Offers of one model, consumed by another."""

from __future__ import annotations

import jubilant
import pytest
from conftest import Juju


def test_an_offer_is_consumed_related_and_removed(juju: Juju, other: Juju, charm):
    juju.deploy(charm('mysql'))
    juju.offer('mysql', endpoint='db', name='store')
    # With the model, its owner and its controller before the application's name.
    juju.offer(f'admin/{juju.model}.mysql', endpoint=['db'], name='second', controller='local')
    qualified = Juju(model=f'local:admin/{juju.model}')
    qualified.offer('mysql', endpoint='db', name='third')
    assert set(juju.status().offers) == {'second', 'store', 'third'}
    assert 'store' in juju.cli('offers')

    other.deploy(charm('wordpress'))
    other.consume(f'{juju.model}.store', 'database', owner='admin', controller='local')
    other.consume(f'{juju.model}.second')
    other.integrate('wordpress', 'database')
    status = other.wait(lambda status: jubilant.all_active(status))
    remote = status.app_endpoints['database']
    assert remote.url == f'admin/{juju.model}.store'
    assert remote.endpoints['db'].interface == 'mysql' and remote.endpoints['db'].role == 'provider'
    assert remote.app_status.current == 'active' and remote.relations == {'db': ['wordpress']}
    assert 'second' in status.app_endpoints
    [relation] = status.apps['wordpress'].relations['db']
    assert (relation.related_app, relation.interface) == ('database', 'mysql')
    [shown] = [info for info in other.show_unit('wordpress/0').relation_info if info.endpoint == 'db']
    assert shown.cross_model and shown.app_data['database']

    offer = juju.wait(lambda status: status.offers['store'].active_connected_count == 1).offers['store']
    assert (offer.app, offer.charm, offer.total_connected_count) == ('mysql', 'local:mysql-0', 1)
    assert offer.endpoints['db'].role == 'provider'

    other.remove_relation('wordpress', 'database')
    other.wait(lambda status: jubilant.all_blocked(status, 'wordpress'))
    for alias in ('database', 'second'):
        other.cli('remove-saas', alias)
    other.wait(lambda status: not status.app_endpoints)
    for name in ('store', 'second', 'third'):
        juju.cli('remove-offer', f'{juju.model}.{name}', '--no-prompt', include_model=False)
    assert juju.status().offers == {}


def test_what_is_not_offered_cannot_be_consumed(juju: Juju, other: Juju):
    with pytest.raises(jubilant.CLIError) as error:
        other.consume(f'{juju.model}.nothing')
    assert 'nothing' in error.value.stderr
    with pytest.raises(jubilant.CLIError):
        juju.offer('nobody', endpoint='db')
