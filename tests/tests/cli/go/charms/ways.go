// Goes wrong at config-changed in the way that its option says.
package main

import (
	"errors"
	"os"

	"periapt"
)

func init() { periapt.Handle(periapt.Handlers{"config-changed": goWrong}) }

func main() {}

var all [][]byte

func recurse(n int) int { return recurse(n+1) + 1 }

func goWrong(unit *periapt.Unit, _ periapt.Event) error {
	mode, err := unit.ConfigText("mode", "")
	if err != nil {
		return err
	}
	switch mode {
	case "error":
		return errors.New("out of luck")
	case "panic":
		var none map[string]int
		none["x"] = 1
	case "loop":
		for {
		}
	case "grow":
		for {
			all = append(all, make([]byte, 1<<24))
		}
	case "recurse":
		recurse(0)
	case "exit":
		os.Exit(3)
	case "wait":
		<-make(chan int)
	case "refused":
		return unit.OpenPorts("80-79/tcp")
	case "tool":
		_, err := unit.Tool("relation-get", "-r", "nothing", "-", "x/0")
		return err
	case "leader":
		err := unit.SetAppStatus(periapt.Active, "")
		if periapt.Refused(err) == periapt.NotLeader {
			return unit.SetStatus(periapt.Waiting, "does not lead")
		}
		return err
	}
	return nil
}
