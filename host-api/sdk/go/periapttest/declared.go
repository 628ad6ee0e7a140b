package periapttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// names are what a charm declares of one kind; nil: nobody knows which.
type names map[string]bool

// declared is what a charm declares, as far as a harness has to know it.
type declared struct {
	options, endpoints, peers, resources, actions names
}

// Declares says what the charm declares, as the text of its charmcraft.yaml, in which each name has a line of its own. From then on a
// test that sets up an option, a relation, a resource or an action that is not declared there panics: it would show nothing.
func (u *Unit) Declares(charmcraft string) {
	u.declared = declared{
		options:   namesBelow(charmcraft, "config", "options"),
		peers:     namesBelow(charmcraft, "peers"),
		resources: namesBelow(charmcraft, "resources"),
		actions:   namesBelow(charmcraft, "actions"),
	}
	all := names{"juju-info": true}
	for _, role := range []string{"provides", "requires", "peers"} {
		ofRole := namesBelow(charmcraft, role)
		if ofRole == nil {
			u.declared.peers = nil
			return
		}
		maps.Copy(all, ofRole)
	}
	u.declared.endpoints = all
}

// namesBelow are the keys right below a path of keys; nil where the document's style hides them (provides: {db: mysql}).
func namesBelow(text string, path ...string) names {
	type keyAt struct {
		indent int
		key    string
	}
	found := names{}
	// Keys that lead to the present line.
	var above []keyAt
	for line := range strings.Lines(text) {
		rest := strings.TrimSpace(line)
		key, value, isKey := strings.Cut(rest, ":")
		if rest == "" || strings.HasPrefix(rest, "#") {
			continue
		}
		indent := strings.Index(line, rest)
		for len(above) > 0 && above[len(above)-1].indent >= indent {
			above = above[:len(above)-1]
		}
		if !isKey {
			continue
		}
		var here []string
		for _, each := range above {
			here = append(here, each.key)
		}
		key = strings.Trim(key, `"'`)
		if slices.Equal(here, path) {
			found[key] = true
		}
		if slices.Equal(append(here, key), path) && strings.HasPrefix(strings.TrimSpace(value), "{") {
			return nil
		}
		above = append(above, keyAt{indent, key})
	}
	return found
}

func checkDeclared(what, name string, all names) {
	if all != nil && !all[name] {
		inconsistent("the charm has no %s %q", what, name)
	}
}

func (u *Unit) checkOption(name string) {
	options := u.declared.options
	if options == nil || options[name] {
		return
	}
	known := "the charm has no options"
	if len(options) > 0 {
		known = fmt.Sprintf("known are %s", strings.Join(slices.Sorted(maps.Keys(options)), ", "))
	}
	inconsistent("config: unknown option %q; %s", name, known)
}

// checkPeers: a relation with the unit's own application is one of peers, and no other is.
func (u *Unit) checkPeers(endpoint, app string) {
	peers, own, id := u.declared.peers, u.app(), len(u.durable.relations)
	switch {
	case peers == nil || peers[endpoint] == (app == own):
	case peers[endpoint]:
		inconsistent("relation %d is of peers: it has no remote application", id)
	default:
		inconsistent("relation %d cannot be with %s itself: %s is no endpoint of peers; name another application", id, own, endpoint)
	}
}
