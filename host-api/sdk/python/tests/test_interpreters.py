"""Interpreters beside the one that runs, over the stand-ins for the native modules."""

import pytest

from periapt_ops.stand_ins import interpreters


def test_the_main_interpreter_is_all_there_is():
    module = interpreters.interpreters_module()
    assert module.get_current() == module.get_main() == (0, module.WHENCE_RUNTIME)
    assert module.list_all(require_ready=True) == [(0, module.WHENCE_RUNTIME)]
    assert (module.whence(0), module.is_running(0), module.incref(0)) == (module.WHENCE_RUNTIME, True, None)
    assert module.is_shareable(("a", 1, None)) and not module.is_shareable([])
    with pytest.raises(module.InterpreterNotFoundError, match="ID 1"):
        module.decref(1)
    for call in (module.create, module.exec, module.call):
        with pytest.raises(module.InterpreterError, match="one interpreter in the sandbox"):
            call(0, "1", reqrefs=True)


def test_no_queue_and_no_channel_can_be_made():
    queues, channels = interpreters.queues_module(), interpreters.channels_module()
    assert queues.list_all() == channels.list_all() == []
    with pytest.raises(queues.QueueError, match="one interpreter"):
        queues.create(0, 1, -1)
    with pytest.raises(queues.QueueNotFoundError):
        queues.release(0)
    with pytest.raises(channels.ChannelError, match="one interpreter"):
        channels.create(1)
    with pytest.raises(channels.ChannelNotFoundError):
        channels.send(0, b"")
