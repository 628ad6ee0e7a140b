"""Storage and resources."""

from __future__ import annotations

import jubilant
from conftest import Juju


def test_storage_is_in_the_status(juju: Juju, charm):
    juju.deploy(charm('backup'), storage={'data': '32M'})
    status = juju.wait(lambda status: jubilant.all_agents_idle(status) and bool(status.storage.storage))
    storage = status.storage.storage['data/0']
    assert (storage.kind, storage.status.current, storage.persistent) == ('filesystem', 'attached', True)
    assert storage.attachments is not None
    attachment = storage.attachments.units['backup/0']
    assert attachment.location == '/srv/backups' and attachment.machine == status.apps['backup'].units['backup/0'].machine
    [filesystem] = status.storage.filesystems.values()
    assert (filesystem.size, filesystem.storage, filesystem.status.current) == (32, 'data/0', 'attached')
    assert not status.storage.volumes
    juju.remove_unit('backup/0')
    juju.wait(lambda status: not status.apps['backup'].units)
    assert juju.status().storage.storage['data/0'].status.current == 'detached'
    juju.remove_application('backup', destroy_storage=True)


def test_a_size_alone_is_one_instance_of_storage_that_a_charm_can_do_without(juju: Juju, charm):
    juju.deploy(charm('probe'), 'sized', storage={'scratch': '2M'})
    status = juju.wait(lambda status: jubilant.all_agents_idle(status, 'sized') and bool(status.apps['sized'].units))
    held = status.storage.storage.values()
    assert ['sized/0' in (storage.attachments.units if storage.attachments else {}) for storage in held].count(True) == 1
    juju.remove_application('sized', destroy_storage=True)


def test_resources_come_with_deploying_and_refreshing(juju: Juju, charm, tmp_path):
    (tmp_path / 'one.txt').write_text('first')
    (tmp_path / 'two.txt').write_text('second')
    script = {'script': 'act: resource data'}
    juju.deploy(charm('probe'), config=script, resources={'data': str(tmp_path / 'one.txt')})
    juju.wait(lambda status: jubilant.all_agents_idle(status, 'probe'))
    juju.run('probe/0', 'act')
    assert 'first' in juju.debug_log()
    juju.refresh('probe', path=charm('probe'), resources={'data': str(tmp_path / 'two.txt')})
    juju.wait(lambda status: jubilant.all_agents_idle(status, 'probe'))
    juju.run('probe/0', 'act')
    assert 'second' in juju.debug_log()
