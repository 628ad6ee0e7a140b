"""The component's module: imports the charm when it is built, runs it when a hook is dispatched."""

import errno
import gc
import sys

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import hook_tools, types, workloads

from periapt_ops import build, host


class Sandbox:
    """The host of `periapt_ops`, by the contract's imports."""

    def run_tool(self, name, arguments, stdin):
        output = hook_tools.run(name, arguments, stdin)
        return host.ToolResult(output.exit_code, output.stdout, output.stderr)

    def connect_container(self, container):
        return Stream(_called(workloads.connect, workloads.Target_Pebble(container)))

    def connect_port(self, port):
        return Stream(_called(workloads.connect, workloads.Target_Port(port)))


class Stream:
    """A stream to a workload, by its number."""

    def __init__(self, number):
        self._number = number

    def read(self, most, milliseconds):
        received = _called(workloads.read, self._number, most, milliseconds)
        if isinstance(received, workloads.Received_Bytes):
            return received.value
        return b"" if isinstance(received, workloads.Received_End) else None

    def write(self, data, milliseconds):
        return _called(workloads.write, self._number, data, milliseconds)

    def shutdown(self):
        _called(workloads.shutdown, self._number)

    def close(self):
        workloads.close(self._number)


def _called(function, *arguments):
    """Call a function of the sandbox; what it refuses is an error of the system."""
    try:
        return function(*arguments)
    except Err as error:
        raise _os_error(error.value) from None


def _os_error(error):
    text = str(error.value)
    if isinstance(error, types.Error_NotFound):
        return FileNotFoundError(errno.ENOENT, text)
    if isinstance(error, types.Error_NotReady):
        return ConnectionRefusedError(errno.ECONNREFUSED, text)
    if isinstance(error, types.Error_LimitExceeded):
        return OSError(errno.EMFILE, text)
    return ConnectionResetError(errno.ECONNRESET, text)


class Handler(exports.Handler):
    """What the agent calls."""

    def handle(self, invocation):
        """Run the charm as a program; the event is in its environment, as Juju tells it."""
        ended = PROGRAM.run()
        if ended.code:
            raise Err(types.Failure(ended.code, ended.message))
        return types.Outcome.HANDLED


PROGRAM = build.build(sys.path)
host.use(Sandbox())
gc.collect()
gc.freeze()
