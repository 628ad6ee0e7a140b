//go:build wasip1

package periapt

import (
	"periapt/internal/component"
	"periapt/internal/contract"
)

func init() {
	component.Handle = func(host contract.Host, event contract.Event) (bool, *contract.Failure) {
		if registered == nil {
			const message = "the charm has no handlers: give them to periapt.Handle in an init function"
			return true, &contract.Failure{Code: 1, Message: message}
		}
		return registered.Run(host, event)
	}
}
