package periapttest

import (
	"strings"
	"testing"

	"periapt"
)

func TestAnEventAboutNoRelationHasNoBag(t *testing.T) {
	read := func(_ *periapt.Unit, event periapt.Event) error {
		bag, err := event.RemoteBag()
		if err != nil {
			return err
		}
		_, err = bag.All()
		return err
	}
	unit := New("hello/0", periapt.Handlers{"*": read})
	if err := unit.Run("config-changed"); err == nil || !strings.Contains(err.Error(), "config-changed is about no relation") {
		t.Error(err)
	}
	relation := unit.Relate("db", "other")
	if err := unit.Join(relation, "other/0", nil); err != nil {
		t.Error(err)
	}
}

func TestASecretIsReadByItsLabelAndManagedByItsURI(t *testing.T) {
	unit := New("hello/0", periapt.Handlers{"*": func(unit *periapt.Unit, _ periapt.Event) error {
		said := periapt.SecretMetadata{Label: "mine"}
		made, err := unit.AddSecret(periapt.UnitOwned, map[string]string{"one": "1"}, said)
		if err != nil {
			return err
		}
		content, err := unit.SecretLabelled("mine").Peek()
		if err != nil || content["one"] != "1" {
			t.Error(content, err)
		}
		if _, err := unit.SecretLabelled("yours").Content(); err == nil || !strings.Contains(err.Error(), "secret yours") {
			t.Error(err)
		}
		return made.Remove()
	}})
	if err := unit.Run("config-changed"); err != nil {
		t.Error(err)
	}
}
