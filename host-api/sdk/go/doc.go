// Package periapt is the SDK for charms in Go.
//
// A charm is a program whose hooks are handlers:
//
//	package main
//
//	import "periapt"
//
//	func init() {
//		periapt.Handle(periapt.Handlers{
//			"config-changed": configure,
//			"greet-action":   greet,
//		})
//	}
//
//	func main() {}
//
//	func configure(unit *periapt.Unit, event periapt.Event) error {
//		port, err := unit.ConfigInt("port", 80)
//		if err != nil {
//			return err
//		}
//		if err := unit.SetPorts(fmt.Sprintf("%d/tcp", port)); err != nil {
//			return err
//		}
//		return unit.SetStatus(periapt.Active, "on port %d", port)
//	}
//
// An error that a handler returns fails the hook: nothing that it asked for happens, save its statuses and its log. So does a
// panic, whose stack is in the log. What the host refuses is an *Error, with a Code.
//
// Each hook runs in a fresh instance of the program, which is initialized anew: nothing in memory lasts. What must last is in
// Unit.State, or in a bag of a relation.
//
// Package periapttest runs hooks natively, against a unit in memory.
package periapt
