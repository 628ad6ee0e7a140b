package main

import (
	"testing"

	"periapt/periapttest"
)

func configured(t *testing.T, greeting string) *periapttest.Unit {
	t.Helper()
	unit := periapttest.New("{name}/0", handlers)
	unit.SetConfig("greeting", greeting)
	if err := unit.Run("config-changed"); err != nil {
		t.Fatal(err)
	}
	return unit
}

func TestItSaysWhatItIsToldTo(t *testing.T) {
	if status := configured(t, "Ahoy").Status(); status != "active: says Ahoy" {
		t.Error(status)
	}
}

func TestWithoutAGreetingItIsBlocked(t *testing.T) {
	if status := configured(t, "").Status(); status != "blocked: option greeting is empty" {
		t.Error(status)
	}
}

func TestTheActionGreetsWhomItIsGiven(t *testing.T) {
	done, err := configured(t, "Ahoy").Action("greet", map[string]any{"whom": "you"})
	if err != nil {
		t.Fatal(err)
	}
	if done.Results["greeting"] != "Ahoy, you!" {
		t.Error(done.Results)
	}
}
