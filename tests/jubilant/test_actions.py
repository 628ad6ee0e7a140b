"""Actions and hook tools: what comes back, and what each failure is to the caller."""

from __future__ import annotations

import jubilant
import pytest
from conftest import Juju

SCRIPT = """
act: emit beginning
act: tool action-log half way
act: tool action-set size=3 volume.unit=MB volume.by-host.a=2
beside: emit before the end
beside: complain it hurts
beside: tool action-set reached=here
beside: tool action-fail "disk full"
grouped: panic the charm's own mistake
"""


@pytest.fixture(scope='module', autouse=True)
def probe(juju: Juju, charm) -> None:
    juju.deploy(charm('probe'), config={'script': SCRIPT}, num_units=2)
    juju.wait(lambda status: jubilant.all_agents_idle(status) and len(status.apps['probe'].units) == 2)


def leader(juju: Juju) -> str:
    units = juju.status().apps['probe'].units
    return next(name for name, unit in units.items() if unit.leader)


def test_results_are_nested_and_parameters_keep_their_types(juju: Juju):
    task = juju.run('probe/0', 'greet', {'whom': 'a: [b]', 'times': 2})
    assert task.success and task.status == 'completed' and task.return_code == 0
    assert task.results == {'greeting': {'text': 'hello a: [b]', 'times': '2'}}
    assert task.stdout == 'done\n'
    assert [line.split(' UTC ')[1] for line in task.log] == ['greeting a: [b]']
    assert juju.run('probe/1', 'greet').results['greeting']['text'] == 'hello world'

    task = juju.run('probe/0', 'act')
    assert task.results == {'size': '3', 'volume': {'unit': 'MB', 'by-host': {'a': '2'}}}
    assert task.stdout == 'beginning\n' and task.message == ''


def test_the_leader_is_a_receiver(juju: Juju):
    shown = juju.cli('show-task', juju.run('probe/leader', 'greet').id, '--format', 'json')
    assert 'hello world' in shown
    task = juju.exec('is-leader', unit='probe/leader')
    assert task.stdout == 'True\n'


def test_a_failed_action_keeps_what_it_said(juju: Juju):
    with pytest.raises(jubilant.TaskError) as error:
        juju.run('probe/0', 'beside')
    task = error.value.task
    assert not task.success
    assert (task.status, task.message, task.return_code) == ('failed', 'disk full', 0)
    assert task.results == {'reached': 'here'}
    assert (task.stdout, task.stderr) == ('before the end\n', 'it hurts\n')


@pytest.mark.parametrize(
    'message', ['timed out waiting for primary', 'user x (not found)', 'the following task failed', 'ERROR: 100 %']
)
def test_what_an_action_says_of_its_failure_is_no_word_of_the_client(juju: Juju, message: str):
    lines = [f'act: tool action-log "{message}"', f'act: tool action-fail "{message}"']
    juju.config('probe', {'script': '\n'.join(lines)})
    try:
        with pytest.raises(jubilant.TaskError) as error:
            juju.run('probe/0', 'act')
    finally:
        juju.config('probe', {'script': SCRIPT})
    task = error.value.task
    assert (task.status, task.message, task.return_code) == ('failed', message, 0)
    assert [line.split(' UTC ')[1] for line in task.log] == [message]


def test_a_crashed_action_says_why_on_its_standard_error(juju: Juju):
    with pytest.raises(jubilant.TaskError) as error:
        juju.run('probe/0', 'grouped')
    task = error.value.task
    assert task.status == 'failed' and task.return_code != 0
    assert "the charm's own mistake" in task.stderr
    assert juju.status().apps['probe'].units['probe/0'].workload_status.current != 'error'


def test_what_takes_too_long_is_a_time_out(juju: Juju):
    with pytest.raises(TimeoutError, match='timed out waiting for action'):
        juju.run('probe/0', 'greet', wait=0.001)
    for command in ('config-get', 'sleep 1'):
        with pytest.raises(TimeoutError, match='timed out waiting for command'):
            juju.exec(command, unit='probe/0', wait=0.001)
    assert juju.run('probe/0', 'greet', wait=60.5).success


def test_unknown_actions_units_and_parameters_are_value_errors(juju: Juju):
    for unit, action, parameters, text in [
        ('probe/0', 'no-such-action', None, 'no-such-action'),
        ('probe/42', 'greet', None, 'probe/42'),
        ('nobody/0', 'greet', None, 'nobody/0'),
        ('probe/0', 'greet', {'times': 'x'}, 'must be of type integer'),
        ('probe/0', 'greet', {'nothing': 1}, 'nothing'),
    ]:
        with pytest.raises(ValueError, match=f"error running action '{action}'") as error:
            juju.run(unit, action, parameters)
        assert text in str(error.value)


