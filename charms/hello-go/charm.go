// A charm that greets each related unit, and reports the greetings that it gets.
package main

import "periapt"

var handlers = periapt.Handlers{
	"install":                   install,
	"config-changed":            configure,
	"greeting-relation-joined":  answer,
	"greeting-relation-changed": answer,
	"hears-relation-changed":    hear,
	"greet-action":              greet,
}

func init() { periapt.Handle(handlers) }

// The agent calls a handler for each hook; main has nothing to do.
func main() {}

func install(unit *periapt.Unit, _ periapt.Event) error {
	return unit.SetStatus(periapt.Maintenance, "learning to speak")
}

// configure opens the configured port, and greets every relation again.
func configure(unit *periapt.Unit, _ periapt.Event) error {
	words, err := greeting(unit)
	if err != nil || words == "" {
		return err
	}
	port, err := openPort(unit)
	if err != nil {
		return err
	}
	for _, relation := range unit.Relations("greeting") {
		if err := relation.UnitBag().Set("greeting", words+"!"); err != nil {
			return err
		}
	}
	return unit.SetStatus(periapt.Active, "says %q on port %d", words, port)
}

// answer greets one unit, in this unit's bag of the relation.
func answer(unit *periapt.Unit, event periapt.Event) error {
	if event.Unit == "" {
		return nil
	}
	words, err := greetingFor(unit, event)
	if err != nil || words == "" {
		return err
	}
	return event.Relation.UnitBag().Set("greeting", words)
}

// hear reports the greeting of another charm's unit.
func hear(unit *periapt.Unit, event periapt.Event) error {
	remote, err := event.RemoteBag()
	if err != nil {
		return err
	}
	heard, err := remote.Get("greeting")
	if err != nil || heard == "" {
		return err
	}
	unit.Log(periapt.LevelInfo, "heard from %s: %s", event.Unit, heard)
	return unit.SetStatus(periapt.Active, "heard from %s: %s", event.Unit, heard)
}

// greet greets the person that the operator names, and counts the greetings.
func greet(unit *periapt.Unit, _ periapt.Event) error {
	action := unit.Action()
	var whom string
	if err := action.Param("whom", &whom); err != nil {
		return err
	}
	if whom == "" {
		return action.Fail("nobody was named")
	}
	words, err := greeting(unit)
	if err != nil || words == "" {
		return err
	}
	times, err := countGreeting(unit)
	if err != nil {
		return err
	}
	if err := action.Log("greeting %s", whom); err != nil {
		return err
	}
	if err := action.SetResult("greeting", "%s, %s!", words, whom); err != nil {
		return err
	}
	return action.SetResult("times", "%d", times)
}
