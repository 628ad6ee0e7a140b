package main

import (
	"errors"
	"slices"
	"testing"

	"periapt/periapttest"
)

// started returns a unit that says "Hello" on port 7777.
func started(t *testing.T) *periapttest.Unit {
	t.Helper()
	unit := periapttest.New("hello-go/0", handlers)
	unit.SetConfig("greeting", "Hello")
	unit.SetConfig("port", 7777)
	expect(t, unit.Run("install"))
	expect(t, unit.Run("config-changed"))
	return unit
}

func expect(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Errorf("found %v, expected %v", found, expected)
	}
}

func TestItSaysWhatItIsToldToOnItsPort(t *testing.T) {
	unit := started(t)
	same(t, unit.Status(), `active: says "Hello" on port 7777`)
	unit.SetConfig("port", 80)
	expect(t, unit.Run("config-changed"))
	if !slices.Equal(unit.Ports(), []string{"80/tcp"}) {
		t.Error(unit.Ports())
	}
}

func TestUnitsAreAnsweredByTheNameThatTheyGive(t *testing.T) {
	unit := started(t)
	relation := unit.Relate("greeting", "other")
	expect(t, unit.Join(relation, "other/0", nil))
	same(t, unit.UnitBag(relation, "greeting"), "Hello, other/0!")
	expect(t, unit.Change(relation, "other/0", map[string]string{"name": "you"}))
	same(t, unit.UnitBag(relation, "greeting"), "Hello, you!")
	unit.SetConfig("greeting", "Ahoy")
	expect(t, unit.Run("config-changed"))
	same(t, unit.UnitBag(relation, "greeting"), "Ahoy!")
}

func TestWhatIsHeardIsToldInTheStatus(t *testing.T) {
	unit := started(t)
	relation := unit.Relate("hears", "other")
	expect(t, unit.Join(relation, "other/0", map[string]string{"greeting": "Moin!"}))
	same(t, unit.Status(), "active: heard from other/0: Moin!")
	same(t, unit.Log()[0].Message, "heard from other/0: Moin!")
}

func TestAnEmptyGreetingBlocks(t *testing.T) {
	unit := started(t)
	unit.SetConfig("greeting", "")
	expect(t, unit.Run("config-changed"))
	same(t, unit.Status(), "blocked: option greeting is empty, expected something to say")
}

func TestAnImpossiblePortFailsTheHookAndChangesNothing(t *testing.T) {
	unit := started(t)
	unit.SetConfig("port", 70000)
	var failed *periapttest.HookFailed
	if !errors.As(unit.Run("config-changed"), &failed) {
		t.Fatal("it did not fail")
	}
	same(t, failed.Message, "70000/tcp is no port: expected numbers up to 65535")
	if !slices.Equal(unit.Ports(), []string{"7777/tcp"}) {
		t.Error(unit.Ports())
	}
}

func TestAnActionGreetsAndCounts(t *testing.T) {
	unit := started(t)
	done, err := unit.Action("greet", map[string]any{"whom": "sésame"})
	expect(t, err)
	same(t, done.Results["greeting"], "Hello, sésame!")
	done, err = unit.Action("greet", map[string]any{"whom": "you"})
	expect(t, err)
	same(t, done.Results["times"], "2")
	same(t, unit.Stored("greetings"), "2")
	done, err = unit.Action("greet", map[string]any{"whom": ""})
	expect(t, err)
	same(t, done.Failed, "nobody was named")
	if _, err := unit.Action("explode", nil); err == nil {
		t.Error("an action without a handler ran")
	}
}
