"""The pytest plugin: `pytest --periapt-charm my.charm` runs a charm's own Scenario tests in the sandbox."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .bench import Bench, BenchError
from .runs import Runs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say where the charm and the program are; without a charm the plugin does nothing."""
    group = parser.getgroup("periapt", "Scenario tests in Periapt's sandbox")
    group.addoption("--periapt-charm", metavar="FILE", help="the packed charm that takes the class's place")
    group.addoption("--periapt-binary", metavar="PROGRAM", default="periapt", help="default: periapt")
    group.addoption(
        "--periapt-strict",
        dest="periapt_strict",
        action="store_true",
        default=None,
        help="fail a test that only Scenario itself could run; the default if the variable CI is set",
    )
    group.addoption(
        "--no-periapt-strict",
        "--periapt-lenient",
        dest="periapt_strict",
        action="store_false",
        default=None,
        help="run it in Scenario itself; the default elsewhere",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put the sandbox in the place of `Context.run`."""
    charm = config.getoption("--periapt-charm")
    if charm is None:
        return
    try:
        bench = Bench(charm, binary=config.getoption("--periapt-binary"))
    except BenchError as error:
        raise pytest.UsageError(str(error)) from None
    runs = Runs(bench, strict=_is_strict(config))
    runs.begin()
    config.pluginmanager.register(_Session(config, runs), "periapt-session")
    config.pluginmanager.register(runs, "periapt-runs")


def _is_strict(config: pytest.Config) -> bool:
    given = config.getoption("periapt_strict")
    return _is_ci() if given is None else given


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


class _Session:
    """The beginning and the end of a test run with a packed charm."""

    def __init__(self, config: pytest.Config, runs: Runs):
        self._config, self._runs = config, runs

    def pytest_report_header(self, config: pytest.Config) -> str:
        """Tell what the tests are run with."""
        charm = config.getoption("--periapt-charm")
        if not _is_strict(config):
            return f"periapt: {charm}"
        why = " since CI is set" if config.getoption("periapt_strict") is None else ""
        return f"periapt: {charm}, strict{why}"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Tell on the last line what a green run is worth: a test that passed elsewhere says nothing of the sandbox."""
        yield
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        line = self._runs.last_line()
        if reporter is not None and line is not None:
            reporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Leave Scenario as it was."""
        self._runs.end()
