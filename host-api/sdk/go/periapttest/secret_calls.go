package periapttest

import (
	"fmt"
	"slices"
	"strings"

	"periapt/internal/contract"
)

func (h *host) AddSecret(owner contract.Owner, content []contract.Pair, said contract.Metadata) (string, error) {
	for _, err := range []error{checkExpire(said.Expire), checkContent(content), h.checkOwner(owner), h.checkLabel(said.Label, owner, "")} {
		if err != nil {
			return "", err
		}
	}
	made := &secret{label: said.Label, owner: &owner, isFresh: true, revisions: [][]contract.Pair{content}}
	return h.unit.newSecret(made), nil
}

func (h *host) SetSecret(uri string, content []contract.Pair, said contract.Metadata) error {
	if err := checkExpire(said.Expire); err != nil {
		return err
	}
	if content != nil {
		if err := checkContent(content); err != nil {
			return err
		}
	}
	found, err := h.own(uri)
	if err != nil {
		return err
	}
	if err := h.checkLabel(said.Label, *found.owner, found.uri); err != nil {
		return err
	}
	if said.Label != "" {
		found.label = said.Label
	}
	switch {
	case content != nil && found.isFresh:
		found.revisions[0] = content
	case content != nil:
		found.pending = content
	}
	return nil
}

func (h *host) Secret(uri, label string, mode contract.Mode) ([]contract.Pair, error) {
	var labelled *secret
	for _, each := range h.unit.durable.secrets {
		if label != "" && each.label == label {
			labelled = each
		}
	}
	found := labelled
	switch {
	case uri == "" && label == "":
		return nil, invalid("require either a secret URI or label")
	case uri == "" && labelled == nil:
		return nil, contract.Refuse(contract.NotFound, fmt.Sprintf("consumer label %q not found", label))
	case uri != "":
		full, err := parsed(uri)
		if err != nil {
			return nil, err
		}
		if labelled != nil && labelled.uri != full {
			return nil, contract.Refuse(contract.AlreadyExists, fmt.Sprintf("secret with label %q already exists", label))
		}
		if found = h.unit.secret(full); found == nil {
			return nil, secretNotFound(full)
		}
	}
	if found.isRevoked {
		return nil, contract.Refuse(contract.PermissionDenied, "permission denied")
	}
	if label != "" && found.owner == nil {
		found.label = label
	}
	if mode == contract.Refresh || found.tracked == 0 {
		found.tracked = len(found.revisions)
	}
	if mode == contract.Tracked {
		return found.revisions[found.tracked-1], nil
	}
	return found.content(), nil
}

func (h *host) Secrets() ([]string, error) {
	var all []string
	for _, each := range h.unit.durable.secrets {
		if each.owner != nil && h.checkOwner(*each.owner) == nil {
			all = append(all, each.uri)
		}
	}
	return all, nil
}

func (h *host) GrantSecret(uri string, id uint32, unit string) error {
	found, err := h.own(uri)
	if err != nil {
		return err
	}
	relation, err := h.relation(id)
	if err != nil {
		return err
	}
	isOfRemote := func(name string) bool { return strings.HasPrefix(name, relation.app+"/") }
	reader := relation.app
	if unit != "" {
		if reader = unit; !isOfRemote(unit) {
			return invalid("unit %q is not in relation %d", unit, id)
		}
	}
	if slices.Contains(found.readers, relation.app) || slices.Contains(found.readers, reader) {
		return nil
	}
	if at := slices.IndexFunc(found.readers, isOfRemote); unit == "" && at >= 0 {
		return contract.Refuse(contract.Conflict, fmt.Sprintf("cannot grant secret %q to application %q: it is granted to unit %q already",
			strings.TrimPrefix(found.uri, "secret:"), relation.app, found.readers[at]))
	}
	found.readers = append(found.readers, reader)
	return nil
}

func (h *host) RevokeSecret(uri, reader string) error {
	found, err := h.own(uri)
	if err == nil {
		found.readers = slices.DeleteFunc(found.readers, func(each string) bool { return each == reader })
	}
	return err
}

func (h *host) RemoveSecret(uri string) error {
	found, err := h.own(uri)
	if err == nil {
		isIt := func(each *secret) bool { return each == found }
		h.unit.durable.secrets = slices.DeleteFunc(h.unit.durable.secrets, isIt)
	}
	return err
}
