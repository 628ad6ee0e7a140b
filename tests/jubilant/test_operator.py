"""A suite as a charm's author writes it, for the plugin pytest-jubilant, with what such suites do in all weathers.

What is said that has no counterpart here (an operating system, an architecture, levels of Juju's own log) is taken.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import subprocess
import time

import jubilant
import pytest
import pytest_jubilant
from conftest import ROOT, Juju, guests

logger = logging.getLogger(__name__)

APP = 'database'
ARCH = {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine())


def shown(juju: Juju, *command: str) -> dict:
    return json.loads(juju.cli(*command, '--format', 'json'))


def test_what_was_packed_is_told_to_programs(binary, charm, tmp_path):
    archive = tmp_path / 'mysql.charm'
    wasm = guests() / 'mysql.wasm'
    command = [binary, 'pack', ROOT / 'charms/mysql', '--wasm', wasm, '-o', archive, '--format', 'json', '--quiet']
    told = json.loads(subprocess.run(command, check=True, capture_output=True, encoding='utf-8').stdout)
    assert told['charms'] == [str(archive)] and told['name'] == 'mysql' and told['warnings'] == []
    assert told['bytes'] == archive.stat().st_size
    assert told['digest'] == hashlib.sha256(archive.read_bytes()).hexdigest()


@pytest.mark.juju_setup
def test_build_and_deploy(juju: Juju, charm):
    juju.model_config({'logging-config': '<root>=INFO;unit=DEBUG', 'update-status-hook-interval': '10s'})
    juju.deploy(
        charm('mysql'),
        app=APP,
        base='ubuntu@24.04',
        bind={'db': 'alpha'},
        config={'max-connections': 300},
        constraints={'arch': ARCH, 'mem': '256M'},
        num_units=2,
        trust=True,
    )
    juju.deploy(charm('wordpress'), app='blog', base='ubuntu@22.04', force=True, bind='alpha')
    juju.integrate(f'{APP}:db', 'blog:db')
    config = juju.model_config()
    assert config['logging-config'] == '<root>=INFO;unit=DEBUG' and config['update-status-hook-interval'] == '10s'
    status = juju.wait(
        lambda status: jubilant.all_active(status, APP, 'blog') and jubilant.all_agents_idle(status),
        error=lambda status: jubilant.any_error(status, APP, 'blog'),
        timeout=120,
        successes=1,
    )
    assert status.apps[APP].scale == len(status.apps[APP].units) == 2
    assert status.model.region and status.model.cloud
    assert juju.config(APP, app_config=True)['trust'] is True


def test_what_clients_read_beside_the_status(juju: Juju):
    application = shown(juju, 'show-application', APP)[APP]
    assert application['charm'] == 'mysql' and application['base'] == 'wasi@0.2'
    assert application['endpoint-bindings']['db'] == 'alpha' and application['constraints'] == {'mem': 256}
    unit = shown(juju, 'show-unit', f'{APP}/0', '--endpoint', 'db', '--app')[f'{APP}/0']
    [relation] = unit['relation-info']
    assert 'local-unit' not in relation and 'related-units' not in relation and relation['application-data'] == {}
    assert 'blog' in juju.cli('status', '--relations', '--storage', '--color')
    assert shown(juju, 'spaces')['spaces'] and shown(juju, 'machines')
    assert shown(juju, 'constraints', APP) == {'mem': 256}
    assert juju.cli('constraints', APP).strip() == 'mem=256M'
    assert '[' not in juju.cli('debug-log', '--replay', '--no-tail', '--no-color', '--level', 'ERROR', '--utc')
    assert json.loads(juju.cli('users', '--format', 'json', include_model=False))[0]['user-name'] == 'admin'
    assert json.loads(juju.cli('whoami', '--format', 'json', include_model=False))['user'] == 'admin'
    with pytest.raises(jubilant.CLIError) as error:
        juju.cli('find-offers', '--interface', 'no-such-interface', '--format', 'json')
    assert 'no matching application offers found' in error.value.stderr


def test_an_action_on_the_leader(juju: Juju, charm):
    juju.deploy(charm('probe'), 'helper')
    juju.wait(lambda status: jubilant.all_agents_idle(status, 'helper') and bool(status.apps['helper'].units))
    started = time.monotonic()
    task = juju.run('helper/leader', 'greet', {'whom': 'operator'})
    assert task.success and time.monotonic() - started < 60
    assert shown(juju, 'show-task', task.id)['status'] == 'completed'
    [operation] = shown(juju, 'operations', '--units', 'helper/0', '--limit', '1').values()
    assert operation['status'] == 'completed'


def test_scaling(juju: Juju):
    juju.add_unit(APP)
    juju.wait(lambda status: status.apps[APP].scale == 3 and jubilant.all_active(status, APP))
    assert f'will remove unit {APP}/2' in juju.cli('remove-unit', f'{APP}/2', '--dry-run')
    juju.remove_unit(f'{APP}/2')
    juju.wait(lambda status: status.apps[APP].scale == 2 and jubilant.all_active(status, APP))


def test_upgrade(juju: Juju, charm):
    juju.refresh(APP, path=charm('mysql', 'next'), base='ubuntu@24.04', config={'max-connections': 301})
    juju.wait(lambda status: status.apps[APP].charm_rev == 1 and jubilant.all_active(status, APP, 'blog'))
    assert juju.config(APP)['max-connections'] == 301


def test_across_models(juju: Juju, juju_factory: pytest_jubilant.JujuFactory, charm):
    second = juju_factory.get_juju('second')
    juju.cli('offer', f'{APP}:db', 'shared')
    second.deploy(charm('wordpress'), 'blog')
    second.cli('consume', f'admin/{juju.model}.shared')
    second.cli('relate', 'blog', 'shared')
    second.wait(lambda status: jubilant.all_active(status, 'blog'), delay=0.1, timeout=120)


@pytest.mark.juju_teardown
def test_teardown(juju: Juju):
    juju.remove_relation(APP, 'blog')
    juju.remove_application('blog', force=True, destroy_storage=True)
    juju.wait(lambda status: 'blog' not in status.apps)
    logger.info('%s', juju.debug_log(limit=50))
