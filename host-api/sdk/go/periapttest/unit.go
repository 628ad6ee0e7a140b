// Package periapttest runs a charm's hooks natively, against a unit in memory that answers as the sandbox does:
//
//	func TestItSaysWhatItIsToldTo(t *testing.T) {
//		unit := periapttest.New("hello/0", handlers)
//		unit.SetConfig("greeting", "Ahoy")
//		if err := unit.Run("config-changed"); err != nil {
//			t.Fatal(err)
//		}
//		if unit.Status() != "active: says Ahoy" {
//			t.Error(unit.Status())
//		}
//	}
package periapttest

import (
	"strings"

	"periapt"
	"periapt/internal/contract"
)

// Unit is a unit in memory, and the charm's handlers that it runs.
type Unit struct {
	handlers periapt.Handlers
	name     string
	leads    bool
	address  string
	config   map[string]contract.Value
	// tool answers hook tools; nil: there are none.
	tool      func(name string, arguments []string) (stdout string, err error)
	resources map[string]contract.Resource
	declared  declared
	workloads workloads

	durable   durable
	status    string
	appStatus string
	version   string
	log       []LogLine
	action    *ActionRun
}

// durable is what a failing hook does not change.
type durable struct {
	relations []*relation
	ports     []contract.OpenedPorts
	state     map[string]string
	secrets   []*secret
	// madeSecrets is how many there were.
	madeSecrets int
}

// LogLine is one of the unit's log.
type LogLine struct {
	Level   periapt.Level
	Message string
}

// New makes a unit of a charm, which has no options and no relations, and does not lead. What a test does with it that cannot be
// panics: a remote unit of another application, the unit itself among its peers, a change by who has not joined.
func New(name string, handlers periapt.Handlers) *Unit {
	checkName(name)
	return &Unit{
		handlers:  handlers,
		name:      name,
		address:   "10.0.0.1",
		config:    map[string]contract.Value{},
		resources: map[string]contract.Resource{},
		workloads: newWorkloads(),
		durable:   durable{state: map[string]string{}},
	}
}

func (u *Unit) app() string { return appOf(u.name) }

func appOf(unit string) string {
	app, _, _ := strings.Cut(unit, "/")
	return app
}

// SetLeader makes the unit its application's leader, or not.
func (u *Unit) SetLeader(leads bool) { u.leads = leads }

// SetAddress is the unit's; empty: it is not known.
func (u *Unit) SetAddress(address string) { u.address = address }

// SetConfig sets an option to a text, a number or a boolean, without an event; nil takes it away.
func (u *Unit) SetConfig(key string, value any) {
	u.checkOption(key)
	switch given := value.(type) {
	case nil:
		delete(u.config, key)
	case int:
		u.config[key] = int64(given)
	case string:
		if strings.HasPrefix(given, "secret:") {
			u.config[key] = contract.SecretURI(given)
			return
		}
		u.config[key] = given
	default:
		u.config[key] = given
	}
}

// SetTool says what hook tools answer; an error is what a tool failed with.
func (u *Unit) SetTool(answer func(name string, arguments []string) (stdout string, err error)) {
	u.tool = answer
}

// Attach gives the unit the file of a resource.
func (u *Unit) Attach(name string, file periapt.Resource) {
	checkDeclared("resource", name, u.declared.resources)
	u.resources[name] = file
}

// Status is what the unit last said of its workload, as `active: message`.
func (u *Unit) Status() string { return u.status }

// AppStatus is what the leader last said of the application, in the same way.
func (u *Unit) AppStatus() string { return u.appStatus }

// Version is that of the workload.
func (u *Unit) Version() string { return u.version }

// Log is all that was logged so far.
func (u *Unit) Log() []LogLine { return u.log }

// Ports are those that are open: 80/tcp.
func (u *Unit) Ports() []string {
	var all []string
	for _, opened := range u.durable.ports {
		all = append(all, contract.PortsText(opened.Ports))
	}
	return all
}

// Stored is what the charm keeps for the unit under a key; empty if there is nothing.
func (u *Unit) Stored(key string) string { return u.durable.state[key] }

// UnitBag is a key of the unit's own bag; empty if there is none.
func (u *Unit) UnitBag(relation Relation, key string) string {
	return u.durable.relations[relation].bag(contract.Bag{Owner: u.name})[key]
}

// AppBag is a key of its application's bag.
func (u *Unit) AppBag(relation Relation, key string) string {
	return u.durable.relations[relation].bag(contract.Bag{Owner: u.app(), IsApp: true})[key]
}
