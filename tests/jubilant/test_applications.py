"""Applications: deployed, waited for, related, configured, scaled, refreshed, removed."""

from __future__ import annotations

import json

import jubilant
import pytest
from conftest import Juju


@pytest.fixture(scope='module', autouse=True)
def shop(juju: Juju, charm) -> None:
    juju.deploy(charm('mysql'), num_units=2, config={'max-connections': 200})
    juju.deploy(str(charm('wordpress')), 'blog', config={'port': 8080, 'debug': True, 'blog-title': 'a = b'})
    juju.wait(lambda status: jubilant.all_blocked(status, 'blog') and jubilant.all_active(status, 'mysql'))
    juju.integrate('blog', 'mysql')
    juju.wait(lambda status: jubilant.all_active(status) and jubilant.all_agents_idle(status), error=jubilant.any_error)


def test_a_status_holds_what_is_asserted_of_it(juju: Juju):
    status = juju.status()
    blog, mysql = status.apps['blog'], status.apps['mysql']
    assert (blog.charm, blog.charm_name, blog.charm_rev, blog.charm_origin) == (
        'local:wordpress-0',
        'wordpress',
        0,
        'local',
    )
    assert blog.base == jubilant.statustypes.FormattedBase(name='wasi', channel='0.2')
    assert blog.is_active and blog.app_status.message == 'serving "a = b" on port 8080, 1 unit'
    assert not blog.exposed and blog.version == '6.8' and blog.life == ''
    [relation] = blog.relations['db']
    assert (relation.related_app, relation.interface, relation.scope) == ('mysql', 'mysql', 'global')
    assert mysql.relations['db'][0].related_app == 'blog'
    assert list(mysql.units) == ['mysql/0', 'mysql/1']
    assert [unit.leader for unit in mysql.units.values()].count(True) == 1

    unit = blog.units['blog/0']
    assert unit.leader and unit.is_active and unit.open_ports == ['8080/tcp']
    assert unit.workload_status.current == 'active' and unit.workload_status.since
    assert unit.juju_status.current == 'idle'
    machine = status.machines[unit.machine]
    assert machine.juju_status.current == 'started' and machine.machine_status.current == 'running'
    assert machine.instance_id == 'first'
    assert unit.address == unit.public_address == machine.dns_name
    assert status.get_units('mysql') == mysql.units
    assert status.controller.timestamp


def test_the_predicates_tell_one_status_from_another(juju: Juju):
    status = juju.status()
    assert jubilant.all_active(status) and jubilant.all_active(status, 'blog', 'mysql')
    assert jubilant.any_active(status, 'blog')
    assert jubilant.all_agents_idle(status, 'blog')
    for word in ('blocked', 'error', 'maintenance', 'waiting'):
        assert not getattr(jubilant, f'any_{word}')(status)
        assert not getattr(jubilant, f'all_{word}')(status)


def test_a_wait_ends_by_success_by_error_and_by_its_time(juju: Juju):
    assert juju.wait(jubilant.all_active, successes=3).apps['blog'].is_active
    with pytest.raises(jubilant.WaitError):
        juju.wait(jubilant.all_blocked, error=jubilant.all_active)
    with pytest.raises(TimeoutError):
        juju.wait(jubilant.all_blocked, timeout=0.3)


def test_a_unit_is_shown_with_its_relations(juju: Juju):
    info = juju.show_unit('blog/0')
    assert (info.charm, info.leader, info.life) == ('local:wordpress-0', True, 'alive')
    assert (info.opened_ports, info.workload_version) == (['8080/tcp'], '6.8')
    assert info.machine == juju.status().apps['blog'].units['blog/0'].machine
    assert info.public_address
    [relation] = [relation for relation in info.relation_info if relation.endpoint == 'db']
    assert relation.related_endpoint == 'db' and not relation.cross_model
    assert set(relation.related_units) == {'mysql/0', 'mysql/1'}
    assert relation.app_data['database'].startswith('blog')
    assert relation.related_units['mysql/0'].in_scope
    assert relation.related_units['mysql/0'].data['ingress-address']
    assert relation.local_unit is not None and relation.local_unit.in_scope
    with pytest.raises(jubilant.CLIError) as error:
        juju.show_unit('blog/42')
    assert 'blog/42' in error.value.stderr


def test_settings_are_shown_changed_and_reset(juju: Juju):
    assert juju.config('blog') == {'blog-title': 'a = b', 'port': 8080, 'debug': True}
    juju.config('blog', {'blog-title': "it's", 'debug': False}, reset='port')
    assert juju.config('blog') == {'blog-title': "it's", 'port': 80, 'debug': False}
    juju.config('blog', {'port': 8081})
    juju.wait(lambda status: status.apps['blog'].units['blog/0'].open_ports == ['8081/tcp'])
    juju.config('blog', reset=['blog-title', 'debug'])
    assert juju.config('blog') == {'blog-title': 'My Blog', 'port': 8081, 'debug': False}
    for wrong in ({'prot': 1}, {'port': 'x'}):
        with pytest.raises(jubilant.CLIError) as error:
            juju.config('blog', wrong)
        assert next(iter(wrong)) in error.value.stderr
    assert juju.config('blog')['port'] == 8081


