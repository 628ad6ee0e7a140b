"""Trees of files, from the charm to the container and back."""

import pathlib
import tempfile

import ops

from .probing import Probes, equal, raises, text_of

PROBES = Probes()


def _filled(directory: str) -> pathlib.Path:
    """Make a tree of the charm's own, and return its root."""
    root = pathlib.Path(directory, "tree")
    (root / "below" / "deeper").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "file").write_text("one")
    (root / "below" / "deeper" / "binary").write_bytes(bytes(range(256)))
    return root


def _names(root: pathlib.Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


NAMES = {"tree", "tree/file", "tree/empty", "tree/below", "tree/below/deeper", "tree/below/deeper/binary"}


@PROBES
def push_path(container: ops.Container, place: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        container.push_path(_filled(directory), place)
        equal(text_of(container, f"{place}/tree/file"), "one")
        equal(container.pull(f"{place}/tree/below/deeper/binary", encoding=None).read(), bytes(range(256)))
        assert container.isdir(f"{place}/tree/empty")
        # The content alone, and a list.
        container.push_path(f"{directory}/tree/*", f"{place}/content")
        equal({file.name for file in container.list_files(f"{place}/content")}, {"file", "empty", "below"})
        container.push_path([f"{directory}/tree/file", f"{directory}/tree/below"], f"{place}/list")
        equal({file.name for file in container.list_files(f"{place}/list")}, {"file", "below"})


@PROBES
def pull_path(container: ops.Container, place: str) -> None:
    for name, content in {"tree/file": b"one", "tree/below/deeper/binary": bytes(range(256))}.items():
        container.push(f"{place}/{name}", content, make_dirs=True)
    container.make_dir(f"{place}/tree/empty")
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory, "all")
        container.pull_path(f"{place}/tree", root)
        equal(_names(root), NAMES)
        equal((root / "tree" / "below" / "deeper" / "binary").read_bytes(), bytes(range(256)))
        root = pathlib.Path(directory, "content")
        container.pull_path(f"{place}/tree/*", root)
        equal({path.name for path in root.iterdir()}, {"file", "empty", "below"})
        root = pathlib.Path(directory, "list")
        container.pull_path([f"{place}/tree/file", f"{place}/tree/below"], root)
        equal({path.name for path in root.iterdir()}, {"file", "below"})


@PROBES
def paths_that_are_not_there(container: ops.Container, place: str) -> None:
    container.push(f"{place}/file", "data")
    with tempfile.TemporaryDirectory() as directory:
        with raises(ops.MultiPushPullError) as raised:
            container.pull_path([f"{place}/missing", f"{place}/file"], directory)
        equal([path for path, _ in raised.error.errors], [f"{place}/missing"])
        equal(_names(pathlib.Path(directory)), {"file"})
        with raises(ops.MultiPushPullError) as raised:
            container.push_path(f"{directory}/missing", place)
        equal([path for path, _ in raised.error.errors], [f"{directory}/missing"])
