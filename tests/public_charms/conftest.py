"""Models for public charms, which tools/public-charms has fetched, packed and given images, on the controller that it runs."""

from __future__ import annotations

import os
import pathlib

import jubilant
import pytest
import pytest_jubilant

#: The interval between requests for statuses, and the timeout of each wait, in seconds. A charm in Python is compiled before
#: its first hook, which takes minutes where the binary is built for debugging and the machine is busy.
DELAY = 0.2
PATIENCE = 900.0


class Juju(jubilant.Juju):
    """jubilant's client, which waits as this suite waits, and shows the log of charms that do not become what they should."""

    def wait(self, ready, *, error=None, delay=DELAY, timeout=PATIENCE, successes=2):
        try:
            return super().wait(ready, error=error, delay=delay, timeout=timeout, successes=successes)
        except (TimeoutError, jubilant.WaitError):
            print(self.debug_log(limit=200))
            raise


@pytest.fixture(scope='session')
def place() -> pathlib.Path:
    """The directory with the charms and their images."""
    return pathlib.Path(os.environ['PUBLIC_CHARMS'])


@pytest.fixture(scope='module')
def juju(juju_factory: pytest_jubilant.JujuFactory) -> Juju:
    """A model for the tests of a module, which is destroyed after them."""
    return Juju(model=juju_factory.get_juju('').model, wait_timeout=PATIENCE)
