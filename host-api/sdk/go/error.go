package periapt

import (
	"errors"
	"fmt"

	"periapt/internal/contract"
)

// Error is a call that the host refused: why, by a code of the contract's, and what was being done.
type Error = contract.Error

// Code is why the host refused a call.
type Code = contract.Code

// Why the host refuses calls.
const (
	InvalidArgument  = contract.InvalidArgument
	NotFound         = contract.NotFound
	PermissionDenied = contract.PermissionDenied
	NotLeader        = contract.NotLeader
	Conflict         = contract.Conflict
	AlreadyExists    = contract.AlreadyExists
	LimitExceeded    = contract.LimitExceeded
	NotGranted       = contract.NotGranted
	NotReady         = contract.NotReady
	TryAgain         = contract.TryAgain
	WrongContext     = contract.WrongContext
	NotSupported     = contract.NotSupported
	Failed           = contract.Failed
)

// Refused says why the host refused a call, if an error is that; else it is empty.
func Refused(err error) Code {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// ToolError is a hook tool that failed.
type ToolError struct {
	Tool     string
	ExitCode uint8
	// Message is what it said, without `ERROR`.
	Message string
}

func (e *ToolError) Error() string { return fmt.Sprintf("%s: %s", e.Tool, e.Message) }
