"""The plugin, in a test run of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from conftest import BINARY, PROBE

pytest_plugins = ["pytester"]

HEAD = """
import ops, yaml
from ops.testing import ActiveStatus, Context, State

META = yaml.safe_load(open("charmcraft.yaml").read())
STATE = State(config={"script": "*: status active packed"})

class Charm(ops.CharmBase):
    '''Says nothing: whatever is said is said by the packed charm.'''

    def helper(self):
        pass

def said(meta=META):
    ctx = Context(Charm, meta=meta)
    return ctx.run(ctx.on.start(), STATE).unit_status

IN_SANDBOX, IN_SCENARIO = ActiveStatus("packed"), ops.testing.UnknownStatus()
"""

TESTS = """
def test_in_the_sandbox():
    assert said() == IN_SANDBOX

def test_elsewhere():
    ctx = Context(Charm, meta={"name": "another"})
    ctx.run(ctx.on.start(), State())
"""

#: What a test asks of the charm's object, or of no hook.
WITHOUT_A_HOOK = """
def test_of_the_charms_object():
    ctx = Context(Charm, meta=META)
    with ctx(ctx.on.start(), STATE) as manager:
        assert manager.charm.helper() is None

def test_with_harness():
    harness = ops.testing.Harness(Charm, meta="name: charm")
    harness.begin()
    harness.cleanup()

def test_of_something_else():
    assert 1 + 1 == 2
"""

PATCHES = """
from unittest import mock
import helpers, json

@mock.patch("helpers.fetch")
def test_decorated(fetch):
    assert said() == IN_SCENARIO

def test_within():
    with mock.patch.object(helpers.Client, "call"), mock.patch.multiple("json", dumps=1, loads=2):
        assert said() == IN_SCENARIO
    assert said() == IN_SANDBOX

def test_started():
    patch = mock.patch("helpers.fetch")
    patch.start()
    try:
        assert said() == IN_SCENARIO
    finally:
        mock.patch.stopall()
    assert said() == IN_SANDBOX

def test_monkeys(monkeypatch):
    with monkeypatch.context() as within:
        within.setattr("helpers.fetch", None)
        within.setattr(helpers.Client, "call", None)
        assert said() == IN_SCENARIO
    assert said() == IN_SANDBOX

def of_the_tests_own():
    pass

def test_what_is_no_matter_to_a_charm(monkeypatch):
    monkeypatch.setenv("ONE", "1")
    monkeypatch.setattr("time.sleep", None)
    monkeypatch.setattr(__name__ + ".of_the_tests_own", None)
    with mock.patch.object(helpers.Client(), "call"), mock.patch.dict("os.environ", {"TWO": "2"}):
        assert said() == IN_SANDBOX
"""

HELPERS = """
def fetch():
    pass

class Client:
    def call(self):
        pass
"""

DECLARED = """
import copy

def changed(**options):
    meta = copy.deepcopy(META)
    meta["config"]["options"].update(options)
    return meta

def test_other_descriptions():
    meta = changed()
    for option in meta["config"]["options"].values():
        option["description"] = str(option.get("description")) + "\\n"
    for action in meta.get("actions", {}).values():
        action["description"] = "other"
        for parameter in action.get("params", {}).values():
            parameter.pop("description", None)
    assert said(meta) == IN_SANDBOX

def test_other_options():
    assert said(changed(more={"type": "string"}, script={"type": "string", "default": "x"})) == IN_SCENARIO

def test_an_option_that_is_called_description():
    assert said(changed(description={"type": "string"})) == IN_SCENARIO
