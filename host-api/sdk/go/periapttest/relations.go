package periapttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"periapt/internal/contract"
)

type relation struct {
	endpoint, app string
	members       []string
	bags          map[contract.Bag]map[string]string
	isBroken      bool
}

func (r *relation) bag(whose contract.Bag) map[string]string { return r.bags[whose] }

// put changes a bag: an empty value deletes its key.
func (r *relation) put(whose contract.Bag, values map[string]string) {
	if r.bags[whose] == nil {
		r.bags[whose] = map[string]string{}
	}
	for key, value := range values {
		if value == "" {
			delete(r.bags[whose], key)
			continue
		}
		r.bags[whose][key] = value
	}
}

func (h *host) relation(id uint32) (*relation, error) {
	if int(id) >= len(h.unit.durable.relations) {
		return nil, contract.Refuse(contract.NotFound, "relation not found")
	}
	return h.unit.durable.relations[id], nil
}

func (h *host) Relations(endpoint string) []uint32 {
	var all []uint32
	for id, each := range h.unit.durable.relations {
		if each.endpoint == endpoint && !each.isBroken {
			all = append(all, uint32(id))
		}
	}
	return all
}

func (h *host) RemoteApp(id uint32) (string, error) {
	relation, err := h.relation(id)
	if err != nil {
		return "", err
	}
	return relation.app, nil
}

func (h *host) Members(id uint32) ([]string, error) {
	relation, err := h.relation(id)
	if err != nil {
		return nil, err
	}
	members := slices.Clone(relation.members)
	slices.SortFunc(members, func(one, other string) int { return numberOf(one) - numberOf(other) })
	return members, nil
}

func numberOf(unit string) int {
	_, text, _ := strings.Cut(unit, "/")
	number, _ := strconv.Atoi(text)
	return number
}

var (
	isApp  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	isUnit = regexp.MustCompile(`^[a-z][a-z0-9-]*/\d+$`)
)

// readable is a bag, if this unit may read it.
func (h *host) readable(id uint32, whose contract.Bag) (map[string]string, error) {
	relation, err := h.relation(id)
	if err != nil {
		return nil, err
	}
	denied := contract.Refuse(contract.PermissionDenied, "permission denied")
	owner, own := whose.Owner, h.unit.app()
	switch {
	case whose.IsApp && owner == own && !h.unit.leads && relation.app != own:
		return nil, denied
	case whose.IsApp && owner != own && owner != relation.app:
		return nil, denied
	case whose.IsApp || owner == h.unit.name:
		return relation.bag(whose), nil
	case isApp.MatchString(owner):
		said := fmt.Sprintf("expected unit name, got application name %q", owner)
		return nil, contract.Refuse(contract.InvalidArgument, said)
	case !isUnit.MatchString(owner):
		return nil, contract.Refuse(contract.InvalidArgument, fmt.Sprintf("invalid unit name %q", owner))
	case appOf(owner) != relation.app:
		return nil, denied
	}
	bag, isThere := relation.bags[whose]
	if !isThere {
		return nil, contract.Refuse(contract.NotFound, fmt.Sprintf("unit %q: settings not found", owner))
	}
	return bag, nil
}

func (h *host) Bag(id uint32, whose contract.Bag) ([]contract.Pair, error) {
	bag, err := h.readable(id, whose)
	return pairsOf(bag), err
}

func (h *host) BagValue(id uint32, whose contract.Bag, key string) (string, bool, error) {
	bag, err := h.readable(id, whose)
	value, isThere := bag[key]
	return value, isThere, err
}

func (h *host) SetBag(id uint32, which contract.OwnBag, changes []contract.Pair) error {
	relation, err := h.relation(id)
	if err != nil {
		return err
	}
	whose := contract.Bag{Owner: h.unit.name}
	if which == contract.AppBag {
		if !h.unit.leads {
			return contract.Refuse(contract.NotLeader, "cannot write relation settings")
		}
		whose = contract.Bag{Owner: h.unit.app(), IsApp: true}
	}
	for _, change := range changes {
		relation.put(whose, map[string]string{change.Key: change.Value})
	}
	return nil
}
