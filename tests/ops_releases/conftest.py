"""One charm with each release of ops: as processes with forked hook tools, and packed, in the sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from periapt_scenario import Bench

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BINARY = os.environ.get("PERIAPT_BINARY", "periapt")
GUESTS = Path(os.environ.get("PERIAPT_GUESTS", ROOT / "target/guests"))
CACHE = Path(os.environ["PERIAPT_CACHE"])

#: The packages of each release.
PACKAGES = {
    line.split()[0].removeprefix("ops=="): line.split()
    for line in (HERE / "releases").read_text().splitlines()
    if not line.startswith("#")
}
NEWEST = list(PACKAGES)[-1]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with the charm's metadata, for hooks that are run by processes: its component is never run."""
    packed = tmp_path_factory.mktemp("archive") / "released.charm"
    component = GUESTS / "probe.wasm"
    subprocess.run([BINARY, "pack", HERE / "charm", "--wasm", component, "-o", packed], check=True)
    return packed


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The charm as Juju lays it out."""
    place = tmp_path_factory.mktemp("charm") / "charm"
    shutil.copytree(HERE / "charm", place)
    whole = yaml.safe_load((place / "charmcraft.yaml").read_text())
    for part in ("config", "actions"):
        (place / f"{part}.yaml").write_text(yaml.safe_dump(whole.pop(part)))
    (place / "metadata.yaml").write_text(yaml.safe_dump(whole))
    shutil.copy(ROOT / "host-api/sdk/python/dispatch", place)
    return place


@pytest.fixture(scope="session")
def processes(archive: Path, directory: Path):
    """A bench by release; each hook is a process of this Python with that release in front of its path."""
    benches: dict[str, Bench] = {}

    def of(release: str) -> Bench:
        if release not in benches:
            place = CACHE / "python/packages" / "_".join(PACKAGES[release])
            assert place.is_dir(), f"{place} is not there: run tools/python releases"
            command = f"{sys.executable} {directory}/src/charm.py"
            bench = Bench(archive, binary=BINARY, native=command, directory=directory)
            benches[release] = bench
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PYTHONPATH", str(place))
                bench._started()
        return benches[release]

    yield of
    for bench in benches.values():
        bench.close()
