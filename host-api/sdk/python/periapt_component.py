"""The component's module: imports the charm when it is built, runs it when a hook is dispatched."""

import gc
import sys

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import hook_tools, pebble, types

from periapt_ops import build, host


class Sandbox:
    """The host of `periapt_ops`, by the contract's imports."""

    def run_tool(self, name, arguments, stdin):
        output = hook_tools.run(name, arguments, stdin)
        return host.ToolResult(output.exit_code, output.stdout, output.stderr)

    def pebble_connect(self, container):
        try:
            pebble.connect(container)
        except Err as error:
            raise _os_error(error.value) from None

    def pebble_request(self, container, request):
        asked = pebble.Request(request.method, request.target, request.headers, request.body)
        try:
            answer = pebble.request(container, asked)
        except Err as error:
            raise _os_error(error.value) from None
        return host.Response(answer.status, answer.headers, answer.body)


def _os_error(error):
    text = str(error.value)
    if isinstance(error, types.Error_NotFound):
        return FileNotFoundError(text)
    return ConnectionRefusedError(text)


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
