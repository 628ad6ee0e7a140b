"""Notices and identities, and what Pebble says of itself."""

import datetime
import os
from typing import Any

import ops
from ops.pebble import APIError, Identity, IdentityAccess, NoticeType

from .probing import Probes, equal, raises

PROBES = Probes()


def _key() -> str:
    return f"example.com/{os.urandom(8).hex()}"


@PROBES
def notify_and_get_notice(container: ops.Container, place: str) -> None:
    client, once, twice = container.pebble, _key(), _key()
    first = client.notify(NoticeType.CUSTOM, once)
    second = client.notify(NoticeType.CUSTOM, twice, data={"x": "y"})
    equal(client.notify(NoticeType.CUSTOM, twice, data={"k": "v", "foo": "bar"}), second)
    notice = container.get_notice(first)
    equal((notice.id, notice.type, notice.key, notice.occurrences), (first, NoticeType.CUSTOM, once, 1))
    equal((notice.last_data, notice.repeat_after), ({}, None))
    equal(notice.first_occurred, notice.last_occurred)
    equal(notice.expire_after, datetime.timedelta(days=7))
    notice = container.get_notice(second)
    equal((notice.key, notice.occurrences, notice.last_data), (twice, 2, {"k": "v", "foo": "bar"}))
    assert notice.first_occurred < notice.last_occurred == notice.last_repeated, notice


@PROBES
def get_notices(container: ops.Container, place: str) -> None:
    client, keys = container.pebble, [_key(), _key(), _key()]
    for key in keys:
        client.notify(NoticeType.CUSTOM, key)
    equal([notice.key for notice in container.get_notices(keys=keys)], keys)
    equal([notice.key for notice in container.get_notices(keys=[keys[2], keys[0]])], [keys[0], keys[2]])
    found = {notice.key for notice in container.get_notices(types=[NoticeType.CUSTOM])}
    assert set(keys) <= found, found
    equal(container.get_notices(keys=keys, types=["other"]), [])
    assert set(keys) <= {notice.key for notice in container.get_notices()}


@PROBES
def repeat_after(container: ops.Container, place: str) -> None:
    client, key = container.pebble, _key()
    for _ in range(2):
        notice_id = client.notify(NoticeType.CUSTOM, key, repeat_after=datetime.timedelta(hours=1))
    notice = container.get_notice(notice_id)
    equal((notice.occurrences, notice.repeat_after), (2, datetime.timedelta(hours=1)))
    equal(notice.first_occurred, notice.last_repeated)


@PROBES
def notices_that_there_are_not(container: ops.Container, place: str) -> None:
    with raises(ops.ModelError):
        container.get_notice("987654321")
    with raises(APIError, code=400):
        container.pebble.notify(NoticeType.CUSTOM, "no-domain")


@PROBES
def identities(container: ops.Container, place: str) -> None:
    client = container.pebble
    given: Any = {"probed": Identity.from_dict({"access": "admin", "local": {"user-id": 4242}})}
    client.replace_identities(given)
    found = client.get_identities()["probed"]
    equal((found.access, found.local.user_id), (IdentityAccess.ADMIN, 4242))
    client.remove_identities({"probed"})
    assert "probed" not in client.get_identities()


@PROBES
def system_info(container: ops.Container, place: str) -> None:
    assert container.can_connect()
    version = container.pebble.get_system_info().version
    assert version and version[0].isdigit() or version.startswith("v"), version
