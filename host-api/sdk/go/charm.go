package periapt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"periapt/internal/contract"
)

// Handler does what a charm does when something happens.
type Handler func(unit *Unit, event Event) error

// Handlers are a charm's by the names of their hooks: config-changed, db-relation-joined, backup-action. A kind without an
// endpoint or a name (relation-changed, storage-attached, action) is for all of it that have no handler of their own, and * for
// whatever has none. An event without a handler is reported as unhandled.
type Handlers map[string]Handler

// registered are those of the charm that this program is.
var registered Handlers

// Handle says what the charm's handlers are; to be called once, in an init function.
func Handle(handlers Handlers) { registered = handlers }

// Run runs a hook of some handlers, for the sandbox and for package periapttest.
func (handlers Handlers) Run(host contract.Host, event contract.Event) (isHandled bool, failure *contract.Failure) {
	handler := handlers.of(event)
	if handler == nil {
		return false, nil
	}
	unit := &Unit{host: host}
	defer func() {
		if said := recover(); said != nil {
			unit.logStack(said, string(debug.Stack()))
			failure = &contract.Failure{Code: 1, Message: fmt.Sprintf("panic: %v", said)}
		}
	}()
	if err := handler(unit, shown(host, event)); err != nil {
		return true, &contract.Failure{Code: exitCode(err), Message: err.Error()}
	}
	return true, nil
}

func (handlers Handlers) of(event contract.Event) Handler {
	for _, name := range []string{event.Hook, event.Kind, "*"} {
		if handler := handlers[name]; handler != nil {
			return handler
		}
	}
	return nil
}

// As a process would exit.
func exitCode(err error) int32 {
	var tool *ToolError
	if errors.As(err, &tool) && tool.ExitCode != 0 {
		return int32(tool.ExitCode)
	}
	return 1
}

// logStack writes where a panic came from, without the parts of the runtime and of this package.
func (u *Unit) logStack(said any, stack string) {
	u.Log(LevelError, "panic: %v", said)
	// Each frame is two lines: the function, and where in which file.
	lines := strings.Split(stack, "\n")
	for at := 1; at+1 < len(lines); at += 2 {
		function := strings.TrimSpace(lines[at])
		isOurs := strings.HasPrefix(function, "periapt.") || strings.HasPrefix(function, "periapt/")
		if isOurs || strings.HasPrefix(function, "panic(") || strings.HasPrefix(function, "runtime") {
			continue
		}
		u.Log(LevelError, "    %s", function)
		u.Log(LevelError, "        %s", strings.TrimSpace(lines[at+1]))
	}
}
