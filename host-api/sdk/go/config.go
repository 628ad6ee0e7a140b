package periapt

import (
	"fmt"

	"periapt/internal/contract"
)

// ConfigText is the value of a text option, or of one that names a secret; `otherwise` is for one that is not set.
func (u *Unit) ConfigText(key, otherwise string) (string, error) {
	value, isThere := u.host.Config(key)
	if uri, isSecret := value.(contract.SecretURI); isSecret {
		return string(uri), nil
	}
	return option(key, "a text", value, isThere, otherwise)
}

// ConfigInt is the value of an integer option.
func (u *Unit) ConfigInt(key string, otherwise int64) (int64, error) {
	value, isThere := u.host.Config(key)
	return option(key, "an integer", value, isThere, otherwise)
}

// ConfigFloat is the value of a float option.
func (u *Unit) ConfigFloat(key string, otherwise float64) (float64, error) {
	value, isThere := u.host.Config(key)
	if whole, isWhole := value.(int64); isWhole {
		return float64(whole), nil
	}
	return option(key, "a number", value, isThere, otherwise)
}

// ConfigBool is the value of a boolean option.
func (u *Unit) ConfigBool(key string, otherwise bool) (bool, error) {
	value, isThere := u.host.Config(key)
	return option(key, "a boolean", value, isThere, otherwise)
}

func option[T any](key, wanted string, value contract.Value, isThere bool, otherwise T) (T, error) {
	if !isThere {
		return otherwise, nil
	}
	if fitting, ok := value.(T); ok {
		return fitting, nil
	}
	return otherwise, fmt.Errorf("option %s is %v, expected %s", key, value, wanted)
}
