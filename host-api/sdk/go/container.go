package periapt

import (
	"encoding/json"
	"fmt"
	"strings"

	"periapt/internal/contract"
)

const (
	// maxAnswer is how many bytes an answer has at most: a plan may have some MiB, and so may a file or a command's output.
	maxAnswer = 8 << 20
	// The end of a change is waited for so often, and each time so many seconds: the host ends a request that is silent for longer.
	waits       = 8
	waitSeconds = 4
)

// PebbleError is what a container's Pebble refused, or failed at.
type PebbleError struct {
	Container string
	// Kind is Pebble's word, such as not-found, permission-denied or generic-file-error; api if it gives none. The SDK's own are
	// change-failed, timeout, broken (the answer broke off, or makes no sense), invalid and exit-code.
	Kind    string
	Message string
	// Status is the response's; 0 if the error is not that of a response.
	Status int
}

func (e *PebbleError) Error() string {
	text := fmt.Sprintf("container %q: %s", e.Container, e.Message)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	return text
}

// Container is one of the unit's, by its Pebble: its services, files and commands. A WebAssembly workload is a container of its
// name. Calls take effect at once, and stay if the hook fails. What Pebble refuses is a *PebbleError; a container that nobody
// listens for is an *Error with the code NotReady.
type Container struct {
	host contract.Host
	name string
}

// Container is the one of a name.
func (u *Unit) Container(name string) Container { return Container{u.host, name} }

// Connect opens a stream to its Pebble, which speaks HTTP.
func (c Container) Connect() (*Stream, error) {
	return connect(c.host, contract.Target{Container: c.name}, fmt.Sprintf("container %q", c.name))
}

// CanConnect says whether it has started and answers.
func (c Container) CanConnect() bool {
	id, err := c.BootID()
	return err == nil && id != ""
}

// BootID is that of its start: another after each restart.
func (c Container) BootID() (string, error) {
	var info struct {
		BootID string `json:"boot-id"`
	}
	return info.BootID, c.get("/v1/system-info", &info)
}

// AddLayer adds a layer in YAML, or combines it with the layer of the same label. Replan applies it.
func (c Container) AddLayer(label, layer string) error {
	body := map[string]any{"action": "add", "combine": true, "label": label, "format": "yaml", "layer": layer}
	return c.post("/v1/layers", body, nil)
}

// Plan is what all layers give together, in YAML.
func (c Container) Plan() (plan string, err error) {
	err = c.get("/v1/plan?format=yaml", &plan)
	return plan, err
}

// Replan starts enabled services that do not run, restarts those that the plan has otherwise, and waits for them.
func (c Container) Replan() error { return c.act("replan", nil) }

// Start starts services, and waits until each has run for a second.
func (c Container) Start(services ...string) error { return c.act("start", services) }

// Stop stops services, and waits until they have ended.
func (c Container) Stop(services ...string) error { return c.act("stop", services) }

// Restart stops services that run, and starts them all.
func (c Container) Restart(services ...string) error { return c.act("restart", services) }

// SendSignal sends a signal, such as SIGHUP, to services that run.
func (c Container) SendSignal(signal string, services ...string) error {
	return c.post("/v1/signals", map[string]any{"signal": signal, "services": services}, nil)
}

// Service is one of the plan.
type Service struct {
	Name string
	// Startup is enabled or disabled: whether Replan starts it.
	Startup string
	// Current is active, inactive, backoff or error.
	Current string
}

// IsRunning says whether it does.
func (s Service) IsRunning() bool { return s.Current == "active" }

// Services are those of the plan, by name.
func (c Container) Services() (all []Service, err error) {
	err = c.get("/v1/services", &all)
	return all, err
}

// Service is the one of a name, if the plan has it.
func (c Container) Service(name string) (Service, bool, error) {
	all, err := c.Services()
	for _, service := range all {
		if service.Name == name {
			return service, true, err
		}
	}
	return Service{}, false, err
}

// Check is one of the plan.
type Check struct {
	Name string
	// Level is alive, ready or nothing.
	Level string
	// Status is up, down or inactive.
	Status string
	// Failures are those in a row, and Threshold the number at which it is down.
	Failures, Threshold int
}

// IsUp says whether it succeeds, or has not failed often enough.
func (c Check) IsUp() bool { return c.Status == "up" }

// Checks are those of the plan, by name.
func (c Container) Checks() (all []Check, err error) {
	err = c.get("/v1/checks", &all)
	return all, err
}

// StartChecks starts checks, and answers the names of those that did not run.
func (c Container) StartChecks(checks ...string) (changed []string, err error) {
	return c.actOnChecks("start", checks)
}

// StopChecks stops checks until StartChecks or Replan, and answers the names of those that ran.
func (c Container) StopChecks(checks ...string) (changed []string, err error) {
	return c.actOnChecks("stop", checks)
}

// Notice is one of the container's.
type Notice struct {
	ID, Type, Key string
	Occurrences   int
	// Data is that of the last occurrence.
	Data map[string]string `json:"last-data"`
}

// Notices are all that there are, the oldest first.
func (c Container) Notices() (all []Notice, err error) {
	err = c.get("/v1/notices?users=all", &all)
	return all, err
}