def test_trust_is_given_and_taken(juju: Juju):
    assert juju.config('blog', app_config=True)['trust'] is False
    juju.trust('blog', scope='cluster')
    assert juju.config('blog', app_config=True)['trust'] is True
    juju.trust('blog', remove=True, scope='cluster')
    assert juju.config('blog', app_config=True)['trust'] is False


def test_units_come_and_go(juju: Juju):
    juju.add_unit('mysql', num_units=2)
    juju.wait(lambda status: len(status.apps['mysql'].units) == 4 and jubilant.all_active(status, 'mysql'))
    juju.remove_unit('mysql', num_units=1)
    juju.wait(lambda status: 'mysql/3' not in status.apps['mysql'].units)
    juju.remove_unit('mysql/1', 'mysql/2', force=True, destroy_storage=True)
    status = juju.wait(lambda status: list(status.apps['mysql'].units) == ['mysql/0'])
    assert status.apps['mysql'].units['mysql/0'].leader
    with pytest.raises(jubilant.CLIError):
        juju.remove_unit('mysql/42')
    with pytest.raises(jubilant.CLIError) as error:
        juju.remove_unit('mysql')
    assert 'is an application' in error.value.stderr


def test_a_charm_is_refreshed(juju: Juju, charm):
    juju.refresh('blog', path=charm('wordpress'))
    assert juju.status().apps['blog'].charm_rev == 0, 'the same charm is nothing new, and no error'
    with pytest.raises(jubilant.CLIError) as error:
        juju.refresh('blog')
    assert '--path' in error.value.stderr
    juju.refresh('blog', path=charm('wordpress', 'next'), config={'blog-title': 'Next'}, trust=True, force=True)
    status = juju.wait(
        lambda status: (
            status.apps['blog'].units['blog/0'].upgrading_from == ''
            and jubilant.all_agents_idle(status, 'blog')
            and status.apps['blog'].charm_rev == 1
        )
    )
    assert status.apps['blog'].charm == 'local:wordpress-1'
    assert juju.config('blog')['blog-title'] == 'Next'
    assert juju.config('blog', app_config=True)['trust'] is True


def test_a_subordinate_stands_with_its_principal(juju: Juju, charm):
    juju.deploy(charm('log-shipper'), 'shipper')
    juju.integrate('shipper:host', 'mysql')
    status = juju.wait(lambda status: len(status.get_units('shipper')) == 1 and jubilant.all_agents_idle(status))
    assert status.apps['shipper'].subordinate_to == ['mysql']
    assert not status.apps['shipper'].units
    [(name, unit)] = status.get_units('shipper').items()
    assert name == 'shipper/0' and unit.leader
    assert status.apps['mysql'].units['mysql/0'].subordinates[name] == unit
    assert status.apps['shipper'].relations['host'][0].scope == 'container'
    [related] = status.apps['mysql'].relations['juju-info']
    assert (related.related_app, related.interface, related.scope) == ('shipper', 'juju-info', 'container')
    juju.remove_application('shipper')
    juju.wait(lambda status: 'shipper' not in status.apps)


def test_what_is_deployed_wrongly_is_refused(juju: Juju, charm, tmp_path):
    for name, arguments, text in [
        (charm('mysql'), {}, 'already exists'),
        ('no-such-charm', {}, 'no-such-charm'),
        (tmp_path / 'none.charm', {}, 'none.charm'),
        (charm('mysql'), {'app': 'two', 'config': {'nothing': 1}}, 'nothing'),
        (charm('mysql'), {'app': 'two', 'channel': 'edge'}, 'there is no store of charms'),
        (charm('mysql'), {'app': 'two', 'constraints': {'cores': 'many'}}, 'cores'),
        (charm('mysql'), {'app': 'two', 'revision': 3}, 'there is no store of charms'),
        (charm('mysql'), {'app': 'two', 'constraints': {'arch': 'z80'}}, 'z80'),
        (charm('mysql'), {'app': 'two', 'to': '42'}, '42'),
        (charm('mysql'), {'app': 'two', 'attach_storage': 'data/7'}, 'data/7'),
        (charm('mysql'), {'app': 'two', 'resources': {'image': './x'}}, 'image'),
    ]:
        with pytest.raises(jubilant.CLIError) as error:
            juju.deploy(name, **arguments)
        assert error.value.returncode == 1
        assert text in error.value.stderr
    assert set(juju.status().apps) == {'blog', 'mysql'}


def test_the_log_tells_what_units_said(juju: Juju):
    everything = juju.debug_log().splitlines()
    assert any(line.startswith('unit-blog-0: ') for line in everything)
    # The leader made the account, and said so.
    assert any(line.startswith('unit-mysql-') for line in everything)
    newest = juju.debug_log(limit=5).splitlines()
    assert len(newest) == 5 and newest == everything[-5:]


def test_relations_and_applications_are_removed(juju: Juju):
    juju.remove_relation('blog:db', 'mysql:db')
    juju.wait(lambda status: 'db' not in status.apps['blog'].relations and jubilant.all_blocked(status, 'blog'))
    with pytest.raises(jubilant.CLIError):
        juju.remove_relation('blog', 'mysql')
    juju.integrate('blog', 'mysql')
    juju.wait(lambda status: jubilant.all_active(status, 'blog'))
    juju.remove_application('blog', 'mysql', destroy_storage=True, force=True)
    status = juju.wait(lambda status: not status.apps and not status.machines)
    assert json.loads(juju.cli('status', '--format', 'json'))['applications'] == {}
    assert status.machines == {}
