// Runs a web server through the Pebble of its container, and tells of files and commands there.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"periapt"
)

func init() {
	periapt.Handle(periapt.Handlers{
		"config-changed": configure,
		"pebble-ready":   configure,
		"drive-action":   drive,
	})
}

func main() {}

func settings(unit *periapt.Unit) (directory string, port int64, err error) {
	directory, err = unit.ConfigText("directory", "")
	port, failed := unit.ConfigInt("port", 0)
	return directory, port, errors.Join(err, failed)
}

func configure(unit *periapt.Unit, _ periapt.Event) error {
	directory, port, err := settings(unit)
	web := unit.Container("web")
	if err != nil || !web.CanConnect() {
		return errors.Join(err, unit.SetStatus(periapt.Waiting, "the container has not started"))
	}
	if err := web.Push(directory+"/page.txt", []byte("hello of "+unit.Name())); err != nil {
		return err
	}
	const layer = "{services: {web: {override: replace, startup: enabled, command: " +
		"python3 -m http.server %d --bind 127.0.0.1 --directory %s}}, " +
		"checks: {page: {override: replace, exec: {command: sleep 0}}}}"
	if err := web.AddLayer("charm", fmt.Sprintf(layer, port, directory)); err != nil {
		return err
	}
	if err := web.Replan(); err != nil {
		return err
	}
	service, _, err := web.Service("web")
	return errors.Join(err, unit.SetStatus(periapt.Active, "%s", service.Current))
}

func kindOf(err error) string {
	var told *periapt.PebbleError
	if errors.As(err, &told) {
		return told.Kind
	}
	return fmt.Sprint(err)
}

func drive(unit *periapt.Unit, _ periapt.Event) error {
	directory, port, err := settings(unit)
	web := unit.Container("web")
	err = errors.Join(err, web.MakeDir(directory+"/sub"))
	files, failed := web.ListFiles(directory)
	err = errors.Join(err, failed, web.RemovePath(directory+"/sub"))
	var names []string
	for _, file := range files {
		names = append(names, file.Name)
	}
	isThere, failed1 := web.Exists(directory + "/sub")
	pulled, failed2 := web.Pull(directory + "/page.txt")
	_, missing := web.Pull("/none")
	page, failed3 := unit.WorkloadPage(uint16(port), "/page.txt")
	much := bytes.Repeat([]byte("hello "), 100_000)
	shouted, failed4 := web.Exec(periapt.Exec{Command: []string{"tr", "a-z", "A-Z"}, Stdin: much})
	// It ends and has read nothing.
	bad, failed5 := web.Exec(periapt.Exec{Command: []string{"sh", "-c", "echo bad >&2; exit 3"}, Stdin: much})
	_, late := web.Exec(periapt.Exec{Command: []string{"sleep", "60"}, Timeout: 500 * time.Millisecond})
	id, failed6 := web.Notify("example.com/done", map[string]string{"of": unit.Name()})
	notice, failed7 := web.Notice(id)
	stopped, failed8 := web.StopChecks("page")
	again, failed9 := web.StopChecks("page")
	begun, failed10 := web.StartChecks("page")
	checks := []string{strings.Join(stopped, " "), strings.Join(again, " "), strings.Join(begun, " ")}
	err = errors.Join(err, failed8, failed9, failed10)
	if err := errors.Join(err, failed1, failed2, failed3, failed4, failed5, failed6, failed7); err != nil {
		return err
	}
	return unit.Action().SetResults(map[string]string{
		"page":    string(page.Body),
		"pulled":  string(pulled),
		"names":   strings.Join(names, " "),
		"gone":    fmt.Sprint(!isThere),
		"kind":    kindOf(missing),
		"shouted": fmt.Sprintf("%d %s", len(shouted.Stdout), shouted.Stdout[:min(5, len(shouted.Stdout))]),
		"failed":  fmt.Sprintf("%d %s", bad.Code, bad.Stderr),
		"late":    kindOf(late),
		"checks":  strings.Join(checks, ","),
		"notice":  notice.Data["of"],
	})
}
