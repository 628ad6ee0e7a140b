package periapttest

import (
	"periapt"
)

// Request is what a charm sends to a workload.
type Request struct {
	Method, Path string
	Body         []byte
}

// Container is one beside a unit in memory, with as much of a Pebble as charms see of it. It keeps files and layers, writes down
// what is asked of services and checks, and runs none.
type Container struct {
	files       map[string][]byte
	directories map[string]bool
	layers      map[string]string
	services    []shownService
	checks      []shownCheck
	notices     []shownNotice
	command     []string
	code        int
	errors      []byte
	hasRun      bool

	// Actions are what was asked of services and checks, in order: `replan`, `start web`, `SIGHUP web`, `stop-checks page`.
	Actions []string
	// Plan is the one that the charm sees.
	Plan string
	// Runs runs commands.
	Runs func(command []string, stdin []byte) periapt.ExecOutput
	// Answers answers requests before the container's Pebble does, which answers those that get the status 0.
	Answers func(request Request) (status int, body string)
	// Sends is sent in place of each response, after which the stream ends; nil: nothing is.
	Sends []byte
}

// Container starts a container, without an event: hooks reach its Pebble from now on. A second call answers the same one.
func (u *Unit) Container(name string) *Container {
	if u.workloads.containers[name] == nil {
		u.workloads.containers[name] = &Container{files: map[string][]byte{}, directories: map[string]bool{},
			layers: map[string]string{}}
	}
	return u.workloads.containers[name]
}

// Serve starts a workload that answers requests on a port.
func (u *Unit) Serve(port uint16, answer func(request Request) (status int, body string)) {
	u.workloads.ports[port] = answer
}

// Write writes a file, as an image has it.
func (c *Container) Write(path, content string) { c.files[path] = []byte(content) }

// File is a file's content; false: it is not there.
func (c *Container) File(path string) (string, bool) {
	content, isThere := c.files[path]
	return string(content), isThere
}

// Layer is the last one that was added under a label, as the charm wrote it.
func (c *Container) Layer(label string) string { return c.layers[label] }

// NoticeKeys are those of the notices that the charm made.
func (c *Container) NoticeKeys() []string {
	var keys []string
	for _, notice := range c.notices {
		keys = append(keys, notice.Key)
	}
	return keys
}

// SetService sets a service that the charm sees, and its state: active, inactive, backoff or error.
func (c *Container) SetService(name, current string) {
	c.services = append(c.services, shownService{name, "enabled", current})
}

// SetCheck sets a check that the charm sees, and its state: up, down or inactive.
func (c *Container) SetCheck(name, status string) {
	c.checks = append(c.checks, shownCheck{name, status, 3})
}

type shownService struct {
	Name    string `json:"name"`
	Startup string `json:"startup"`
	Current string `json:"current"`
}

type shownCheck struct {
	Name      string `json:"name"`
	Status    string `json:"status"`
	Threshold int    `json:"threshold"`
}

type shownNotice struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Key         string            `json:"key"`
	Occurrences int               `json:"occurrences"`
	Data        map[string]string `json:"last-data"`
}
