"""A charm's own Scenario tests, run in Periapt's sandbox.

`Context.run` takes a state and an event and returns the state afterwards. Here it does so by one hook of the *packed*
charm, in the sandbox that agents run it in (`periapt try-hook`), so that the charm's assertions are held against what
will be deployed. `plugin` puts it in the place of Scenario's own for a whole test run; `Sandbox` is the same by hand.
"""

from .bench import Bench, BenchError
from .sandbox import NotInSandbox, Sandbox

__all__ = ["Bench", "BenchError", "NotInSandbox", "Sandbox"]
