package periapttest

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"periapt"
	"periapt/internal/contract"
)

// table is the typed half of the table of hook tools: what the host answers, case by case.
type table struct {
	Secrets map[string]string
	Drawn   string
	Cases   []tableCase
}

type tableCase struct {
	Tool, Case, Function string
	Given                [][]string
	Hook, Before         []string
	Arguments            []any
	Answer               any
}

// What a harness has no counterpart of: bounds, other units of the machine, what operators do to applications.
var notInAHarness = []string{"limit", "subordinate", "option", "application"}

// Single cases that cannot be put: a harness refuses at the call what a commit would, tells no batches, and does not know what the
// charm declares; the SDK gives each failure of an action a reason.
var notPut = []string{"what is not the unit's is refused when the hook commits", "who joins in a batch is listed, and who departs is not",
	"an endpoint that is not there", "what nobody attached", "an image", "no reason is told as one"}

func TestTheHarnessAnswersAsTheTableSays(t *testing.T) {
	text, err := os.ReadFile("../../../../runtime/hook/tests/typed.json")
	if err != nil {
		t.Fatal(err)
	}
	var all table
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, each := range all.Cases {
		told, isKnown := ask(&all, &each)
		if !isKnown {
			continue
		}
		compared++
		if !reflect.DeepEqual(told, each.Answer) {
			is, _ := json.Marshal(told)
			not, _ := json.Marshal(each.Answer)
			t.Errorf("%s: %s: %s %v\n  is  %s\n  not %s", each.Tool, each.Case, each.Function, each.Arguments, is, not)
		}
	}
	if compared < 100 {
		t.Errorf("%d cases were compared", compared)
	}
}

// ask puts a case to a harness in the plain world; answers as the journal writes it, and whether a harness can be asked that.
func ask(all *table, each *tableCase) (told any, isKnown bool) {
	isOdd := func(words []string) bool {
		return slices.Contains(notInAHarness, words[0]) || (words[0] == "opened" && words[1] != "a/0")
	}
	if len(each.Before) > 0 || slices.ContainsFunc(each.Given, isOdd) || slices.Contains(notPut, each.Case) {
		return nil, false
	}
	scene := newScene(all, each.Given)
	asks := func(host contract.Host) {
		told, isKnown = call(host, each.Function, scene.renamed(each.Arguments).([]any))
	}
	scene.runs(each.Hook, asks)
	return scene.named(told), isKnown
}

// scene is the plain world of the table.
type scene struct {
	unit     *Unit
	db       Relation
	asks     func(host contract.Host)
	toTable  *strings.Replacer
	toScenes *strings.Replacer
}

func newScene(all *table, given [][]string) *scene {
	s := &scene{}
	s.unit = New("a/0", periapt.Handlers{"*": func(unit *periapt.Unit, _ periapt.Event) error {
		if s.asks != nil {
			s.asks(&host{s.unit})
		}
		return nil
	}})
	unit := s.unit
	unit.SetLeader(true)
	unit.SetAddress("10.0.0.9")
	unit.SetConfig("title", "hello")
	unit.SetConfig("size", 80)
	unit.SetConfig("ratio", 0.5)
	unit.Relate("unused", "nobody")
	s.db = unit.Relate("db", "b")
	ring := unit.Relate("ring", "a")
	unit.ChangeApp(s.db, map[string]string{"version": "8"})
	unit.ChangeApp(ring, map[string]string{"password": "p"})
	unit.Join(s.db, "b/0", map[string]string{"host": "10.0.0.4", "port": "3306"})
	unit.Join(s.db, "b/1", map[string]string{"host": "10.0.0.5"})
	unit.Join(ring, "a/1", map[string]string{"seed": "7"})
	unit.Attach("data", periapt.Resource{Path: "/resources/data/rows.csv", Revision: 3, Size: 3,
		SHA256: "1eb7c54d52831bbfe8942af0b1c56b7409523a59ed6ca99c1174fef7eb32c1b5"})
	host := &host{unit}
	host.SetBag(1, contract.UnitBag, []contract.Pair{{Key: "ingress-address", Value: "10.0.0.9"}})
	host.SetBag(1, contract.AppBag, []contract.Pair{{Key: "database", Value: "wp"}})
	host.SetState([]contract.Pair{{Key: "seen", Value: "1"}, {Key: "done"}})
	s.secrets(host, all)
	unit.SetLeader(false)
	for _, words := range given {
		s.arrange(words)
	}
	return s
}

