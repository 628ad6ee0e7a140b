package periapt

import (
	"encoding/json"
	"fmt"

	"periapt/internal/contract"
)

// Action is the one that runs. In any other hook each call is refused.
type Action struct{ host contract.Host }

// Action answers the one that runs.
func (u *Unit) Action() Action { return Action(*u) }

// Params reads all parameters, with the defaults of what was not given, into what encoding/json can fill.
func (a Action) Params(into any) error {
	text, err := a.host.Params()
	if err != nil {
		return contract.About("parameters", err)
	}
	return json.Unmarshal([]byte(text), into)
}

// Param reads one parameter, or a part of it, by its path through objects (a.b.c). What was not given, and has no default,
// leaves `into` as it was.
func (a Action) Param(path string, into any) error {
	text, isThere, err := a.host.Param(path)
	if err != nil || !isThere {
		return contract.About("parameter "+path, err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("parameter %s: %w", path, err)
	}
	return nil
}

// SetResult sets a result; a key is a path (a.b.c), and a later value stands in place of an earlier one.
func (a Action) SetResult(key, format string, arguments ...any) error {
	return a.SetResults(map[string]string{key: fmt.Sprintf(format, arguments...)})
}

// SetResults sets several, all or none.
func (a Action) SetResults(results map[string]string) error {
	return contract.About("results", a.host.SetResults(pairsOf(results)))
}

// Log tells the operators who wait for the action; it is sent at once.
func (a Action) Log(format string, arguments ...any) error {
	return contract.About("action's log", a.host.ActionLog(fmt.Sprintf(format, arguments...)))
}

// Fail says that the action failed. The handler goes on, and what it asks for happens if it returns no error.
func (a Action) Fail(format string, arguments ...any) error {
	return contract.About("failing the action", a.host.FailAction(fmt.Sprintf(format, arguments...)))
}
