package periapttest

import (
	"fmt"
	"slices"
	"strings"

	"periapt/internal/contract"
)

type secret struct {
	uri, label string
	// owner is this unit or its application; nil: another application.
	owner     *contract.Owner
	revisions [][]contract.Pair
	// tracked is the number of the revision that this unit tracks; 0: none yet.
	tracked int
	readers []string
}

func (s *secret) latest() int { return len(s.revisions) }

// GrantSecret grants the unit a secret of another application's, without an event; answers its URI.
func (u *Unit) GrantSecret(content map[string]string) string {
	return u.newSecret(&secret{revisions: [][]contract.Pair{pairsOf(content)}})
}

// ReviseSecret gives a secret other content, without an event.
func (u *Unit) ReviseSecret(uri string, content map[string]string) {
	for _, each := range u.durable.secrets {
		if each.uri == uri {
			each.revisions = append(each.revisions, pairsOf(content))
		}
	}
}

// Secret is the latest content of a secret, and who may read it; nil if there is none.
func (u *Unit) Secret(uri string) (content map[string]string, readers []string) {
	for _, each := range u.durable.secrets {
		if each.uri == uri {
			content = map[string]string{}
			for _, pair := range each.revisions[each.latest()-1] {
				content[pair.Key] = pair.Value
			}
			return content, each.readers
		}
	}
	return nil, nil
}

func (u *Unit) newSecret(made *secret) string {
	made.uri = fmt.Sprintf("secret:%020d", len(u.durable.secrets)+1)
	u.durable.secrets = append(u.durable.secrets, made)
	return made.uri
}

// find looks for a secret by its URI, or by the label that this unit gave it.
func (h *host) find(uri, label string) (*secret, error) {
	if uri == "" && label == "" {
		return nil, contract.Refuse(contract.InvalidArgument, "require either a secret URI or label")
	}
	for _, each := range h.unit.durable.secrets {
		if each.uri == uri || (uri == "" && each.label == label) {
			return each, nil
		}
	}
	return nil, contract.Refuse(contract.NotFound, fmt.Sprintf("secret %q not found", strings.TrimPrefix(uri, "secret:")+label))
}

// own looks for one that this unit looks after.
func (h *host) own(uri string) (*secret, error) {
	found, err := h.find(uri, "")
	if err == nil && (found.owner == nil || (*found.owner == contract.AppOwned && !h.unit.leads)) {
		return nil, contract.Refuse(contract.PermissionDenied, "permission denied")
	}
	return found, err
}

func (h *host) AddSecret(owner contract.Owner, content []contract.Pair, said contract.Metadata) (string, error) {
	if owner == contract.AppOwned && !h.unit.leads {
		return "", contract.Refuse(contract.NotLeader, "this unit is not the leader")
	}
	for _, each := range h.unit.durable.secrets {
		if said.Label != "" && each.label == said.Label {
			return "", contract.Refuse(contract.AlreadyExists, fmt.Sprintf("secret with label %q already exists", said.Label))
		}
	}
	return h.unit.newSecret(&secret{label: said.Label, owner: &owner, revisions: [][]contract.Pair{content}}), nil
}

func (h *host) SetSecret(uri string, content []contract.Pair, said contract.Metadata) error {
	found, err := h.own(uri)
	if err != nil {
		return err
	}
	if said.Label != "" {
		found.label = said.Label
	}
	if content != nil && !slices.Equal(content, found.revisions[found.latest()-1]) {
		found.revisions = append(found.revisions, content)
	}
	return nil
}

func (h *host) Secret(uri, label string, mode contract.Mode) ([]contract.Pair, error) {
	found, err := h.find(uri, label)
	if err != nil {
		return nil, err
	}
	if uri != "" && label != "" {
		found.label = label
	}
	if mode == contract.Refresh || found.tracked == 0 {
		found.tracked = found.latest()
	}
	if mode == contract.Peek {
		return found.revisions[found.latest()-1], nil
	}
	return found.revisions[found.tracked-1], nil
}

func (h *host) Secrets() ([]string, error) {
	var all []string
	for _, each := range h.unit.durable.secrets {
		if _, err := h.own(each.uri); err == nil {
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
	reader := unit
	if reader == "" {
		reader = relation.app
	}
	if !slices.Contains(found.readers, reader) {
		found.readers = append(found.readers, reader)
	}
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
		// Its number is not given again: what is left is found by nobody.
		found.uri, found.label, found.owner = "", "", nil
	}
	return err
}
