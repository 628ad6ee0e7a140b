"""Files, where WASI's answers are not those that programs expect."""

import errno
import os
import pathlib

import pytest

from periapt_ops.stand_ins import files


def test_what_is_created_is_opened_for_writing_and_nothing_else_is(tmp_path):
    asked = []

    def real(path, flags, mode, *, dir_fd):
        asked.append(flags)
        return os.open(path, flags, mode, dir_fd=dir_fd)

    opened = files.creating(real)
    path = str(tmp_path / "lock")
    os.close(opened(path, os.O_CREAT | os.O_EXCL, 0o600))
    os.close(opened(path, os.O_RDONLY))
    os.close(opened(path, os.O_CREAT | os.O_WRONLY))
    assert asked == [os.O_CREAT | os.O_EXCL | os.O_RDWR, os.O_RDONLY, os.O_CREAT | os.O_WRONLY]


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A world that has one directory and no root, as a hook's."""
    real = os.lstat, os.stat, os.mkdir

    def missing(path):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def is_there(path):
        return os.fsdecode(path).startswith(str(tmp_path))

    def only_there(function):
        def call(path, *arguments, **options):
            if not is_there(path):
                raise missing(path)
            return function(path, *arguments, **options)

        return call

    for name, function in zip(("lstat", "stat", "mkdir"), real):
        monkeypatch.setattr(os, name, only_there(function))
    monkeypatch.setattr(os, "mkdir", files.refusing(os.mkdir, "path"))
    monkeypatch.setattr(os, "makedirs", files.refusing(os.makedirs, "name"))
    return tmp_path


@pytest.mark.parametrize("path", ["/etc", "/etc/app", "/etc/app/conf.d", b"/etc/app", pathlib.Path("/etc/app/deep"), "/srv/../etc/x"])
def test_what_cannot_be_made_is_told_by_the_path_that_was_given(bare, path):
    for make in (os.mkdir, os.makedirs, lambda path: os.makedirs(name=path, exist_ok=True)):
        with pytest.raises(OSError, match="Read-only") as caught:
            make(path)
        assert caught.value.filename == path and repr(os.fspath(path)) in str(caught.value).replace("PosixPath(", ""), caught.value
    if isinstance(path, pathlib.Path):
        with pytest.raises(OSError, match="Read-only") as caught:
            path.mkdir(parents=True, exist_ok=True)
        assert caught.value.filename == path


def test_where_something_is_all_is_as_it_was(bare):
    os.makedirs(bare / "a/b", exist_ok=True)
    os.makedirs(bare / "a/b", exist_ok=True)
    with pytest.raises(FileNotFoundError):
        os.mkdir(bare / "none/b")
    with pytest.raises(FileExistsError):
        os.mkdir(bare / "a")


def test_directories_above_storage_exist_and_nothing_is_made_in_them(bare, monkeypatch):
    monkeypatch.setattr(files, "_above", {"/"})
    files.know({"storage": {"data": {"type": "filesystem", "location": "/srv/app/data"}, "more": {"type": "filesystem"}, "odd": None}})
    files.know(["nothing"])
    assert files._above == {"/", "/srv", "/srv/app", "/var", "/var/lib", "/var/lib/juju", "/var/lib/juju/storage", "/var/lib/juju/storage/more", "/var/lib/juju/storage/odd"}
    real = os.stat
    monkeypatch.setattr(os, "stat", files.seeing(lambda path, **options: real(bare if path == "/charm" else path, **options)))
    monkeypatch.setattr(os, "lstat", os.stat)
    monkeypatch.setattr(os, "mkdir", files.keeping(os.mkdir))
    for path in ("/srv", "/srv/app", b"/srv/app/", pathlib.Path("/srv/app")):
        os.makedirs(path, exist_ok=True)
        assert os.path.isdir(path)
        with pytest.raises(FileExistsError):
            os.mkdir(path)
        with pytest.raises(FileExistsError):
            os.makedirs(path)
    with pytest.raises(OSError, match="Read-only file system: '/srv/other/deep'"):
        os.makedirs("/srv/other/deep")
    assert not os.path.exists("/srv/other")


def test_a_file_is_refused_where_it_would_be_made_and_not_found_where_it_would_be_read(bare):
    def real(file, *arguments, **options):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)

    opened = files.refusing(real, "file", when=files._writes)
    for call in (lambda: opened("/etc/app", "w"), lambda: opened("/etc/app", mode="ab"), lambda: opened(file="/etc/app", mode="x")):
        with pytest.raises(OSError, match="Read-only file system: '/etc/app'"):
            call()
    for call in (lambda: opened("/etc/app"), lambda: opened("/etc/app", "r+"), lambda: opened(bare / "none/x", "w")):
        with pytest.raises(FileNotFoundError):
            call()
    lower = files.refusing(real, "path", when=files._creates)
    with pytest.raises(OSError, match="Read-only"):
        lower("/etc/app", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(FileNotFoundError):
        lower("/etc/app", os.O_WRONLY)


def test_what_would_be_moved_out_is_told_with_both_paths_if_it_is_there(bare):
    def real(src, dst, **options):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src, None, dst)

    move = files.refusing(real, "src", "dst", when=files._has_source)
    (bare / "one").touch()
    with pytest.raises(OSError, match="Read-only") as caught:
        move(bare / "one", dst="/etc/one")
    assert (caught.value.filename, caught.value.filename2) == (bare / "one", "/etc/one")
    with pytest.raises(FileNotFoundError):
        move(bare / "none", "/etc/one")


def test_the_mode_of_what_is_not_there_is_not_changed(tmp_path):
    asked = []
    change = files.finding(lambda path, mode: asked.append(path))
    (tmp_path / "file").touch()
    change(tmp_path / "file", 0o600)
    with pytest.raises(FileNotFoundError):
        change(tmp_path / "none", 0o600)
    assert asked == [tmp_path / "file"]
