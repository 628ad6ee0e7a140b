//! Guarantees for charm authors, shown by charms of a few lines.

use periapt_sdk::testing::Harness;
use periapt_sdk::{
    Charm, Config, Context, Event, FromConfig, Level, Outcome, Ports, Refusal, RelationChanged, Result,
    Status, Unit, info,
};

/// Handles two events by methods of their own, and no other.
#[derive(Default)]
struct Partial;

impl Charm for Partial {
    fn install(&mut self, unit: &Unit) -> Result {
        unit.set_version("1.0")
    }

    fn relation_changed(&mut self, _: &Unit, event: &RelationChanged) -> Result {
        let port: u16 = event.bag().require("port")?;
        event.relation.unit_bag().set("seen", port)
    }
}

#[test]
fn events_without_a_method_are_reported_as_unhandled() {
    let mut unit = Harness::<Partial>::new("app/0");
    assert_eq!(unit.run(Event::Install), Ok(Outcome::Handled));
    assert_eq!(unit.version().as_deref(), Some("1.0"));
    assert_eq!(unit.run(Event::Start), Ok(Outcome::Unhandled));
    assert_eq!(unit.run(Event::CollectMetrics), Ok(Outcome::Unhandled));
}

#[test]
fn a_value_that_does_not_parse_names_bag_key_and_value() {
    let mut unit = Harness::<Partial>::new("app/0");
    let db = unit.relate("db", "server");
    let failure = unit.join(&db, "server/0", &[("port", "high")]).unwrap_err();
    assert_eq!(failure.message, "bag of server/0 in db:0: port is \"high\": invalid digit found in string");
    let failure = unit.change(&db, "server/0", &[("port", "")]).unwrap_err();
    assert_eq!(failure.message, "bag of server/0 in db:0 has no port");
    assert_eq!(unit.change(&db, "server/0", &[("port", "80")]), Ok(Outcome::Handled));
    assert_eq!(unit.unit_bag(&db)["seen"], "80");
    assert_eq!(unit.change_app(&db, &[("port", "81")]), Ok(Outcome::Handled));
    assert_eq!(unit.unit_bag(&db)["seen"], "81");
}

/// Does the one thing that its `what` option names, at every event.
#[derive(Default)]
struct OneStepCharm;

struct What(String);

impl FromConfig for What {
    fn from_config(config: &Config) -> Result<Self> {
        config.get("what").map(Self)
    }
}

impl Charm for OneStepCharm {
    fn otherwise(&mut self, unit: &Unit, _: &Event) -> Result {
        let What(what) = unit.config()?;
        let relation = || unit.relation("db").context("no relation");
        match what.as_str() {
            "block" => {
                relation()?.unit_bag().set("kept", "yes")?;
                Err(Status::blocked("needs a hand"))?
            }
            "foreign error" => {
                "eighty".parse::<u16>().context("reading the port")?;
            }
            "lead" => relation()?.app_bag().set("key", "value")?,
            "lead if you can" => {
                if let Err(error) = relation()?.app_bag().set("key", "value") {
                    assert!(error.is_not_leader());
                    assert!(matches!(error.refusal(), Some(Refusal::NotLeader(_))));
                    info!("not today");
                }
            }
            "read own app" => drop(relation()?.app_bag().all()?),
            "read a colleague" => drop(relation()?.member_bag("app/1").all()?),
            "read a stranger" => drop(relation()?.member_bag("other/0").all()?),
            "ports" => unit.set_ports([80.into(), (8000..=8999).into(), "53/udp".parse()?, Ports::Icmp])?,
            "fewer ports" => unit.set_ports([80.into()])?,
            _ => unreachable!("no test asks for {what}"),
        }
        Ok(())
    }
}

fn agile() -> Harness<OneStepCharm> {
    Harness::new("app/0")
}

fn run_step(unit: &mut Harness<OneStepCharm>, what: &str) -> Result<Outcome, String> {
    unit.config("what", what).run(Event::UpdateStatus).map_err(|failure| failure.message)
}

#[test]
fn a_status_returned_as_an_error_ends_the_hook_well_and_keeps_its_effects() {
    let mut unit = agile();
    let db = unit.relate("db", "server");
    assert_eq!(run_step(&mut unit, "block"), Ok(Outcome::Handled));
    assert_eq!(unit.status(), Some(Status::blocked("needs a hand")));
    assert_eq!(unit.unit_bag(&db)["kept"], "yes");
}

#[test]
fn any_error_fails_the_hook_with_what_was_being_tried() {
    let message = run_step(&mut agile(), "foreign error").unwrap_err();
    assert_eq!(message, "reading the port: invalid digit found in string");
}

#[test]
fn options_that_do_not_fit_say_what_was_expected() {
    let failure = agile().run(Event::Install).unwrap_err();
    assert_eq!(failure.message, "option what is not set");
    let failure = agile().config("what", 7).run(Event::Install).unwrap_err();
    assert_eq!(failure.message, "option what is 7, expected a text");
}

#[test]
fn only_a_leader_writes_the_application_bag_and_a_charm_can_go_on_without() {
    let mut unit = agile();
    let db = unit.relate("db", "server");
    assert_eq!(
        run_step(&mut unit, "lead").unwrap_err(),
        "bag of app in db:0: cannot write relation settings"
    );
    assert_eq!(run_step(&mut unit, "lead if you can"), Ok(Outcome::Handled));
    assert_eq!(unit.log(), [(Level::Info, "not today".to_owned())]);
    unit.leader(true);
    assert_eq!(run_step(&mut unit, "lead"), Ok(Outcome::Handled));
    assert_eq!(unit.app_bag(&db)["key"], "value");
}

#[test]
fn bags_of_others_are_closed_as_in_the_sandbox() {
    let mut unit = agile();
    unit.relate("db", "server");
    for what in ["read own app", "read a colleague", "read a stranger"] {
        assert!(run_step(&mut unit, what).unwrap_err().ends_with("permission denied"), "{what}");
    }
    assert_eq!(run_step(unit.leader(true), "read own app"), Ok(Outcome::Handled));
}

#[test]
fn ports_converge_on_what_is_wanted() {
    let mut unit = agile();
    run_step(&mut unit, "ports").unwrap();
    let shown = |unit: &Harness<OneStepCharm>| -> Vec<String> {
        unit.opened_ports().iter().map(|open| open.ports.to_string()).collect()
    };
    assert_eq!(shown(&unit), ["80/tcp", "8000-8999/tcp", "53/udp", "icmp"]);
    run_step(&mut unit, "fewer ports").unwrap();
    assert_eq!(shown(&unit), ["80/tcp"]);
}
