"""The runs of one test session: which hooks ran in the sandbox, which in Scenario itself, and why."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import ops.testing
import pytest
from ops._private.harness import ActionFailed
from scenario import Context, State
from scenario.context import Manager
from scenario.errors import UncaughtCharmError
from scenario.state import _Event

from .bench import Bench
from .patches import Patches
from .sandbox import NotInSandbox, Sandbox

#: What a test's record is called among its properties, by which it comes out of a process of pytest-xdist's.
PROPERTY = "periapt"

_HARNESS = "Harness, which runs no hook"
_NO_HOOK = "no hook at all"


@dataclasses.dataclass
class Record:
    """What one test ran, and where."""

    in_sandbox: int = 0
    #: What ran in Scenario itself: by the cause in short, and as it is told.
    elsewhere: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    used_harness: bool = False


class Runs:
    """Puts the sandbox in the place of `Context.run`, and keeps count."""

    def __init__(self, bench: Bench, *, strict: bool):
        self._bench, self._sandbox, self._strict = bench, Sandbox(bench), strict
        self._patches = Patches()
        self._current = Record()
        self._records: dict[str, Record] = {}
        self._kept: list[tuple[type, str, Any]] = []

    def begin(self) -> None:
        """Put it in place."""
        runs = self
        scenario_run, enter, begin = Context.run, Manager.__enter__, ops.testing.Harness.begin

        def run(context: Context[Any], event: _Event, state: State) -> State:
            return runs.run(context, event, state, lambda: scenario_run(context, event, state))

        def entered(manager: Manager[Any]) -> Manager[Any]:
            runs._fall_back(NotInSandbox("the test looks into the charm's object (`with ctx(...) as manager`)"))
            return enter(manager)

        def begun(harness: Any) -> None:
            runs._current.used_harness = True
            begin(harness)

        self._replace(Context, "run", run)
        self._replace(Manager, "__enter__", entered)
        self._replace(ops.testing.Harness, "begin", begun)
        self._patches.watch()

    def run(self, context: Context[Any], event: _Event, state: State, in_scenario: Callable[[], State]) -> State:
        """Run a hook in the sandbox, or in Scenario itself if it cannot."""
        # Scenario tells best what is wrong with what is no event.
        if not isinstance(event, _Event):
            return in_scenario()
        try:
            patched = self._patches.names()
            if patched:
                raise NotInSandbox(
                    f"the test patches {', '.join(patched)}: no patch reaches the packed charm",
                    cause="patches do not reach the packed charm",
                )
            output = self._sandbox.run(context, event, state)
        except NotInSandbox as reason:
            self._fall_back(reason)
            return in_scenario()
        except (ActionFailed, UncaughtCharmError):
            self._current.in_sandbox += 1
            raise
        self._current.in_sandbox += 1
        return output

    def _replace(self, owner: type, name: str, function: Callable[..., Any]) -> None:
        self._kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    def _fall_back(self, reason: NotInSandbox) -> None:
        self._current.elsewhere.append((reason.cause, str(reason)))
        if self._strict:
            raise NotInSandbox(f"{reason} (--no-periapt-strict runs it in Scenario itself)", cause=reason.cause) from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Begin a test's record."""
        self._current = Record()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Give the record to the test's report."""
        if call.when == "teardown":
            item.user_properties.append((PROPERTY, dataclasses.asdict(self._current)))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record of a test that ran, wherever it ran."""
        if report.when == "call" and not report.skipped:
            self._records[report.nodeid] = Record()
        for name, value in report.user_properties:
            if report.when == "teardown" and name == PROPERTY and report.nodeid in self._records:
                elsewhere = [(cause, told) for cause, told in value["elsewhere"]]
                self._records[report.nodeid] = Record(value["in_sandbox"], elsewhere, value["used_harness"])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell which hooks ran where."""
        records = self._records.values()
        if not records:
            return
        terminalreporter.section("Periapt's sandbox")
        terminalreporter.write_line(f"{sum(record.in_sandbox for record in records)} hooks ran in the sandbox")
        told = Counter(told for record in records for _, told in record.elsewhere)
        for reason, count in sorted(told.items()):
            terminalreporter.write_line(f"{count} {'could not' if self._strict else 'ran in Scenario itself'}: {reason}")

    def last_line(self) -> str | None:
        """What the whole run was worth, test by test; none if no test ran."""
        records = list(self._records.values())
        if not records:
            return None
        back = [record for record in records if record.elsewhere]
        none = [record for record in records if not record.elsewhere and not record.in_sandbox]
        line = f"periapt: {len(records) - len(back) - len(none)} of {len(records)} tests ran in the sandbox"
        if back:
            # A test counts once for each of its causes.
            causes = Counter(cause for record in back for cause in {cause for cause, _ in record.elsewhere})
            line += f"; {len(back)} {'could not' if self._strict else 'fell back to Scenario'}: {_listed(causes)}"
        if none:
            line += f"; {len(none)} ran {_listed(Counter(_HARNESS if record.used_harness else _NO_HOOK for record in none))}"
        return line

    def end(self) -> None:
        """Take it away again."""
        self._patches.leave()
        for owner, name, function in self._kept:
            setattr(owner, name, function)
        self._kept.clear()
        self._bench.close()


def _listed(causes: Counter[str]) -> str:
    return ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())
