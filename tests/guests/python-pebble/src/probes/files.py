"""Single files and directories."""

import datetime
import io
import os
import pathlib
import tempfile

import ops
from ops.pebble import APIError, FileType, PathError

from .probing import Probes, contains, equal, raises

PROBES = Probes()


def _pulled(container: ops.Container, path: str, encoding: str | None) -> str | bytes:
    with container.pull(path, encoding=encoding) as file:
        return file.read()


def _mode(container: ops.Container, path: str) -> int:
    return container.list_files(path, itself=True)[0].permissions


@PROBES
def push_and_pull_text(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "foo\nbar\nbaz-42 ü")
    equal(_pulled(container, f"{place}/file", "utf-8"), "foo\nbar\nbaz-42 ü")
    container.push(f"{place}/file", "less")
    equal(_pulled(container, f"{place}/file", "utf-8"), "less")
    container.push(f"{place}/file", "")
    equal(_pulled(container, f"{place}/file", None), b"")


@PROBES
def push_and_pull_bytes(container: ops.Container, place: str) -> None:
    content = bytes(range(256)) + b"\r\n--boundary--\r\n\r\n"
    container.push(f"{place}/file", content)
    equal(_pulled(container, f"{place}/file", None), content)
    # The encoding counts for text alone.
    container.push(f"{place}/file", b"\x00\x01", encoding="utf-8")
    equal(_pulled(container, f"{place}/file", None), b"\x00\x01")


@PROBES
def push_and_pull_encoded(container: ops.Container, place: str) -> None:
    for encoding in ("sjis", "utf-16"):
        container.push(f"{place}/file", "日本語", encoding=encoding)
        equal(_pulled(container, f"{place}/file", encoding), "日本語")
        container.push(f"{place}/file", io.StringIO("日本語"), encoding=encoding)
        equal(_pulled(container, f"{place}/file", encoding), "日本語")
    container.push(f"{place}/file", "ä", encoding="latin-1")
    equal(_pulled(container, f"{place}/file", None), b"\xe4")


