// {name}: says what it is told to.
package main

import "periapt"

var handlers = periapt.Handlers{
	"config-changed": configure,
	"greet-action":   greet,
}

func init() { periapt.Handle(handlers) }

// A hook calls a handler; there is nothing else to run.
func main() {}

// greeting is what is to be said; empty if there is nothing: the unit is then blocked.
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
