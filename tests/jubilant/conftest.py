"""A controller of the suite's own, its charms, and models that are destroyed when they were used.

jubilant is driven as a charm's author drives it: `Juju`, `temp_model` and the plugin pytest-jubilant find the binary by its
name `juju` on the PATH.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Callable, Generator

import jubilant
import pytest
import pytest_jubilant

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The interval between requests for statuses, and the timeout of each wait, in seconds.
DELAY = 0.1
PATIENCE = 90.0


def guests() -> pathlib.Path:
    """Returns the directory of the components of the repository's charms."""
    return pathlib.Path(os.environ.get('PERIAPT_GUESTS', ROOT / 'target/guests'))


class Juju(jubilant.Juju):
    """jubilant's client, which waits as this suite waits."""

    def wait(self, ready, *, error=None, delay=DELAY, timeout=PATIENCE, successes=2):
        return super().wait(ready, error=error, delay=delay, timeout=timeout, successes=successes)


@pytest.fixture(scope='session')
def binary() -> pathlib.Path:
    """The binary under test: `PERIAPT_BINARY`, or the one that cargo built."""
    named = os.environ.get('PERIAPT_BINARY')
    path = pathlib.Path(named) if named else pathlib.Path(os.environ['CARGO_TARGET_DIR']) / 'debug/periapt'
    assert path.exists(), f'{path} is not built: run `cargo build --bin periapt`'
    return path


@pytest.fixture(scope='session', autouse=True)
def controller(binary: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A controller on the loopback interface with an agent, which ends with the session."""
    place = tmp_path_factory.mktemp('periapt')
    (place / 'bin').mkdir()
    (place / 'bin/juju').symlink_to(binary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('PERIAPT_DATA', str(place / 'data'))
        patch.setenv('PATH', f'{place / "bin"}{os.pathsep}{os.environ["PATH"]}')
        for name in ('PERIAPT_MODEL', 'PERIAPT_CONTROLLER', 'PERIAPT_LOG'):
            patch.delenv(name, raising=False)
        subprocess.run(['juju', 'bootstrap', 'local', '--agent-name', 'first', '--quiet'], check=True)
        yield 'local'
        subprocess.run(['juju', 'kill-controller', 'local', '--no-prompt', '--quiet'], check=True)


@pytest.fixture(scope='session')
def charm(binary: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """Packs charms of this repository: `charm('mysql')`, or another edition of one, `charm('mysql', 'next')`."""
    place = tmp_path_factory.mktemp('charms')

    def packed(name: str, edition: str = '') -> pathlib.Path:
        archive = place / f'{name}{edition}.charm'
        if not archive.exists():
            directory = ROOT / 'charms' / name
            if edition:
                copy = place / f'{name}{edition}'
                copy.mkdir()
                text = (directory / 'charmcraft.yaml').read_text()
                (copy / 'charmcraft.yaml').write_text(f'# {edition}\n{text}')
                directory = copy
            module = guests() / f'{name.replace("-", "_")}.wasm'
            subprocess.run([binary, 'pack', directory, '--wasm', module, '-o', archive, '--quiet'], check=True)
        return archive

    return packed


@pytest.fixture(scope='module')
def juju(juju_factory: pytest_jubilant.JujuFactory) -> Juju:
    """A model for the tests of a module, by the plugin that charms' authors use; it is destroyed after them."""
    return Juju(model=juju_factory.get_juju('').model, wait_timeout=PATIENCE)


@pytest.fixture(scope='module')
def other(juju_factory: pytest_jubilant.JujuFactory) -> Juju:
    """A second model for the tests of a module."""
    return Juju(model=juju_factory.get_juju('other').model, wait_timeout=PATIENCE)