// Notice is the one of an id, such as that of a pebble-custom-notice.
func (c Container) Notice(id string) (notice Notice, err error) {
	err = c.get("/v1/notices/"+encoded(id), &notice)
	return notice, err
}

// Notify makes a custom notice, or repeats it, and answers its id. A key is as in example.com/backup-done.
func (c Container) Notify(key string, data map[string]string) (string, error) {
	var made struct{ ID string }
	err := c.post("/v1/notices", map[string]any{"action": "add", "type": "custom", "key": key, "data": data}, &made)
	return made.ID, err
}

func (c Container) act(action string, services []string) error {
	begun, err := c.ask(c.jsonRequest("/v1/services", map[string]any{"action": action, "services": services}))
	if err == nil {
		_, err = c.ended(begun, action)
	}
	return err
}

func (c Container) actOnChecks(action string, checks []string) ([]string, error) {
	var result struct{ Changed []string }
	err := c.post("/v1/checks", map[string]any{"action": action, "checks": checks}, &result)
	return result.Changed, err
}

// answered is what all of the API's answers are.
type answered struct {
	Change string
	Result json.RawMessage
}

// told is an error, of a response or of one file.
type told struct{ Kind, Message string }

func (c Container) get(path string, into any) error {
	return c.read(request{method: "GET", path: path}, into)
}

func (c Container) post(path string, body, into any) error {
	return c.read(c.jsonRequest(path, body), into)
}

func (c Container) read(asked request, into any) error {
	answer, err := c.ask(asked)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		return c.fail("broken", "its answer is unreadable: "+err.Error())
	}
	return nil
}

func (c Container) jsonRequest(path string, body any) request {
	// Nothing that is given here can fail to become JSON.
	text, _ := json.Marshal(body)
	return request{"POST", path, "application/json", text}
}

func (c Container) ask(asked request) (answered, error) {
	response, err := c.exchange(asked)
	if err != nil {
		return answered{}, err
	}
	return c.answer(response)
}

func (c Container) exchange(asked request) (response, error) {
	stream, err := c.Connect()
	if err != nil {
		return response{}, err
	}
	defer stream.Close()
	answer, err := exchange(stream, asked, maxAnswer)
	if err != nil {
		return answer, c.fail("broken", err.Error())
	}
	return answer, nil
}

func (c Container) answer(from response) (answer answered, err error) {
	if json.Unmarshal(from.body, &answer) != nil {
		return answer, c.fail("broken", fmt.Sprintf("its answer with status %d is unreadable", from.status))
	}
	if from.isSuccess() {
		return answer, nil
	}
	var refused told
	// An error of an odd shape is one without a reason.
	_ = json.Unmarshal(answer.Result, &refused)
	return answer, c.refused(refused, from.status)
}

func (c Container) refused(by told, status int) error {
	if by.Kind == "" {
		by.Kind = "api"
	}
	if by.Message == "" {
		by.Message = "it gives no reason"
	}
	return &PebbleError{c.name, by.Kind, by.Message, status}
}

func (c Container) fail(kind, message string) error { return &PebbleError{c.name, kind, message, 0} }

// change is one that has ended.
type change struct {
	Status, Err string
	Tasks       []struct {
		Log  []string
		Data struct {
			ExitCode *int `json:"exit-code"`
		}
	}
}

// ended waits for the end of a change that was begun.
func (c Container) ended(begun answered, action string) (ended change, err error) {
	if !isNumber(begun.Change) {
		return ended, c.fail("broken", action+" began no change")
	}
	path := fmt.Sprintf("/v1/changes/%s/wait?timeout=%ds", begun.Change, waitSeconds)
	for range waits {
		response, err := c.exchange(request{method: "GET", path: path})
		if err != nil {
			return ended, err
		}
		// 504: it still goes on.
		if response.status == 504 {
			continue
		}
		answer, err := c.answer(response)
		if err != nil {
			return ended, err
		}
		if json.Unmarshal(answer.Result, &ended) != nil {
			return ended, c.fail("broken", "the end of "+action+" is unreadable")
		}
		if ended.Status == "Done" {
			return ended, nil
		}
		lines := []string{ended.Err}
		if ended.Err == "" {
			lines[0] = "the change failed"
		}
		for _, task := range ended.Tasks {
			lines = append(lines, task.Log...)
		}
		return ended, c.fail("change-failed", strings.Join(lines, "\n"))
	}
	return ended, c.fail("timeout", fmt.Sprintf("%s still goes on after %d s", action, waits*waitSeconds))
}

func isNumber(id string) bool {
	isOther := func(letter rune) bool { return letter < '0' || letter > '9' }
	return id != "" && !strings.ContainsFunc(id, isOther)
}

// encoded is a text as a part of a query.
func encoded(text string) string {
	var query strings.Builder
	for _, letter := range []byte(text) {
		isPlain := strings.IndexByte("/-_.~", letter) >= 0 || letter >= '0' && letter <= '9' ||
			letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z'
		if isPlain {
			query.WriteByte(letter)
		} else {
			fmt.Fprintf(&query, "%%%02X", letter)
		}
	}
	return query.String()
}
