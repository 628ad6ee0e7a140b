package periapttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"periapt/internal/contract"
)

// host answers from memory: the sandbox's refusals, in its words.
type host struct{ unit *Unit }

func (h *host) UnitName() string  { return h.unit.name }
func (h *host) AppName() string   { return h.unit.app() }
func (h *host) ModelName() string { return "test" }

func (h *host) PrivateAddress() (string, error) {
	if h.unit.address == "" {
		return "", contract.Refuse(contract.NotReady, "no private address(es) found")
	}
	return h.unit.address, nil
}

func (h *host) Config(key string) (contract.Value, bool) {
	value, isThere := h.unit.config[key]
	return value, isThere
}

func (h *host) IsLeader() (bool, error) { return h.unit.leads, nil }

func said(workload contract.Workload, message string) string {
	name := []string{"maintenance", "blocked", "waiting", "active"}[workload]
	if message == "" {
		return name
	}
	return name + ": " + message
}

func (h *host) SetStatus(workload contract.Workload, message string) error {
	h.unit.status = said(workload, message)
	return nil
}

func (h *host) SetAppStatus(workload contract.Workload, message string) error {
	if !h.unit.leads {
		return contract.Refuse(contract.NotLeader, "this unit is not the leader")
	}
	h.unit.appStatus = said(workload, message)
	return nil
}

func (h *host) SetVersion(version string) error {
	h.unit.version = version
	return nil
}

func (h *host) Log(level contract.Level, message string) {
	h.unit.log = append(h.unit.log, LogLine{Level: level, Message: message})
}

func (h *host) State(key string) (string, bool) {
	value, isThere := h.unit.durable.state[key]
	return value, isThere
}

func (h *host) AllState() []contract.Pair { return pairsOf(h.unit.durable.state) }

func (h *host) SetState(changes []contract.Pair) error {
	for _, change := range changes {
		if change.Key == "" {
			return contract.Refuse(contract.InvalidArgument, "a key must not be empty")
		}
	}
	for _, change := range changes {
		h.unit.durable.state[change.Key] = change.Value
	}
	return nil
}

func (h *host) DeleteState(key string) error {
	delete(h.unit.durable.state, key)
	return nil
}

// pairsOf is sorted by key, as the host answers.
func pairsOf(values map[string]string) []contract.Pair {
	all := make([]contract.Pair, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, contract.Pair{Key: key, Value: values[key]})
	}
	return all
}

func (h *host) running() (*ActionRun, error) {
	if h.unit.action == nil {
		return nil, contract.Refuse(contract.WrongContext, "not running an action")
	}
	return h.unit.action, nil
}

func (h *host) Params() (string, error) {
	run, err := h.running()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(run.params)
	return string(text), err
}

func (h *host) Param(path string) (string, bool, error) {
	run, err := h.running()
	if err != nil {
		return "", false, err
	}
	value := any(run.params)
	for _, part := range strings.Split(path, ".") {
		inner, isObject := value.(map[string]any)
		if value, isObject = inner[part]; !isObject {
			return "", false, nil
		}
	}
	text, err := json.Marshal(value)
	return string(text), true, err
}

var resultKey = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$`)

// Results that the host sets itself.
var reserved = []string{"stdout", "stdout-encoding", "stderr", "stderr-encoding"}

func (h *host) SetResults(results []contract.Pair) error {
	run, err := h.running()
	if err != nil {
		return err
	}
	for _, result := range results {
		if !resultKey.MatchString(result.Key) {
			const rule = "must start and end with lowercase alphanumeric, and contain only lowercase alphanumeric, hyphens and periods"
			return contract.Refuse(contract.InvalidArgument, fmt.Sprintf("key %q %s", result.Key, rule))
		}
		first, _, _ := strings.Cut(result.Key, ".")
		if slices.Contains(reserved, first) {
			return contract.Refuse(contract.InvalidArgument, fmt.Sprintf("cannot set reserved action key %q", result.Key))
		}
	}
	for _, result := range results {
		run.Results[result.Key] = result.Value
	}
	return nil
}

func (h *host) ActionLog(message string) error {
	run, err := h.running()
	if err == nil {
		run.Log = append(run.Log, message)
	}
	return err
}

func (h *host) FailAction(message string) error {
	run, err := h.running()
	if err != nil {
		return err
	}
	if message == "" {
		message = "action failed without reason given, check action for errors"
	}
	run.Failed = message
	return nil
}

func (h *host) Resource(name string) (contract.Resource, error) {
	resource, isThere := h.unit.resources[name]
	if !isThere {
		return resource, contract.Refuse(contract.NotFound, fmt.Sprintf("could not download resource: resource %q not found", name))
	}
	return resource, nil
}

func (h *host) Tool(name string, arguments []string) contract.ToolOutput {
	if h.unit.tool == nil {
		return contract.ToolOutput{ExitCode: 1, Stderr: "ERROR the harness has no answer for " + name + "\n"}
	}
	stdout, err := h.unit.tool(name, arguments)
	if err != nil {
		return contract.ToolOutput{ExitCode: 1, Stderr: "ERROR " + err.Error() + "\n"}
	}
	return contract.ToolOutput{Stdout: stdout}
}
