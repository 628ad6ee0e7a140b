package periapt

import "periapt/internal/contract"

// Secret is one by its URI: to read, and for its owner to manage.
type Secret struct {
	URI  string
	host contract.Host
}

// LabelledSecret is one by the label that this unit knows it by: to read. The manager of a secret names it by its URI, which
// Unit.Secrets tells.
type LabelledSecret struct {
	Label string
	host  contract.Host
}

// SecretMetadata is said of a secret beside its content; what is empty stays, or has its default.
type SecretMetadata = contract.Metadata

// SecretOwner is who owns a secret.
type SecretOwner = contract.Owner

// Who may own a secret.
const (
	// AppOwned secrets are the application's: only its leader manages them, and all its units read them.
	AppOwned = contract.AppOwned
	// UnitOwned secrets are this unit's.
	UnitOwned = contract.UnitOwned
)

// Secret answers one by its URI.
func (u *Unit) Secret(uri string) *Secret { return &Secret{URI: uri, host: u.host} }

// SecretLabelled answers one by its label.
func (u *Unit) SecretLabelled(label string) *LabelledSecret {
	return &LabelledSecret{Label: label, host: u.host}
}

// AddSecret makes a secret; its URI is known at once.
func (u *Unit) AddSecret(owner SecretOwner, content map[string]string, said SecretMetadata) (*Secret, error) {
	uri, err := u.host.AddSecret(owner, pairsOf(content), said)
	return &Secret{URI: uri, host: u.host}, contract.About("adding a secret", err)
}

// Secrets are those that this unit looks after.
func (u *Unit) Secrets() ([]*Secret, error) {
	uris, err := u.host.Secrets()
	var all []*Secret
	for _, uri := range uris {
		all = append(all, u.Secret(uri))
	}
	return all, contract.About("listing secrets", err)
}

func (s *Secret) String() string { return "secret " + s.URI }

// Content is what this unit tracks: of its first reading, or of its last refresh.
func (s *Secret) Content() (map[string]string, error) { return s.read(contract.Tracked) }

// Peek answers the latest content, just this time.
func (s *Secret) Peek() (map[string]string, error) { return s.read(contract.Peek) }

// Refresh answers the latest content, from now on.
func (s *Secret) Refresh() (map[string]string, error) { return s.read(contract.Refresh) }

func (s *Secret) read(mode contract.Mode) (map[string]string, error) {
	content, err := s.host.Secret(s.URI, "", mode)
	return mapOf(content), contract.About(s.String(), err)
}

func (s *LabelledSecret) String() string { return "secret " + s.Label }

// Content is what this unit tracks: of its first reading, or of its last refresh.
func (s *LabelledSecret) Content() (map[string]string, error) { return s.read(contract.Tracked) }

// Peek answers the latest content, just this time.
func (s *LabelledSecret) Peek() (map[string]string, error) { return s.read(contract.Peek) }

// Refresh answers the latest content, from now on.
func (s *LabelledSecret) Refresh() (map[string]string, error) { return s.read(contract.Refresh) }

func (s *LabelledSecret) read(mode contract.Mode) (map[string]string, error) {
	content, err := s.host.Secret("", s.Label, mode)
	return mapOf(content), contract.About(s.String(), err)
}

// Set gives it other content, unless that is nil, and says other things of it; owners only.
func (s *Secret) Set(content map[string]string, said SecretMetadata) error {
	var pairs []contract.Pair
	if content != nil {
		pairs = pairsOf(content)
	}
	return contract.About(s.String(), s.host.SetSecret(s.URI, pairs, said))
}

// Grant lets the application at the other end of a relation read it; owners only.
func (s *Secret) Grant(relation *Relation) error {
	return contract.About(s.String(), s.host.GrantSecret(s.URI, relation.ID, ""))
}

// GrantUnit is the same for one of its units.
func (s *Secret) GrantUnit(relation *Relation, unit string) error {
	return contract.About(s.String(), s.host.GrantSecret(s.URI, relation.ID, unit))
}

// Revoke takes a grant back, from an application or a unit; owners only.
func (s *Secret) Revoke(reader string) error {
	return contract.About(s.String(), s.host.RevokeSecret(s.URI, reader))
}

// Remove removes it; owners only.
func (s *Secret) Remove() error { return contract.About(s.String(), s.host.RemoveSecret(s.URI)) }
