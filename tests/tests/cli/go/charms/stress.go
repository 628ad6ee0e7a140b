// Does what moves Go's memory about between calls that are answered with much.
package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"periapt"
)

func init() {
	periapt.Handle(periapt.Handlers{"config-changed": stress, "stress-action": act})
}

func main() {}

var garbage [][]byte

// deep grows the stack, and asks at its end.
func deep(levels int, ask func() error) error {
	var frame [200]byte
	frame[levels%200] = byte(levels)
	if levels == 0 {
		return ask()
	}
	err := deep(levels-1, ask)
	if frame[levels%200] != byte(levels) {
		return fmt.Errorf("the stack is not what it was")
	}
	return err
}

// keeper asks for much, and says whether it is what was stored.
func keeper(unit *periapt.Unit) (func() error, error) {
	large := strings.Repeat("0123456789abcdef", 4000)
	for i := range 12 {
		if err := unit.State().Set(fmt.Sprintf("key-%02d", i), large); err != nil {
			return nil, err
		}
	}
	calls := 0
	return func() error {
		calls++
		all := unit.State().All()
		said, err := unit.Tool("state-get", fmt.Sprintf("key-%02d", calls%12))
		if err != nil {
			return err
		}
		for key, value := range all {
			if value != large || said != large {
				return fmt.Errorf("%s is something else", key)
			}
		}
		return nil
	}, nil
}

func stress(unit *periapt.Unit, _ periapt.Event) error {
	ask, err := keeper(unit)
	if err != nil {
		return err
	}
	for i := range 20 {
		garbage = append(garbage, make([]byte, 300_000))
		if i%5 == 4 {
			garbage = nil
		}
		if err := deep(i*100, ask); err != nil {
			return err
		}
		runtime.GC()
	}
	return unit.SetStatus(periapt.Active, "all is as it was")
}

// act does the same from several goroutines, and answers in several calls.
func act(unit *periapt.Unit, _ periapt.Event) error {
	ask, err := keeper(unit)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	wrong := make(chan error, 100)
	for range 5 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 4 {
				if err := deep(100, ask); err != nil {
					wrong <- err
				}
				runtime.Gosched()
			}
		}()
	}
	all.Wait()
	close(wrong)
	for err := range wrong {
		return err
	}
	var params map[string]any
	if err := unit.Action().Params(&params); err != nil {
		return err
	}
	for i := range 10 {
		if err := unit.Action().SetResult(fmt.Sprintf("result-%d", i), "%v", params["whom"]); err != nil {
			return err
		}
	}
	return nil
}
