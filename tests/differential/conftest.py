"""Three worlds for one charm, `charms/python-probe`: the framework's testing library, a process with hook tools, and the
sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, settings
from periapt_scenario import Bench

ROOT = Path(__file__).parents[2]
CHARM = ROOT / "charms/python-probe"
BINARY = os.environ.get("PERIAPT_BINARY", "periapt")
GUESTS = Path(os.environ.get("PERIAPT_GUESTS", ROOT / "target/guests"))

sys.path.insert(0, str(CHARM / "src"))

# The same examples in each run by default: a failure must not disappear by chance.
settings.register_profile(
    "worlds",
    max_examples=int(os.environ.get("PERIAPT_DIFFERENTIAL", "25")),
    derandomize="PERIAPT_DIFFERENTIAL" not in os.environ,
    deadline=None,
    database=None,
    print_blob=True,
    # Shrinking is expensive with a process for each hook. Turn it on to study a failure.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("worlds")


@pytest.fixture(scope="session")
def sandbox():
    """The packed charm."""
    bench = Bench(GUESTS / "python-probe.charm", binary=BINARY)
    yield bench
    bench.close()


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory):
    """The charm as Juju lays it out, run by this Python."""
    directory = tmp_path_factory.mktemp("native") / "charm"
    shutil.copytree(CHARM, directory)
    whole = yaml.safe_load((directory / "charmcraft.yaml").read_text())
    for part in ("config", "actions"):
        (directory / f"{part}.yaml").write_text(yaml.safe_dump(whole.pop(part)))
    (directory / "metadata.yaml").write_text(yaml.safe_dump(whole))
    command = f"{sys.executable} src/charm.py"
    bench = Bench(GUESTS / "python-probe.charm", binary=BINARY, native=command, directory=directory)
    yield bench
    bench.close()
