package periapttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"periapt"
)

// reply is an answer to a request.
type reply struct {
	status int
	kind   string
	body   []byte
}

// order is all that bodies of requests are read for.
type order struct {
	Action, Label, Layer, Signal, Key string
	Services, Checks, Command         []string
	Data                              map[string]string
	Dirs, Paths                       []struct{ Path string }
}

// respond answers as the container's Pebble.
func (c *Container) respond(request Request) reply {
	if c.Answers != nil {
		if status, body := c.Answers(request); status != 0 {
			return reply{status, "application/json", []byte(body)}
		}
	}
	target, err := url.Parse(request.Path)
	if err != nil {
		return refused("generic", err.Error())
	}
	var asked order
	isForm := bytes.HasPrefix(request.Body, []byte("--"))
	if request.Method == "POST" && !isForm {
		if err := json.Unmarshal(request.Body, &asked); err != nil {
			return refused("generic", err.Error())
		}
	}
	switch request.Method + " " + target.Path {
	case "GET /v1/system-info":
		return sync(map[string]string{"version": "test", "boot-id": "1"})
	case "GET /v1/plan":
		return sync(c.Plan)
	case "GET /v1/services":
		return sync(c.services)
	case "GET /v1/checks":
		return sync(c.checks)
	case "GET /v1/notices":
		return sync(c.notices)
	case "POST /v1/layers":
		c.layers[asked.Label] = asked.Layer
		return sync(true)
	case "POST /v1/services":
		c.Actions = append(c.Actions, strings.Join(append([]string{asked.Action}, asked.Services...), " "))
		return begun(nil)
	case "POST /v1/checks":
		return c.actOnChecks(asked.Action, asked.Checks)
	case "POST /v1/signals":
		c.Actions = append(c.Actions, strings.Join(append([]string{asked.Signal}, asked.Services...), " "))
		return sync(true)
	case "POST /v1/notices":
		id := strconv.Itoa(len(c.notices) + 1)
		c.notices = append(c.notices, shownNotice{id, "custom", asked.Key, 1, asked.Data})
		return sync(map[string]string{"id": id})
	case "POST /v1/exec":
		c.command = asked.Command
		return begun(map[string]string{"task-id": "1"})
	case "GET /v1/files":
		if path := target.Query().Get("path"); target.Query().Get("action") == "read" {
			return c.read(path)
		} else {
			return c.list(path, target.Query().Get("itself") == "true")
		}
	case "POST /v1/files":
		if isForm {
			return c.upload(request.Body)
		}
		return c.actOnFiles(asked)
	}
	if strings.HasPrefix(target.Path, "/v1/changes/") {
		task := map[string]any{"data": map[string]any{"exit-code": c.code}}
		return sync(map[string]any{"status": "Done", "err": nil, "tasks": []any{task}})
	}
	for _, notice := range c.notices {
		if target.Path == "/v1/notices/"+notice.ID {
			return sync(notice)
		}
	}
	return refused("not-found", "there is nothing")
}

// actOnChecks starts or stops checks: those that run are up or down.
func (c *Container) actOnChecks(action string, names []string) reply {
	if len(names) == 0 {
		return shown(400, failed("", "no checks to "+action))
	}
	for _, name := range names {
		if !slices.ContainsFunc(c.checks, func(check shownCheck) bool { return check.Name == name }) {
			return refused("", fmt.Sprintf("cannot find check %q", name))
		}
	}
	status := map[bool]string{true: "up", false: "inactive"}[action == "start"]
	changed := []string{}
	for i := range c.checks {
		check := &c.checks[i]
		if slices.Contains(names, check.Name) && (check.Status == "inactive") == (action == "start") {
			check.Status = status
			changed = append(changed, check.Name)
		}
	}
	c.Actions = append(c.Actions, action+"-checks "+strings.Join(names, " "))
	return sync(map[string]any{"changed": changed})
}

