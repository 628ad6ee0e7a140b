"""The plugin, in a test run of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from conftest import BINARY, PROBE

pytest_plugins = ["pytester"]

TESTS = """
import ops, yaml
from ops.testing import ActiveStatus, Context, State

META = yaml.safe_load(open("charmcraft.yaml").read())

class Charm(ops.CharmBase):
    '''Says nothing: whatever is said is said by the packed charm.'''

def test_in_the_sandbox():
    ctx = Context(Charm, meta=META)
    config = {"script": "*: status active packed"}
    assert ctx.run(ctx.on.start(), State(config=config)).unit_status == ActiveStatus("packed")

def test_elsewhere():
    ctx = Context(Charm, meta={"name": "another"})
    ctx.run(ctx.on.start(), State())
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(TESTS)
    pytester.makefile(".yaml", charmcraft=yaml.safe_dump(PROBE))
    return pytester


def test_a_charms_own_tests_run_in_the_sandbox(suite: pytest.Pytester, packed: Path) -> None:
    options = ["-p", "periapt_scenario.plugin", f"--periapt-charm={packed}", f"--periapt-binary={BINARY}"]
    done = suite.runpytest_subprocess(*options)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["1 hooks ran in the sandbox", "1 ran in Scenario itself: *declares other*"])

    strict = suite.runpytest_subprocess(*options, "--periapt-strict")
    strict.assert_outcomes(passed=1, failed=1)


def test_without_a_charm_nothing_is_changed(suite: pytest.Pytester) -> None:
    done = suite.runpytest_subprocess("-p", "periapt_scenario.plugin")
    done.assert_outcomes(passed=1, failed=1)


def test_what_is_missing_is_named(suite: pytest.Pytester, packed: Path) -> None:
    done = suite.runpytest_subprocess("-p", "periapt_scenario.plugin", "--periapt-charm=none.charm")
    done.stderr.fnmatch_lines(["ERROR: none.charm does not exist: make it with `periapt pack`"])
    assert done.ret == pytest.ExitCode.USAGE_ERROR, sys.version
