package contract

// Code is the contract's name of a reason to refuse.
type Code string

// Codes, in the contract's order.
const (
	InvalidArgument  Code = "invalid-argument"
	NotFound         Code = "not-found"
	PermissionDenied Code = "permission-denied"
	NotLeader        Code = "not-leader"
	Conflict         Code = "conflict"
	AlreadyExists    Code = "already-exists"
	LimitExceeded    Code = "limit-exceeded"
	NotGranted       Code = "not-granted"
	NotReady         Code = "not-ready"
	TryAgain         Code = "try-again"
	WrongContext     Code = "wrong-context"
	NotSupported     Code = "not-supported"
	Failed           Code = "failed"
)

// Codes by their numbers; the one behind them brings a name of its own.
var Codes = []Code{InvalidArgument, NotFound, PermissionDenied, NotLeader, Conflict, AlreadyExists, LimitExceeded,
	NotGranted, NotReady, TryAgain, WrongContext, NotSupported, Failed}

// Error is a call that the host refused.
type Error struct {
	// Code is why.
	Code Code
	// Reason says it in the words of Juju's hook tools.
	Reason string
	// What was being done, such as `bag of mysql/0 in db:3`.
	What string
}

func (e *Error) Error() string {
	if e.What == "" {
		return e.Reason
	}
	return e.What + ": " + e.Reason
}

// Refuse makes an Error.
func Refuse(code Code, reason string) error { return &Error{Code: code, Reason: reason} }

// About says of an error, if it is the host's refusal, what was being done.
func About(what string, err error) error {
	if refused, ok := err.(*Error); ok && refused.What == "" {
		return &Error{Code: refused.Code, Reason: refused.Reason, What: what}
	}
	return err
}
