package main

import (
	"fmt"
	"strconv"

	"periapt"
)

// greeting returns the operator's greeting; if it is empty, the unit is blocked.
func greeting(unit *periapt.Unit) (string, error) {
	words, err := unit.ConfigText("greeting", "Hello")
	if err != nil || words != "" {
		return words, err
	}
	return "", unit.SetStatus(periapt.Blocked, "option greeting is empty, expected something to say")
}

// greetingFor returns the greeting for one unit of a relation, by the name in its bag.
func greetingFor(unit *periapt.Unit, event periapt.Event) (string, error) {
	remote, err := event.RemoteBag()
	if err != nil {
		return "", err
	}
	name, err := remote.Get("name")
	if err != nil {
		return "", err
	}
	if name == "" {
		name = event.Unit
	}
	words, err := greeting(unit)
	if err != nil || words == "" {
		return "", err
	}
	return fmt.Sprintf("%s, %s!", words, name), nil
}

func openPort(unit *periapt.Unit) (int64, error) {
	port, err := unit.ConfigInt("port", 7777)
	if err != nil {
		return 0, err
	}
	return port, unit.SetPorts(fmt.Sprintf("%d/tcp", port))
}

// countGreeting counts one greeting, over all hooks of this unit.
func countGreeting(unit *periapt.Unit) (int, error) {
	before, _ := unit.State().Get("greetings")
	times, err := strconv.Atoi(before)
	if before != "" && err != nil {
		return 0, fmt.Errorf("state greetings is %q, expected a number", before)
	}
	return times + 1, unit.State().Set("greetings", strconv.Itoa(times+1))
}
