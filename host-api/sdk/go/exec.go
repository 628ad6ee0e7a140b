package periapt

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// maxPause is the longest between two looks at a command's streams, in milliseconds.
const maxPause = 200

// Exec is a command that a container runs: the program is looked for as in a shell, and no shell runs.
type Exec struct {
	// Command is the program and its arguments.
	Command []string
	Stdin   []byte
	// Timeout is after which Pebble kills it: a *PebbleError of the kind change-failed. Without one, the hook's own time is the bound.
	Timeout     time.Duration
	Environment map[string]string
	WorkingDir  string
	User, Group string
	// ServiceContext is a service whose environment, directory and user it gets.
	ServiceContext string
}

// ExecOutput is how a command ended, and what it printed.
type ExecOutput struct {
	Code           int
	Stdout, Stderr []byte
}

// Run runs a command, and fails if it exits with another code than 0. It answers what the command printed.
func (c Container) Run(command ...string) (string, error) {
	output, err := c.Exec(Exec{Command: command})
	if err == nil && output.Code != 0 {
		said := strings.TrimRight(string(output.Stderr), "\n")
		err = c.fail("exit-code", fmt.Sprintf("the command exited with code %d: %s", output.Code, said))
	}
	return string(output.Stdout), err
}

// Exec runs a command, and waits for its end; it takes four of the hook's streams meanwhile. Another exit code than 0 is no error.
func (c Container) Exec(exec Exec) (ExecOutput, error) {
	body := map[string]any{"command": exec.Command, "split-stderr": true}
	if exec.Timeout > 0 {
		body["timeout"] = exec.Timeout.String()
	}
	if len(exec.Environment) > 0 {
		body["environment"] = exec.Environment
	}
	for name, value := range map[string]string{"working-dir": exec.WorkingDir, "user": exec.User, "group": exec.Group,
		"service-context": exec.ServiceContext} {
		if value != "" {
			body[name] = value
		}
	}
	begun, err := c.ask(c.jsonRequest("/v1/exec", body))
	if err != nil {
		return ExecOutput{}, err
	}
	var task struct {
		ID string `json:"task-id"`
	}
	if json.Unmarshal(begun.Result, &task) != nil || !isNumber(task.ID) {
		return ExecOutput{}, c.fail("broken", "exec began no task")
	}
	var sockets [3]*websocket
	for i, name := range []string{"control", "stdio", "stderr"} {
		stream, err := c.Connect()
		if err != nil {
			return ExecOutput{}, err
		}
		defer stream.Close()
		if sockets[i], err = openWebsocket(stream, "/v1/tasks/"+task.ID+"/websocket/"+name, maxAnswer); err != nil {
			return ExecOutput{}, c.fail("broken", err.Error())
		}
	}
	control, stdio, stderr := sockets[0], sockets[1], sockets[2]
	if err := carry(stdio, stderr, exec.Stdin); err != nil {
		kill := appendFrame(nil, textFrame, []byte(`{"command":"signal","signal":{"name":"SIGKILL"}}`))
		// The first failure counts.
		_, _ = control.stream.send(kill, maxPause)
		return ExecOutput{}, c.fail("broken", err.Error())
	}
	ended, err := c.ended(begun, "exec")
	if err != nil {
		return ExecOutput{}, err
	}
	if len(ended.Tasks) == 0 || ended.Tasks[0].Data.ExitCode == nil {
		return ExecOutput{}, c.fail("broken", "the command ended without an exit code")
	}
	return ExecOutput{*ended.Tasks[0].Data.ExitCode, stdio.output, stderr.output}, nil
}

// carry sends the input and receives both outputs, to their ends: a command may print before it has read all.
func carry(stdio, stderr *websocket, stdin []byte) error {
	rest := inputFrames(stdin)
	for pause := int64(0); !stdio.isOver || !stderr.isOver; {
		isMoving := false
		if len(rest) > 0 && !stdio.isOver {
			sent, err := stdio.stream.send(rest, 0)
			if err != nil {
				// A command that has ended reads no more. What it printed comes all the same.
				sent = len(rest)
			}
			rest, isMoving = rest[sent:], sent > 0
		}
		// The wait is for one of them: the other is looked at soon enough.
		for i, socket := range []*websocket{stdio, stderr} {
			if socket.isOver {
				continue
			}
			wait := pause
			if i == 1 && !stdio.isOver {
				wait = 0
			}
			hasCome, err := socket.receive(wait)
			if err != nil {
				return err
			}
			isMoving = isMoving || hasCome
		}
		pause = min(pause*2+1, maxPause)
		if isMoving {
			pause = 0
		}
	}
	return nil
}
