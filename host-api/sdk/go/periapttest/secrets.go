package periapttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"periapt/internal/contract"
)

// A secret. What a hook changes is there for it at once, and a revision when it succeeds.
type secret struct {
	uri string
	// owner is this unit or its application; nil: another application.
	owner *contract.Owner
	// label is its owner's, or, of another's, this unit's own for it.
	label     string
	revisions [][]contract.Pair
	// pending is content that this hook gave it; nil: none.
	pending []contract.Pair
	// isFresh: made in this hook.
	isFresh, isRevoked bool
	// tracked is the number of the revision that this unit tracks; 0: none yet.
	tracked int
	readers []string
}

func (s *secret) content() []contract.Pair {
	if s.pending != nil {
		return s.pending
	}
	return s.revisions[len(s.revisions)-1]
}

// GrantSecret grants the unit a secret of another application's, without an event; answers its URI.
func (u *Unit) GrantSecret(content map[string]string) string {
	return u.newSecret(&secret{revisions: [][]contract.Pair{pairsOf(content)}})
}

// ReviseSecret gives such a secret other content, without an event.
func (u *Unit) ReviseSecret(uri string, content map[string]string) {
	if found := u.secret(uri); found != nil {
		found.revisions = append(found.revisions, pairsOf(content))
	}
}

// RevokeSecret takes such a secret back, without an event.
func (u *Unit) RevokeSecret(uri string) {
	if found := u.secret(uri); found != nil {
		found.isRevoked = true
	}
}

// Secret is the latest content of a secret, and who may read it; nil if there is none.
func (u *Unit) Secret(uri string) (content map[string]string, readers []string) {
	found := u.secret(uri)
	if found == nil {
		return nil, nil
	}
	content = map[string]string{}
	for _, pair := range found.content() {
		content[pair.Key] = pair.Value
	}
	return content, found.readers
}

func (u *Unit) secret(uri string) *secret {
	for _, each := range u.durable.secrets {
		if each.uri == uri {
			return each
		}
	}
	return nil
}

func (u *Unit) newSecret(made *secret) string {
	u.durable.madeSecrets++
	made.uri = fmt.Sprintf("secret:%020d", u.durable.madeSecrets)
	u.durable.secrets = append(u.durable.secrets, made)
	return made.uri
}

// commitSecrets makes revisions of what a hook that succeeded gave, where it differs.
func (u *Unit) commitSecrets() {
	for _, each := range u.durable.secrets {
		if each.pending != nil && !slices.Equal(each.pending, each.revisions[len(each.revisions)-1]) {
			each.revisions = append(each.revisions, each.pending)
		}
		each.pending, each.isFresh = nil, false
	}
}

var (
	secretID  = regexp.MustCompile(`^(?:secret:)?(?:.*/)?([0-9a-v]{20})$`)
	secretKey = regexp.MustCompile(`^[a-z](?:-?[a-z0-9])*$`)
	duration  = regexp.MustCompile(`^(?:\d+(?:\.\d+)?(?:h|m|s|ms))+$`)
	date      = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)
)

func invalid(format string, arguments ...any) error {
	return contract.Refuse(contract.InvalidArgument, fmt.Sprintf(format, arguments...))
}

func secretNotFound(uri string) error {
	return contract.Refuse(contract.NotFound, fmt.Sprintf("secret %q not found", strings.TrimPrefix(uri, "secret:")))
}

// parsed is a URI in full.
func parsed(uri string) (string, error) {
	parts := secretID.FindStringSubmatch(uri)
	if parts == nil {
		return "", invalid("secret URI %q not valid", uri)
	}
	return "secret:" + parts[1], nil
}

func checkContent(content []contract.Pair) error {
	if len(content) == 0 {
		return invalid("empty secret value not valid")
	}
	for _, pair := range content {
		if len(pair.Key) < 3 || !secretKey.MatchString(pair.Key) {
			return invalid("key %q not valid", pair.Key)
		}
	}
	return nil
}

func checkExpire(expire string) error {
	switch {
	case strings.HasPrefix(expire, "-") && duration.MatchString(expire[1:]):
		return invalid("negative expire duration %q not valid", expire)
	case expire != "" && !duration.MatchString(expire) && !date.MatchString(expire):
		return invalid("expire time or duration %q not valid", expire)
	}
	return nil
}

func (h *host) checkLabel(label string, owner contract.Owner, uri string) error {
	for _, each := range h.unit.durable.secrets {
		isOther := each.uri != uri && each.owner != nil && *each.owner == owner
		if label != "" && isOther && each.label == label {
			return contract.Refuse(contract.AlreadyExists, fmt.Sprintf("secret with label %q already exists", label))
		}
	}
	return nil
}

func (h *host) checkOwner(owner contract.Owner) error {
	if owner == contract.AppOwned && !h.unit.leads {
		return contract.Refuse(contract.NotLeader, "this unit is not the leader")
	}
	return nil
}

// own looks for one that this unit looks after. What is another's is as if it were not there: only a commit refuses that.
func (h *host) own(uri string) (*secret, error) {
	uri, err := parsed(uri)
	if err != nil {
		return nil, err
	}
	found := h.unit.secret(uri)
	if found == nil || found.owner == nil {
		return nil, secretNotFound(uri)
	}
	return found, h.checkOwner(*found.owner)
}