def test_hook_tools_run_in_a_unit(juju: Juju):
    task = juju.exec('config-get count', unit='probe/0')
    assert task.success and (task.return_code, task.stdout, task.stderr) == (0, 'False\n', '')
    task = juju.exec('config-get', '--format', 'json', 'count', unit='probe/1')
    assert task.stdout == 'false\n'
    juju.exec('status-set', 'active', 'by hand', unit=leader(juju))
    status = juju.wait(lambda status: status.apps['probe'].units[leader(juju)].is_active)
    assert status.apps['probe'].units[leader(juju)].workload_status.message == 'by hand'


def test_a_tool_that_fails_is_a_task_error(juju: Juju):
    with pytest.raises(jubilant.TaskError) as error:
        juju.exec('relation-get', '-r', '99', '-', 'probe/0', unit='probe/0')
    task = error.value.task
    assert task.return_code != 0 and task.stdout == ''
    assert 'relation not found' in task.stderr


def test_a_command_is_one_line_or_words(juju: Juju):
    task = juju.exec('echo foo', unit='probe/0')
    assert task.success and task.status == 'completed'
    assert (task.return_code, task.stdout, task.stderr) == (0, 'foo\n', '')
    assert juju.exec('echo', 'bar', 'baz', unit='probe/1').stdout == 'bar baz\n'
    assert juju.exec('echo', '$HOME a  b', unit='probe/1').stdout == '$HOME a  b\n'
    assert juju.exec('true', unit='probe/leader').stdout == ''


def test_a_script_has_pipes_conditions_and_the_units_own_files(juju: Juju):
    for script, stdout in [
        ('printf "b\\na\\n" | sort | head -n 1', 'a\n'),
        ('test -f charmcraft.yaml && grep -c "^name: probe" charmcraft.yaml || echo none', '1\n'),
        ('bash -c "echo one > /tmp/x; cat /tmp/x; rm /tmp/x; ls /tmp | wc -l"', 'one\n0\n'),
        ('for i in 1 2; do echo "$i of $JUJU_UNIT_NAME"; sleep 0.01; done', '1 of probe/0\n2 of probe/0\n'),
        ('[ "$(is-leader)" = "$(is-leader)" ] && echo same', 'same\n'),
    ]:
        assert juju.exec(script, unit='probe/0').stdout == stdout, script
    assert juju.exec('hostname', unit='probe/1').stdout == 'probe-1\n'


@pytest.mark.parametrize(
    ('command', 'code', 'stderr'),
    [
        ('sleep x', 1, 'invalid time interval'),
        ('false', 1, ''),
        ('exit 42', 42, ''),
        ('cat /etc/hostname', 1, 'No such file or directory'),
        ('curl -s http://localhost', 127, 'command not found'),
        ('systemctl is-active snapd', 127, 'a sandbox has no programs'),
        ('echo "', 2, 'syntax error'),
    ],
)
def test_a_command_that_fails_is_a_task_error(juju: Juju, command: str, code: int, stderr: str):
    with pytest.raises(jubilant.TaskError) as error:
        juju.exec(command, unit='probe/0')
    task = error.value.task
    assert not task.success and task.status == 'completed'
    assert (task.return_code, task.stdout) == (code, '')
    assert stderr in task.stderr


def test_what_a_sandbox_cannot_run_is_said(juju: Juju):
    for command in ('config-get', 'echo foo'):
        with pytest.raises(ValueError, match='probe/42'):
            juju.exec(command, unit='probe/42')
    for call, text in [
        (lambda: juju.exec('secret-get x', unit='probe/0'), 'secret-get is not run from outside'),
        (lambda: juju.exec('echo foo', machine=0), 'exec --machine is not supported'),
        (lambda: juju.ssh('probe/0', 'ls', '-l', user='root', ssh_options=['-v']), 'ssh is not supported'),
        (lambda: juju.ssh(0, 'ls', host_key_checks=False, container='charm'), 'ssh is not supported'),
        (lambda: juju.scp('probe/0:a', 'b', host_key_checks=False, scp_options=['-r']), 'scp is not supported'),
        (lambda: juju.cli('ssh', '--container', 'charm', 'probe/0', 'cat', stdin='foo'), 'ssh is not supported'),
        (lambda: juju.add_machine(constraints={'mem': '1G'}), 'add-machine is not supported'),
    ]:
        with pytest.raises(jubilant.CLIError) as error:
            call()
        assert error.value.returncode == 1
        assert text in error.value.stderr
