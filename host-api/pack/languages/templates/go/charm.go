// {name}: sets its greeting as its status.
package main

import "periapt"

var handlers = periapt.Handlers{
	"config-changed": configure,
	"greet-action":   greet,
}

func init() { periapt.Handle(handlers) }

// The agent calls a handler for each hook; main has nothing to do.
func main() {}

// greeting returns the greeting; if it is empty, the unit is blocked.
func greeting(unit *periapt.Unit) (string, error) {
	words, err := unit.ConfigText("greeting", "")
	if err != nil || words != "" {
		return words, err
	}
	return "", unit.SetStatus(periapt.Blocked, "option greeting is empty")
}

func configure(unit *periapt.Unit, _ periapt.Event) error {
	words, err := greeting(unit)
	if err != nil || words == "" {
		return err
	}
	return unit.SetStatus(periapt.Active, "says %s", words)
}

func greet(unit *periapt.Unit, _ periapt.Event) error {
	words, err := greeting(unit)
	if err != nil || words == "" {
		return err
	}
	action := unit.Action()
	var whom string
	if err := action.Param("whom", &whom); err != nil {
		return err
	}
	if err := action.Log("greeting %s", whom); err != nil {
		return err
	}
	return action.SetResult("greeting", "%s, %s!", words, whom)
}
