"""The pytest plugin: `pytest --periapt-charm my.charm` runs a charm's own Scenario tests in the sandbox."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scenario import Context, State
from scenario.state import _Event

from .bench import Bench, BenchError
from .sandbox import NotInSandbox, Sandbox


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say where the charm and the program are; without a charm the plugin does nothing."""
    group = parser.getgroup("periapt", "Scenario tests in Periapt's sandbox")
    group.addoption("--periapt-charm", metavar="FILE", help="the packed charm that takes the class's place")
    group.addoption("--periapt-binary", metavar="PROGRAM", default="periapt", help="default: periapt")
    group.addoption(
        "--periapt-strict", action="store_true", help="fail a test that only Scenario itself could run"
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
    config.pluginmanager.register(_Runs(bench, strict=config.getoption("--periapt-strict")), "periapt-runs")


class _Runs:
    """The runs of one session: in the sandbox, and those that could not be."""

    def __init__(self, bench: Bench, *, strict: bool):
        self._bench, self._sandbox, self._strict = bench, Sandbox(bench), strict
        self._scenario = Context.run
        self._in_sandbox = 0
        self._elsewhere: Counter[str] = Counter()

        runs = self

        def run(context: Context[Any], event: _Event, state: State) -> State:
            return runs.run(context, event, state)

        Context.run = run  # type: ignore[method-assign]

    def run(self, context: Context[Any], event: _Event, state: State) -> State:
        # Scenario tells best what is wrong with what is no event.
        if not isinstance(event, _Event):
            return self._scenario(context, event, state)
        try:
            output = self._sandbox.run(context, event, state)
        except NotInSandbox as reason:
            if self._strict:
                raise
            self._elsewhere[str(reason)] += 1
            return self._scenario(context, event, state)
        finally:
            self._in_sandbox += 1
        return output

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell what ran where: a test that passed natively says nothing of the sandbox."""
        elsewhere = sum(self._elsewhere.values())
        terminalreporter.section("Periapt's sandbox")
        terminalreporter.write_line(f"{self._in_sandbox - elsewhere} hooks ran in the sandbox")
        for reason, count in sorted(self._elsewhere.items()):
            terminalreporter.write_line(f"{count} ran in Scenario itself: {reason}")

    def pytest_unconfigure(self) -> None:
        """Take it away again."""
        Context.run = self._scenario  # type: ignore[method-assign]
        self._bench.close()