@PROBES
def push_from_files(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", io.BytesIO(b"\x00\x01"))
    equal(_pulled(container, f"{place}/file", None), b"\x00\x01")
    with tempfile.TemporaryFile() as source:
        source.write(b"of the charm" * 1000)
        source.seek(0)
        container.push(f"{place}/file", source)
    equal(_pulled(container, f"{place}/file", None), b"of the charm" * 1000)
    # A file of the charm's archive.
    with open("metadata.yaml") as source:
        container.push(f"{place}/file", source)
    contains(_pulled(container, f"{place}/file", "utf-8"), "python-pebble")


@PROBES
def push_and_pull_large(container: ops.Container, place: str) -> None:
    content = os.urandom(3 << 20)
    container.push(f"{place}/file", content)
    equal(container.list_files(f"{place}/file")[0].size, len(content))
    assert _pulled(container, f"{place}/file", None) == content, "other bytes"


@PROBES
def push_makes_directories(container: ops.Container, place: str) -> None:
    with raises(PathError, kind="not-found"):
        container.push(f"{place}/a/b/file", "data")
    container.push(f"{place}/a/b/file", "data", make_dirs=True)
    equal(_pulled(container, f"{place}/a/b/file", "utf-8"), "data")


@PROBES
def push_with_permissions(container: ops.Container, place: str) -> None:
    container.push(f"{place}/usual", "data")
    equal(_mode(container, f"{place}/usual"), 0o644)
    for permissions in (0o600, 0o777, 0o620):
        container.push(f"{place}/file", "data", permissions=permissions)
        equal(_mode(container, f"{place}/file"), permissions)
    for permissions in (0o1000, -1):
        with raises(PathError, kind="generic-file-error"):
            container.push(f"{place}/file", "data", permissions=permissions)


@PROBES
def push_where_no_file_can_be(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "data")
    with raises(PathError, kind="generic-file-error"):
        container.push(f"{place}/file/file", "data")
    with raises(PathError, kind="generic-file-error"):
        container.push("file", "")
    with raises(PathError, kind="generic-file-error"):
        container.push(place, "data")
    equal(_pulled(container, f"{place}/file", "utf-8"), "data")


@PROBES
def pull_what_is_no_file(container: ops.Container, place: str) -> None:
    with raises(PathError, kind="not-found") as raised:
        container.pull("/not/found")
    contains(raised.error.message, "/not/found")
    with raises(PathError, kind="generic-file-error") as raised:
        container.pull(place)
    contains(raised.error.message, place)


@PROBES
def paths_of_pathlib(container: ops.Container, place: str) -> None:
    directory = pathlib.PurePosixPath(place)
    container.make_dir(directory / "below")
    container.push(directory / "below" / "file", "data")
    equal(container.pull(directory / "below" / "file").read(), "data")
    equal([found.path for found in container.list_files(directory / "below")], [f"{place}/below/file"])
    assert container.exists(directory / "below" / "file")
    container.remove_path(directory / "below" / "file")
    equal(container.list_files(directory / "below"), [])


@PROBES
def list_files(container: ops.Container, place: str) -> None:
    container.push(f"{place}/one", "data", permissions=0o620)
    container.push(f"{place}/two", "")
    container.make_dir(f"{place}/three")
    found = {file.name: file for file in container.list_files(f"{place}/")}
    equal({file.path for file in found.values()}, {f"{place}/{name}" for name in ("one", "two", "three")})
    one, three = found["one"], found["three"]
    equal((one.type, one.size, one.permissions), (FileType.FILE, 4, 0o620))
    assert isinstance(one.last_modified, datetime.datetime) and one.last_modified.tzinfo, one
    assert isinstance(one.user_id, int) and isinstance(one.group_id, int), one
    equal((three.type, three.size), (FileType.DIRECTORY, None))
    equal([file.path for file in container.list_files(f"{place}/one")], [f"{place}/one"])


@PROBES
def list_files_by_pattern(container: ops.Container, place: str) -> None:
    for name in ("file1.gz", "file2.tar.gz", "file3.tar.bz2", "backup_file.gz"):
        container.push(f"{place}/{name}", "data")
    found = container.list_files(place, pattern="file*.gz")
    equal({file.name for file in found}, {"file1.gz", "file2.tar.gz"})
    equal(container.list_files(place, pattern="none*"), [])


@PROBES
def list_a_directory_itself(container: ops.Container, place: str) -> None:
    [root] = container.list_files("/", itself=True)
    equal((root.path, root.name, root.type), ("/", "/", FileType.DIRECTORY))
    container.make_dir(f"{place}/below")
    [below] = container.list_files(f"{place}/below", itself=True)
    equal((below.name, below.type), ("below", FileType.DIRECTORY))


@PROBES
def list_what_is_not_there(container: ops.Container, place: str) -> None:
    message = "stat /not/existing/file/: no such file or directory"
    with raises(APIError, code=404, status="Not Found", message=message):
        container.list_files("/not/existing/file/")


@PROBES
def list_a_link(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "data")
    container.exec(["ln", "-s", f"{place}/file", f"{place}/link"]).wait()
    found = {file.name: file.type for file in container.list_files(place)}
    equal(found, {"file": FileType.FILE, "link": FileType.SYMLINK})
    equal(container.pull(f"{place}/link").read(), "data")


@PROBES
def exists_and_isdir(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "data")
    asked = [place, f"{place}/file", f"{place}/missing", f"{place}/missing/file"]
    equal([container.exists(path) for path in asked], [True, True, False, False])
    equal([container.isdir(path) for path in asked], [True, False, False, False])


@PROBES
def make_dir(container: ops.Container, place: str) -> None:
    container.make_dir(f"{place}/a")
    equal(_mode(container, f"{place}/a"), 0o755)
    container.make_dir(f"{place}/a/b")
    with raises(PathError, kind="not-found"):
        container.make_dir(f"{place}/c/d/e")
    container.make_dir(f"{place}/c/d/e", make_parents=True)
    equal([file.path for file in container.list_files(f"{place}/c/d")], [f"{place}/c/d/e"])
    # One that is there is no mistake if its parents are asked for.
    container.make_dir(f"{place}/c/d/e", make_parents=True)
    with raises(PathError, kind="generic-file-error"):
        container.make_dir(f"{place}/c/d/e")


@PROBES
def make_dir_with_permissions(container: ops.Container, place: str) -> None:
    for permissions in (0o700, 0o777):
        container.make_dir(f"{place}/{permissions}", permissions=permissions)
        equal(_mode(container, f"{place}/{permissions}"), permissions)
    for permissions in (0o1000, -1):
        with raises(PathError, kind="generic-file-error"):
            container.make_dir(f"{place}/bad", permissions=permissions)
        assert not container.exists(f"{place}/bad")


@PROBES
def make_dir_where_none_can_be(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "data")
    with raises(PathError, kind="generic-file-error"):
        container.make_dir("relative")
    with raises(PathError, kind="generic-file-error"):
        container.make_dir(f"{place}/file/below")
    with raises(PathError, kind="generic-file-error"):
        container.make_dir(f"{place}/file/below/below", make_parents=True)


@PROBES
def remove_path(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "data")
    container.remove_path(f"{place}/file")
    assert not container.exists(f"{place}/file")
    with raises(PathError, kind="not-found"):
        container.remove_path(f"{place}/file")
    container.remove_path(f"{place}/file", recursive=True)
    container.push(f"{place}/a/b/file", "data", make_dirs=True)
    with raises(PathError, kind="generic-file-error"):
        container.remove_path(f"{place}/a")
    container.remove_path(f"{place}/a", recursive=True)
    equal(container.list_files(place), [])
    with raises(PathError, kind="generic-file-error"):
        container.remove_path("relative")


@PROBES
def what_is_not_permitted(container: ops.Container, place: str) -> None:
    # The kernel lets nobody remove this one, root neither.
    with raises(PathError, kind="permission-denied"):
        container.remove_path("/proc/1/status")
