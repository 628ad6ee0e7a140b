"""The file with the name server of the unit's containers."""

import errno
import os
import pathlib
import re

import pytest

from periapt_ops.stand_ins import resolver

ROOT = pathlib.Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """A charm with a container."""
    monkeypatch.setattr(resolver, "_is_there", False)
    resolver.know({"name": "web", "containers": {"web": None}})


def missing(path, *arguments, **options):
    """`open` and `os.stat` in a hook, where there is no such file."""
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


@pytest.mark.parametrize("path", ["/etc/resolv.conf", b"/etc/../etc/resolv.conf", pathlib.Path("/etc/resolv.conf")])
def test_it_is_read_as_text_and_as_bytes(path):
    opened = resolver.opening(missing)
    with opened(path) as file:
        assert file.readline() == "nameserver 198.18.0.1\n" and file.readline().startswith("options")
    with opened(file=path, mode="rt", encoding="utf-8") as file:
        assert file.read().encode() == resolver.CONTENT
    with opened(path, "rb") as file:
        assert file.read() == resolver.CONTENT


def test_it_is_seen_as_a_file_that_nobody_writes():
    seen = resolver.seeing(missing)("/etc/resolv.conf")
    assert (oct(seen.st_mode), seen.st_size) == ("0o100444", len(resolver.CONTENT))
    opened = resolver.opening(missing)
    for mode in ("w", "a", "x", "r+", "rb+"):
        with pytest.raises(FileNotFoundError):
            opened("/etc/resolv.conf", mode)


def test_all_else_is_as_it_was(tmp_path):
    opened, see = resolver.opening(open), resolver.seeing(os.stat)
    with opened(tmp_path / "file", "w", encoding="utf-8", newline="") as file:
        file.write("a\r\n")
    with opened(tmp_path / "file", "rb", buffering=0) as file:
        assert file.read() == b"a\r\n"
    assert see(tmp_path / "file").st_size == 3
    for path in (tmp_path / "none", "/etc/resolv.conf/none"):
        with pytest.raises(FileNotFoundError):
            resolver.opening(missing)(path)
        with pytest.raises(FileNotFoundError):
            resolver.seeing(missing)(path)


@pytest.mark.parametrize("metadata", [None, ["nothing"], {"name": "web"}, {"containers": None}, {"containers": {}}])
def test_a_charm_without_containers_has_none(metadata):
    resolver.know(metadata)
    for call in (resolver.opening(missing), resolver.seeing(missing)):
        with pytest.raises(FileNotFoundError):
            call("/etc/resolv.conf")


def test_it_is_that_of_containers():
    source = (ROOT / "runtime/pod/src/container/gate.rs").read_text()
    address = re.search(r"NAME_SERVER: Ipv4Addr = Ipv4Addr::new\(([\d, ]+)\)", source)[1].replace(", ", ".")
    said = re.search(r'format!\("(nameserver \{NAME_SERVER\}.*)"\)', source)[1]
    assert said.replace("{NAME_SERVER}", address).replace("\\n", "\n").encode() == resolver.CONTENT
