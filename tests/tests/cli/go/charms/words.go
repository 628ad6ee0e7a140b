// Says all that the SDK has a word for, and logs what it is answered.
package main

import (
	"fmt"
	"os"
	"strings"

	"periapt"
)

func init() {
	periapt.Handle(periapt.Handlers{"sink-relation-changed": ask, "relation-batch": batch, "large-action": large,
		"pebble-custom-notice": notice, "pebble-check-failed": check, "*": tell})
}

func main() {}

var unit *periapt.Unit

// told logs what a call was answered, or refused with.
func told(call string, answers ...any) {
	line := call
	for _, answer := range answers {
		if refused, ok := answer.(*periapt.Error); ok {
			line += fmt.Sprintf(" %s:", refused.Code)
		}
		line += fmt.Sprintf(" %v", answer)
	}
	unit.Log(periapt.LevelInfo, "%s", line)
}

func ask(asked *periapt.Unit, event periapt.Event) error {
	unit = asked
	told("names", unit.Name(), unit.App(), unit.Model())
	address, err := unit.PrivateAddress()
	told("address", address, err)
	leads, err := unit.IsLeader()
	told("leads", leads, err)

	text, err := unit.ConfigText("mode", "")
	told("text", text, err)
	whole, err := unit.ConfigInt("whole", 0)
	told("whole", whole, err)
	part, err := unit.ConfigFloat("part", 0)
	told("part", part, err)
	truth, err := unit.ConfigBool("truth", false)
	told("truth", truth, err)
	unset, err := unit.ConfigInt("unset", -1)
	told("unset", unset, err)
	_, err = unit.ConfigInt("mode", 0)
	told("mistaken", err)

	told("event", event.Hook, event.Kind, event.Relation, event.App, event.Unit)
	relation := unit.Relations("sink")[0]
	app, err := relation.App()
	told("app", app, err)
	units, err := relation.Units()
	told("units", units, err)
	bag, err := event.RemoteBag()
	told("about", bag, err)
	all, err := bag.All()
	told("bag", all, err)
	remote, err := relation.RemoteBag()
	told("remote", remote, err)
	version, err := remote.Get("version")
	told("version", version, err)
	none, err := relation.BagOf("b/1").Get("none")
	told("none", none, err)
	_, err = relation.BagOf("c/0").Get("x")
	told("foreign", err)
	told("set", relation.UnitBag().Update(map[string]string{"a": "1", "b": "2"}), relation.AppBag().Set("c", "3"))
	own, err := relation.UnitBag().All()
	told("own", own, err)

	told("open", unit.OpenPorts("80"), unit.OpenPorts("8000-8999/udp", "sink"), unit.OpenPorts("icmp"))
	told("opened", unit.OpenedPorts())
	told("only", unit.SetPorts("443", "80"), unit.OpenedPorts())

	told("state", unit.State().Set("k", "v"), unit.State().Set("empty", ""), unit.State().Delete("old"))
	kept, isThere := unit.State().Get("k")
	_, isOld := unit.State().Get("old")
	told("kept", kept, isThere, isOld, unit.State().All())
	told("status", unit.SetStatus(periapt.Waiting, "for %d", 1), unit.SetAppStatus(periapt.Active, ""), unit.SetVersion("1.2"))

	content, err := unit.Secret(os.Getenv("NONE") + event.Departing + granted).Content()
	told("content", content, err)
	content, err = unit.Secret(granted).Peek()
	told("peeked", content, err)
	content, err = unit.Secret(granted).Refresh()
	told("refreshed", content, err)
	said := periapt.SecretMetadata{Label: "mine", Description: "what", Rotate: "weekly", Expire: "2030-01-01T00:00:00Z"}
	made, err := unit.AddSecret(periapt.UnitOwned, map[string]string{"one": "1", "two": "2"}, said)
	told("made", strings.HasPrefix(made.URI, "secret:"), err)
	told("info", info(made))
	told("changed", made.Set(map[string]string{"one": "eins"}, periapt.SecretMetadata{Rotate: "yearly"}))
	content, err = unit.SecretLabelled("mine").Peek()
	told("own content", content, err)
	told("granted", made.Grant(relation), made.GrantUnit(relation, "b/0"), made.Revoke("b/0"))
	mine, err := unit.Secrets()
	told("secrets", len(mine), err)
	_, err = unit.AddSecret(periapt.UnitOwned, nil, periapt.SecretMetadata{Rotate: "now"})
	told("no policy", err)
	told("removed", made.Remove())

	page, err := unit.Resource("page")
	told("resource", page.Path, page.Revision, page.Size, len(page.SHA256), err)
	read, err := os.ReadFile(page.Path)
	told("read", string(read), err)
	_, err = unit.Resource("none")
	told("no resource", err)
	var whom string
	told("param", unit.Action().Param("whom", &whom))
	_, err = unit.Tool("unit-get", "nothing")
	told("tool", err)
	return nil
}

const granted = "secret:GRANTED"

// info is what the owner's tool says of a secret, in one line.
func info(made *periapt.Secret) string {
	said, err := unit.Tool("secret-info-get", made.URI)
	if err != nil {
		return err.Error()
	}
	var kept []string
	for _, line := range strings.Split(said, "\n") {
		for _, word := range []string{"label:", "description:", "rotation:", "expiry:"} {
			if strings.HasPrefix(strings.TrimSpace(line), word) {
				kept = append(kept, strings.TrimSpace(line))
			}
		}
	}
	return strings.Join(kept, " ")
}

func batch(asked *periapt.Unit, event periapt.Event) error {
	unit = asked
	told("batch", event.Relation, event.AppChanged, event.Joined, event.Changed, event.Departed)
	return nil
}

func tell(asked *periapt.Unit, event periapt.Event) error {
	unit = asked
	told("told", event.Hook, event.Kind, event.App, event.Unit, event.Departing, event.Name, event.ID, event.Location,
		event.URI, event.Label, event.Revision, event.JSON, event.Attempt)
	return nil
}

func notice(asked *periapt.Unit, event periapt.Event) error {
	unit = asked
	told("notice", event.Hook, event.Name, event.ID, event.Key)
	return nil
}

func check(asked *periapt.Unit, event periapt.Event) error {
	unit = asked
	told("check", event.Hook, event.Name, event.Check)
	return nil
}

// large asks for all that is stored, as text.
func large(asked *periapt.Unit, _ periapt.Event) error {
	_, err := asked.Tool("state-get", "--format=json")
	return err
}
