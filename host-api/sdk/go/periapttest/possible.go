package periapttest

import (
	"fmt"
	"slices"
	"strings"
)

// What cannot be panics: a test that sets it up would show nothing. try-hook and the harnesses of the other SDKs refuse the same, in
// the same words (runtime/hook/tests/impossible.json).
func inconsistent(format string, values ...any) {
	panic("inconsistent: " + fmt.Sprintf(format, values...))
}

func checkName(unit string) {
	if isUnit.MatchString(unit) {
		return
	}
	app := appOf(unit)
	if !isApp.MatchString(app) {
		app = "app"
	}
	inconsistent("%q is no unit's name; one is written %s/0", unit, app)
}

// at is a relation in which something can still happen.
func (u *Unit) at(id Relation) *relation {
	if int(id) >= len(u.durable.relations) {
		inconsistent("there is no relation %d", id)
	}
	there := u.durable.relations[id]
	if there.isBroken {
		inconsistent("relation %d is over; relate again for another", id)
	}
	return there
}

// checkRemote lets a unit of the remote application pass, but not the unit itself.
func (u *Unit) checkRemote(id Relation, unit string) {
	checkName(unit)
	remote := u.at(id).app
	cannot := fmt.Sprintf("%s cannot be a remote unit of relation %d", unit, id)
	switch {
	case unit == u.name:
		inconsistent("%s: it is the unit itself; name another unit of %s", cannot, remote)
	case appOf(unit) != remote:
		inconsistent("%s: the remote application is %s; name a unit of %s", cannot, remote, remote)
	}
}

// checkMember lets who has joined pass.
func (u *Unit) checkMember(id Relation, unit string) {
	u.checkRemote(id, unit)
	if !slices.Contains(u.at(id).members, unit) {
		inconsistent("%s is no member of relation %d; it has to join first", unit, id)
	}
}

// checkPlain lets a hook pass that is about nothing.
func checkPlain(hook string) {
	if strings.Contains(hook, "-relation-") {
		inconsistent("%s is about a relation; Join, Change, ChangeApp, Depart and End tell of one", hook)
	}
}