"""


@pytest.fixture
def run(pytester: pytest.Pytester, packed: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs tests with the packed probe in the place of their charm."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.syspath_prepend(pytester.path)
    pytester.makefile(".yaml", charmcraft=yaml.safe_dump(PROBE))
    pytester.makepyfile(helpers=HELPERS)
    charm = (f"--periapt-charm={packed}", f"--periapt-binary={BINARY}")

    def run(tests: str, *options: str, charm: tuple[str, ...] = charm) -> pytest.RunResult:
        pytester.makepyfile(HEAD + tests)
        return pytester.runpytest_subprocess("-p", "periapt_scenario.plugin", *charm, *options)

    return run


def last_line(done: pytest.RunResult) -> str:
    """What a run says at its very end."""
    return [line for line in done.outlines if line.strip()][-1]


def test_a_charms_own_tests_run_in_the_sandbox(run) -> None:
    done = run(TESTS)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["1 hooks ran in the sandbox", "1 ran in Scenario itself: *declares other*"])
    assert last_line(done) == (
        "periapt: 1 of 2 tests ran in the sandbox; "
        "1 fell back to Scenario: the test's charm declares what the packed one does not (1)"
    )


@pytest.mark.parametrize("ci, options", [("", ["--periapt-strict"]), ("true", []), ("1", ["-q"])])
def test_what_only_scenario_could_run_fails_if_it_is_asked_for_or_in_ci(run, monkeypatch, ci, options) -> None:
    monkeypatch.setenv("CI", ci)
    done = run(TESTS, *options)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*NotInSandbox: the test's charm declares other *(--no-periapt-strict runs it in Scenario itself)"])
    assert last_line(done).startswith("periapt: 1 of 2 tests ran in the sandbox; 1 could not: the test's charm declares")


@pytest.mark.parametrize("ci, option", [("true", "--no-periapt-strict"), ("true", "--periapt-lenient"), ("false", "-q"), ("0", "-q")])
def test_what_only_scenario_could_run_passes_if_that_is_asked_for_or_outside_of_ci(run, monkeypatch, ci, option) -> None:
    monkeypatch.setenv("CI", ci)
    run(TESTS, option).assert_outcomes(passed=2)


def test_the_head_of_a_run_says_whether_it_is_strict_and_why(run, monkeypatch) -> None:
    run(TESTS).stdout.fnmatch_lines(["periapt: *probe.charm"])
    run(TESTS, "--periapt-strict").stdout.fnmatch_lines(["periapt: *probe.charm, strict"])
    monkeypatch.setenv("CI", "true")
    run(TESTS).stdout.fnmatch_lines(["periapt: *probe.charm, strict since CI is set"])


def test_tests_that_run_no_hook_in_the_sandbox_are_counted_by_what_they_do(run) -> None:
    done = run(WITHOUT_A_HOOK + TESTS)
    done.assert_outcomes(passed=5)
    line = last_line(done)
    assert line.startswith("periapt: 1 of 5 tests ran in the sandbox; 2 fell back to Scenario: "), line
    assert "the test looks into the charm's object (`with ctx(...) as manager`) (1)" in line
    assert line.endswith("; 2 ran Harness, which runs no hook (1), no hook at all (1)"), line
    # What never was to run a hook does not fail.
    run(WITHOUT_A_HOOK + TESTS, "--periapt-strict").assert_outcomes(passed=3, failed=2)


def test_patches_are_named_and_what_runs_under_them_falls_back(run) -> None:
    done = run(PATCHES)
    done.assert_outcomes(passed=5)
    done.stdout.fnmatch_lines_random(
        [
            "4 hooks ran in the sandbox",
            "2 ran in Scenario itself: the test patches helpers.fetch: no patch reaches the packed charm",
            "1 ran in Scenario itself: the test patches helpers.Client.call, helpers.fetch: no patch*",
            "1 ran in Scenario itself: the test patches helpers.Client.call, json.dumps, json.loads: no patch*",
        ]
    )
    assert last_line(done) == (
        "periapt: 1 of 5 tests ran in the sandbox; 4 fell back to Scenario: patches do not reach the packed charm (4)"
    )
    run(PATCHES, "--periapt-strict").assert_outcomes(passed=1, failed=4)


def test_descriptions_make_no_difference_and_what_does_is_named(run) -> None:
    done = run(DECLARED)
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines_random(
        [
            "1 ran in Scenario itself: the test's charm declares other config (more, script) than the packed one",
            "1 ran in Scenario itself: the test's charm declares other config (description) than the packed one",
        ]
    )


def test_without_a_charm_nothing_is_changed(run) -> None:
    done = run(TESTS, charm=())
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.no_fnmatch_line("periapt:*")


def test_a_run_without_tests_says_nothing_of_the_sandbox(run) -> None:
    run("").stdout.no_fnmatch_line("periapt: * tests ran*")


def test_what_is_missing_is_named(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_subprocess("-p", "periapt_scenario.plugin", "--periapt-charm=none.charm")
    done.stderr.fnmatch_lines(["ERROR: none.charm does not exist: make it with `periapt pack`"])
    assert done.ret == pytest.ExitCode.USAGE_ERROR, sys.version
