"""Users and groups of the container; its /etc has the user and the group `worker`, of 1234 and 2345."""

import ops
from ops.pebble import APIError, PathError

from .probing import Probes, equal, raises, text_of, until
from .services import layered

PROBES = Probes()

WORKER = (1234, "worker", 2345, "worker")


def _owner(container: ops.Container, path: str) -> tuple[int | None, str | None, int | None, str | None]:
    [found] = container.list_files(path, itself=True)
    return found.user_id, found.user, found.group_id, found.group


@PROBES
def files_of_users(container: ops.Container, place: str) -> None:
    container.push(f"{place}/named", "data", user="worker", group="worker", permissions=0o600)
    equal(_owner(container, f"{place}/named"), WORKER)
    container.push(f"{place}/numbered", "data", user_id=1234, group_id=2345)
    equal(_owner(container, f"{place}/numbered"), WORKER)
    # The user's own group.
    container.push(f"{place}/a/file", "data", user="worker", make_dirs=True)
    equal([_owner(container, f"{place}/a/file"), _owner(container, f"{place}/a")], [WORKER, WORKER])
    container.make_dir(f"{place}/b/directory", user="worker", group="worker", make_parents=True)
    equal(_owner(container, f"{place}/b"), WORKER)
    container.make_dir(f"{place}/directory", user="worker", group="root")
    equal(_owner(container, f"{place}/directory"), (1234, "worker", 0, "root"))
    with raises(PathError, kind="generic-file-error"):
        container.push(f"{place}/bad", "data", user="nobody-of-this-name")
    with raises(PathError, kind="generic-file-error"):
        container.push(f"{place}/bad", "data", user="worker", user_id=1)


@PROBES
def commands_of_users(container: ops.Container, place: str) -> None:
    identity = ["sh", "-c", "echo $(id -u) $(id -g)"]
    equal(container.exec(identity, user="worker", group="worker").wait_output()[0], "1234 2345\n")
    equal(container.exec(identity, user_id=1234, group_id=2345).wait_output()[0], "1234 2345\n")
    equal(container.exec(identity).wait_output()[0], "0 0\n")
    with raises(APIError):
        container.exec(identity, user="nobody-of-this-name")


@PROBES
def services_of_users(container: ops.Container, place: str) -> None:
    container.make_dir(f"{place}/own", user="worker", group="worker")
    command = f"sh -c 'id -u >{place}/own/id; exec sleep 1000'"
    with layered(container, owned={"command": command, "user": "worker", "group": "worker"}):
        container.start("owned")
        until("the service's file", lambda: text_of(container, f"{place}/own/id"))
        equal(text_of(container, f"{place}/own/id"), "1234\n")
        equal(_owner(container, f"{place}/own/id"), WORKER)
