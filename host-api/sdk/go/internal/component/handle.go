//go:build wasip1

package component

import (
	"unsafe"

	"periapt/internal/contract"
)

// Handle runs a hook; the charm's package sets it while it is initialized.
var Handle contract.Handler

// outcome is `result<outcome, failure>`, in the module's own memory: the host reads it when the hook is over.
var outcome struct {
	isFailure uint32
	// Of a failure, its code; else whether there was no handler.
	code    uint32
	message text
}

// The event's case, then the parts of the case with the most of them, then the attempt. What those parts are is each case's own.
//
//go:wasmexport periapt:charm/handler@0.1.0#handle
func handle(kind, a, b, c, d, e, f, g, h, i, j, k, l, attempt uint32) unsafe.Pointer {
	event := understood(kind, [12]uint32{a, b, c, d, e, f, g, h, i, j, k, l})
	event.Attempt = attempt
	isHandled, failure := Handle(host{}, event)
	switch {
	case failure != nil:
		outcome.isFailure, outcome.code = 1, uint32(failure.Code)
		outcome.message = kept(failure.Message)
	case !isHandled:
		outcome.code = 1
	}
	return unsafe.Pointer(&outcome)
}

// kept is a text that stays where it is until the instance is gone.
func kept(message string) text {
	keptMessage = message
	return lent(keptMessage)
}

var keptMessage string
