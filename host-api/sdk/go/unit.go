package periapt

import (
	"fmt"
	"strings"

	"periapt/internal/contract"
)

// Unit is the unit that a hook runs in: all that it may ask.
type Unit struct{ host contract.Host }

// Name is APPLICATION/NUMBER.
func (u *Unit) Name() string { return u.host.UnitName() }

// App is the application's name.
func (u *Unit) App() string { return u.host.AppName() }

// Model is the model's name.
func (u *Unit) Model() string { return u.host.ModelName() }

// PrivateAddress is where others of the model reach the unit.
func (u *Unit) PrivateAddress() (string, error) {
	address, err := u.host.PrivateAddress()
	return address, contract.About("private address", err)
}

// IsLeader says whether the unit leads its application; true is guaranteed for 30 seconds from the answer.
func (u *Unit) IsLeader() (bool, error) {
	leads, err := u.host.IsLeader()
	return leads, contract.About("leadership", err)
}

// Workload is what a charm may say of its workload.
type Workload = contract.Workload

// What a charm may say of its workload.
const (
	Maintenance = contract.Maintenance
	Blocked     = contract.Blocked
	Waiting     = contract.Waiting
	Active      = contract.Active
)

// SetStatus says how the workload is. It is seen at once, and stays if the hook fails.
func (u *Unit) SetStatus(workload Workload, format string, arguments ...any) error {
	return contract.About("setting the status", u.host.SetStatus(workload, fmt.Sprintf(format, arguments...)))
}

// SetAppStatus says how the whole application is; leader only.
func (u *Unit) SetAppStatus(workload Workload, format string, arguments ...any) error {
	err := u.host.SetAppStatus(workload, fmt.Sprintf(format, arguments...))
	return contract.About("setting the application's status", err)
}

// SetVersion says which version of the workload runs.
func (u *Unit) SetVersion(version string) error {
	return contract.About("setting the version", u.host.SetVersion(version))
}

// Level is a log line's.
type Level = contract.Level

// Levels of log lines.
const (
	LevelTrace   = contract.Trace
	LevelDebug   = contract.Debug
	LevelInfo    = contract.Info
	LevelWarning = contract.Warning
	LevelError   = contract.ErrorLevel
)

// Log writes a line of the unit's log, which is seen at once.
func (u *Unit) Log(level Level, format string, arguments ...any) {
	u.host.Log(level, fmt.Sprintf(format, arguments...))
}

// Resource is the file of a resource.
type Resource = contract.Resource

// Resource answers the file of a resource, which is there to read for the rest of the hook.
func (u *Unit) Resource(name string) (Resource, error) {
	resource, err := u.host.Resource(name)
	return resource, contract.About("resource "+name, err)
}

// Tool runs one of Juju's hook tools, such as network-get, and answers what it printed, without its last newline. A tool that
// fails is a *ToolError.
func (u *Unit) Tool(name string, arguments ...string) (string, error) {
	output := u.host.Tool(name, arguments)
	if output.ExitCode == 0 {
		return strings.TrimSuffix(output.Stdout, "\n"), nil
	}
	said := strings.TrimPrefix(strings.TrimSuffix(output.Stderr, "\n"), "ERROR ")
	return "", &ToolError{Tool: name, ExitCode: output.ExitCode, Message: said}
}