// run runs the command whose input has come, and answers what it printed.
func (c *Container) run(stdin []byte) []byte {
	output := periapt.ExecOutput{Code: 127, Stderr: []byte("the container has no answer for commands")}
	if c.Runs != nil {
		output = c.Runs(c.command, stdin)
	}
	c.code, c.errors, c.hasRun = output.Code, output.Stderr, true
	return output.Stdout
}

func missing(path string) string { return fmt.Sprintf("stat %s: no such file or directory", path) }

func (c *Container) isDirectory(path string) bool {
	return c.directories[path] || len(c.below(path)) > 0
}

// below are the names in a directory, sorted.
func (c *Container) below(path string) []string {
	var names []string
	add := func(other string) {
		if rest, isBelow := strings.CutPrefix(other, strings.TrimRight(path, "/")+"/"); isBelow && rest != "" {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	for file := range c.files {
		add(file)
	}
	for directory := range c.directories {
		add(directory)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Container) read(path string) reply {
	content, isThere := c.files[path]
	var form bytes.Buffer
	item := map[string]any{"path": path}
	if isThere {
		form.WriteString("--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"x\"\r\n\r\n")
		form.Write(content)
		form.WriteString("\r\n")
	} else {
		item["error"] = map[string]string{"kind": "not-found", "message": missing(path)}
	}
	form.WriteString("--b\r\nContent-Disposition: form-data; name=\"response\"\r\n\r\n")
	form.Write(sync([]any{item}).body)
	form.WriteString("\r\n--b--\r\n")
	return reply{200, "multipart/form-data; boundary=b", form.Bytes()}
}

func (c *Container) list(path string, itself bool) reply {
	entry := func(path string) map[string]any {
		name := path[strings.LastIndex(path, "/")+1:]
		if content, isFile := c.files[path]; isFile {
			return map[string]any{"path": path, "name": name, "type": "file", "permissions": "644", "size": len(content)}
		}
		return map[string]any{"path": path, "name": name, "type": "directory", "permissions": "755"}
	}
	if _, isFile := c.files[path]; isFile || itself && c.isDirectory(path) {
		return sync([]any{entry(path)})
	}
	if !c.isDirectory(path) {
		return refused("not-found", missing(path))
	}
	all := []any{}
	for _, name := range c.below(path) {
		all = append(all, entry(strings.TrimRight(path, "/")+"/"+name))
	}
	return sync(all)
}

func (c *Container) upload(form []byte) reply {
	line, _, _ := bytes.Cut(form, []byte("\r\n"))
	_, named, _ := bytes.Cut(form, []byte(`filename="`))
	path, rest, _ := bytes.Cut(named, []byte(`"`))
	_, content, _ := bytes.Cut(rest, []byte("\r\n\r\n"))
	content, _, isWhole := bytes.Cut(content, append([]byte("\r\n"), line...))
	if !isWhole {
		return refused("generic", "the form is cut off")
	}
	c.files[string(path)] = bytes.Clone(content)
	return sync([]any{map[string]any{"path": string(path)}})
}

func (c *Container) actOnFiles(asked order) reply {
	for _, directory := range asked.Dirs {
		c.directories[directory.Path] = true
	}
	for _, removal := range asked.Paths {
		isGone := func(path string) bool {
			return path == removal.Path || strings.HasPrefix(path, removal.Path+"/")
		}
		for path := range c.files {
			if isGone(path) {
				delete(c.files, path)
			}
		}
		for path := range c.directories {
			if isGone(path) {
				delete(c.directories, path)
			}
		}
	}
	return sync([]any{})
}

func shown(status int, value any) reply {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return reply{status, "application/json", text}
}

func sync(result any) reply { return shown(200, map[string]any{"type": "sync", "result": result}) }

func begun(result any) reply {
	return shown(202, map[string]any{"type": "async", "change": "1", "result": result})
}

func refused(kind, message string) reply {
	return shown(404, failed(kind, message))
}

func failed(kind, message string) map[string]any {
	return map[string]any{"type": "error", "result": map[string]string{"kind": kind, "message": message}}
}
