"""The charm that tests drive, `charms/probe`, packed: it does what its option `script` says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from periapt_scenario import Bench, Sandbox

ROOT = Path(__file__).parents[5]
BINARY = os.environ.get("PERIAPT_BINARY", "periapt")
GUESTS = Path(os.environ.get("PERIAPT_GUESTS", ROOT / "target/guests"))

PROBE = yaml.safe_load((ROOT / "charms/probe/charmcraft.yaml").read_text())


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed probe."""
    charm = tmp_path_factory.mktemp("charm") / "probe.charm"
    module = GUESTS / "probe.wasm"
    subprocess.run(
        [BINARY, "pack", ROOT / "charms/probe", "--wasm", module, "-o", charm, "--quiet"], check=True
    )
    return charm


@pytest.fixture(scope="session")
def sandbox(packed: Path):
    """The packed probe in the place of a charm's class."""
    bench = Bench(packed, binary=BINARY)
    yield Sandbox(bench)
    bench.close()
