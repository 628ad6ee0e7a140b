package periapttest

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"periapt"
)

// impossible is the table of states that cannot be, which try-hook and all harnesses read.
type impossible struct {
	Charms map[string]string
	Cases  []struct {
		Case  string
		Steps [][]any
		Says  *string
	}
}

// step does what a step of the table says; answers whether the harness has words for it.
func step(unit *Unit, charm string, words []any) bool {
	relation := func() Relation { return Relation(words[1].(float64)) }
	other := func() string { return words[2].(string) }
	switch words[0] {
	case "declares":
		unit.Declares(charm)
	case "config":
		unit.SetConfig(words[1].(string), "x")
	case "resource":
		unit.Attach(words[1].(string), periapt.Resource{})
	case "action":
		unit.Action(words[1].(string), nil)
	case "relate":
		unit.Relate(words[1].(string), other())
	case "join":
		unit.Join(relation(), other(), nil)
	case "change":
		unit.Change(relation(), other(), nil)
	case "change-app":
		unit.ChangeApp(relation(), nil)
	case "depart":
		unit.Depart(relation(), other())
	case "end":
		unit.End(relation())
	default:
		return false
	}
	return true
}

// panicked is what a step of a test panics with; nil: it does not.
func panicked(does func()) (told any) {
	defer func() { told = recover() }()
	does()
	return nil
}

func TestWhatCannotBePanicsAndSaysWhatWouldBeRight(t *testing.T) {
	text, err := os.ReadFile("../../../../runtime/hook/tests/impossible.json")
	if err != nil {
		t.Fatal(err)
	}
	var all impossible
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, each := range all.Cases {
		unit, told, isKnown := New("app/0", periapt.Handlers{}), any(nil), len(each.Steps) > 0
		for at, words := range each.Steps {
			if told != nil {
				t.Errorf("%s: step %d: %v", each.Case, at, told)
			}
			told = panicked(func() { isKnown = isKnown && step(unit, all.Charms["app"], words) })
		}
		if !isKnown {
			continue
		}
		tried++
		var expected any
		if each.Says != nil {
			expected = "inconsistent: " + *each.Says
		}
		if told != expected {
			t.Errorf("%s\n  is  %v\n  not %v", each.Case, told, expected)
		}
	}
	if tried < 12 {
		t.Errorf("%d cases were tried", tried)
	}
}

func TestAUnitHasAUnitsNameAndARelationsHookIsToldByItsOwnMethod(t *testing.T) {
	for says, does := range map[string]func(){
		`inconsistent: "app" is no unit's name; one is written app/0`: func() { New("app", nil) },
		"inconsistent: there is no relation 3":                        func() { New("app/0", nil).End(3) },
		"inconsistent: db-relation-created is about a relation; Join, Change, ChangeApp, Depart and End tell of one": func() {
			New("app/0", nil).Run("db-relation-created")
		},
	} {
		if told := panicked(does); fmt.Sprint(told) != says {
			t.Errorf("%v, not %s", told, says)
		}
	}
}
