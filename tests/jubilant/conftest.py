"""A controller of the suite's own, its charms, and models that are destroyed when they were used.

jubilant is driven as a charm's author drives it: `Juju` and `temp_model` find the binary by its name `juju` on the PATH.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Callable, Generator

import jubilant
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# How often statuses are asked for while something is waited for, and how long nothing may take longer than, in seconds.
DELAY = 0.1
PATIENCE = 90.0


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
    guests = pathlib.Path(os.environ.get('PERIAPT_GUESTS', ROOT / 'target/guests'))
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
            module = guests / f'{name.replace("-", "_")}.wasm'
            subprocess.run([binary, 'pack', directory, '--wasm', module, '-o', archive, '--quiet'], check=True)
        return archive

    return packed


def models(wait_timeout: float = PATIENCE) -> Generator[Juju]:
    """A model that is destroyed when it was used, by the way of charms' authors."""
    with jubilant.temp_model() as temporary:
        yield Juju(model=temporary.model, wait_timeout=wait_timeout)


@pytest.fixture(scope='module')
def juju(controller: str) -> Generator[Juju]:
    """A model for the tests of a module."""
    yield from models()


@pytest.fixture(scope='module')
def other(controller: str) -> Generator[Juju]:
    """A second model for the tests of a module."""
    yield from models()