func (s *scene) secrets(host *host, all *table) {
	said := func(label string) contract.Metadata {
		return contract.Metadata{Label: label, Description: "what it is", Rotate: "daily"}
	}
	own, _ := host.AddSecret(contract.UnitOwned, []contract.Pair{{Key: "password", Value: "mine-1"}}, said("own"))
	app, _ := host.AddSecret(contract.AppOwned, []contract.Pair{{Key: "password", Value: "ours-1"}}, said("ours"))
	host.GrantSecret(own, 1, "b/0")
	host.GrantSecret(app, 1, "b/0")
	theirs := s.unit.GrantSecret(map[string]string{"password": "theirs-1"})
	host.Secret(theirs, "theirs", contract.Tracked)
	s.unit.ReviseSecret(theirs, map[string]string{"password": "theirs-2"})
	revoked := s.unit.GrantSecret(map[string]string{"password": "x"})
	s.unit.RevokeSecret(revoked)
	var there, back []string
	for _, names := range [][2]string{{own, all.Secrets["own"]}, {app, all.Secrets["app"]}, {theirs, all.Secrets["theirs"]},
		{revoked, all.Secrets["revoked"]}, {"secret:00000000000000000005", all.Drawn}} {
		id := strings.TrimPrefix(names[0], "secret:")
		there, back = append(there, names[1], id), append(back, id, names[1])
	}
	s.toScenes, s.toTable = strings.NewReplacer(there...), strings.NewReplacer(back...)
}

func (s *scene) arrange(words []string) {
	switch words[0] {
	case "leader":
		s.unit.SetLeader(true)
	case "addresses":
		s.unit.SetAddress("")
	case "members":
		for _, unit := range []string{"b/0", "b/1"} {
			if !slices.Contains(words[2:], unit) {
				s.unit.Depart(s.db, unit)
			}
		}
		for _, unit := range words[2:] {
			s.unit.Join(s.db, unit, nil)
		}
	case "opened":
		ports, err := periapt.ParsePorts(words[2])
		if err == nil {
			err = (&host{s.unit}).OpenPorts(ports, append([]string{}, words[3:]...))
		}
		if err != nil {
			panic(err)
		}
	}
}

// runs runs a case's hook; what it tells of has happened.
func (s *scene) runs(hook []string, asks func(contract.Host)) {
	kind, unit := "", ""
	if len(hook) > 0 {
		kind = hook[0]
	}
	if len(hook) > 1 {
		unit = hook[1]
	}
	switch kind {
	case "joined":
		s.unit.Join(s.db, unit, nil)
	case "departed":
		s.unit.Depart(s.db, unit)
	case "broken":
		s.unit.End(s.db)
	}
	s.asks = asks
	if kind == "action" {
		s.unit.Action("backup", map[string]any{"level": 3, "fast": true, "target": map[string]any{"dir": "/srv", "tags": []string{"a", "b"}}})
		return
	}
	s.unit.Run("update-status")
}

func (s *scene) renamed(value any) any { return replaced(s.toScenes, value) }
func (s *scene) named(value any) any   { return replaced(s.toTable, value) }

// replaced is a value with other ids, as encoding/json reads it.
func replaced(ids *strings.Replacer, value any) (again any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal([]byte(ids.Replace(string(text))), &again)
	}
	if err != nil {
		panic(err)
	}
	return again
}
