package periapttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"periapt/internal/contract"
)

// HookFailed is a hook that failed: nothing that it asked for happened, save its statuses and its log.
type HookFailed struct {
	Hook    string
	Code    int
	Message string
}

func (e *HookFailed) Error() string { return fmt.Sprintf("hook %q failed: %s", e.Hook, e.Message) }

// Relation is a relation's number.
type Relation uint32

// Run runs a hook that is about nothing, such as config-changed.
func (u *Unit) Run(hook string) error {
	checkPlain(hook)
	return u.run(contract.Event{Hook: hook, Kind: hook})
}

// Relate adds a relation, without an event; one with the unit's own application is a peer relation.
func (u *Unit) Relate(endpoint, app string) Relation {
	checkDeclared("endpoint", endpoint, u.declared.endpoints)
	u.checkPeers(endpoint, app)
	added := &relation{endpoint: endpoint, app: app, bags: map[contract.Bag]map[string]string{}}
	u.durable.relations = append(u.durable.relations, added)
	return Relation(len(u.durable.relations) - 1)
}

// Join brings a remote unit with its bag into view: joined, then changed.
func (u *Unit) Join(relation Relation, unit string, bag map[string]string) error {
	u.checkRemote(relation, unit)
	there := u.at(relation)
	if !slices.Contains(there.members, unit) {
		there.members = append(there.members, unit)
	}
	there.put(contract.Bag{Owner: unit}, bag)
	if err := u.tell("relation-joined", relation, unit); err != nil {
		return err
	}
	return u.tell("relation-changed", relation, unit)
}

// Change changes a remote unit's bag; an empty value deletes its key.
func (u *Unit) Change(relation Relation, unit string, bag map[string]string) error {
	u.checkMember(relation, unit)
	u.at(relation).put(contract.Bag{Owner: unit}, bag)
	return u.tell("relation-changed", relation, unit)
}

// ChangeApp changes the remote application's bag.
func (u *Unit) ChangeApp(relation Relation, bag map[string]string) error {
	there := u.at(relation)
	there.put(contract.Bag{Owner: there.app, IsApp: true}, bag)
	return u.tell("relation-changed", relation, "")
}

// Depart takes a remote unit out of view.
func (u *Unit) Depart(relation Relation, unit string) error {
	u.checkMember(relation, unit)
	there := u.at(relation)
	there.members = slices.DeleteFunc(there.members, func(member string) bool { return member == unit })
	return u.tell("relation-departed", relation, unit)
}

// End ends a relation: its members depart, then it is broken.
func (u *Unit) End(relation Relation) error {
	for _, unit := range slices.Clone(u.at(relation).members) {
		if err := u.Depart(relation, unit); err != nil {
			return err
		}
	}
	u.durable.relations[relation].isBroken = true
	return u.tell("relation-broken", relation, "")
}

func (u *Unit) tell(kind string, relation Relation, unit string) error {
	there := u.durable.relations[relation]
	event := contract.Event{Kind: kind, Hook: there.endpoint + "-" + kind, Endpoint: there.endpoint,
		Relation: uint32(relation), App: there.app, Unit: unit}
	if kind == "relation-departed" {
		event.Departing = unit
	}
	return u.run(event)
}

// ActionRun is what became of an action.
type ActionRun struct {
	Results map[string]string
	Log     []string
	// Failed is what the charm said that the action failed with; empty: it did not.
	Failed string

	params map[string]any
}

// Action runs an action with parameters, which encoding/json can write.
func (u *Unit) Action(name string, params map[string]any) (*ActionRun, error) {
	checkDeclared("action", name, u.declared.actions)
	asJSON, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	run := &ActionRun{Results: map[string]string{}, params: map[string]any{}}
	if params != nil {
		if err := json.Unmarshal(asJSON, &run.params); err != nil {
			return nil, err
		}
	}
	u.action = run
	defer func() { u.action = nil }()
	event := contract.Event{Kind: "action", Hook: name + "-action", Name: name, ID: "1"}
	return run, u.run(event)
}

func (u *Unit) run(event contract.Event) error {
	event.Attempt = 1
	before := u.durable.copied()
	isHandled, failure := u.handlers.Run(&host{u}, event)
	if failure != nil {
		u.durable = before
		return &HookFailed{Hook: event.Hook, Code: int(failure.Code), Message: failure.Message}
	}
	u.commitSecrets()
	if !isHandled && event.Kind == "action" {
		return &HookFailed{Hook: event.Hook, Code: 1, Message: "action " + event.Name + " has no handler"}
	}
	return nil
}

func (d durable) copied() durable {
	copied := durable{madeSecrets: d.madeSecrets, ports: slices.Clone(d.ports), state: maps.Clone(d.state)}
	for _, each := range d.relations {
		again := *each
		again.members, again.bags = slices.Clone(each.members), map[contract.Bag]map[string]string{}
		for whose, bag := range each.bags {
			again.bags[whose] = maps.Clone(bag)
		}
		copied.relations = append(copied.relations, &again)
	}
	for _, each := range d.secrets {
		again := *each
		again.revisions, again.readers = slices.Clone(each.revisions), slices.Clone(each.readers)
		copied.secrets = append(copied.secrets, &again)
	}
	return copied
}
