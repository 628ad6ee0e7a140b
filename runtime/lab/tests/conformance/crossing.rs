//! X: relations across models (`docs/hook-model.md` 2.2, L-3, 5.4, 7.3): `a` in one model requires an interface that `b`
//! in another model provides.

use periapt_host_api::{
    ModelUuid, RelationId,
    command::{Command, ControllerCommand, Force, RelationSelector},
    status::Life,
    storage::UnitStorage,
};
use periapt_lab::{Lab, LabError};

use crate::bench::{LOCAL, REMOTE, charm, does, lab, printed};

/// The wait of forced removals in these tests.
const FORCE: Force = Force { max_wait: 5 };

/// Two models, each with an agent of its own.
struct Two {
    lab: Lab,
    /// The model with `a/0`, which consumes the offer.
    here: ModelUuid,
    /// The model with the units of `b`, which is offered.
    there: ModelUuid,
    seen: [usize; 2],
}

impl Two {
    /// Builds both models with started applications. `b` is offered and consumed.
    fn consumed(remotes: u32) -> Self {
        let mut lab = lab();
        let here = lab.model();
        lab.deploy_to("a", &charm(LOCAL), 1, "host").unwrap();
        let there = lab.add_model("prod").unwrap();
        lab.add_agent("far").unwrap();
        lab.deploy_to("b", &charm(REMOTE), remotes, "far").unwrap();
        lab.offer("b", &["db"]).unwrap();
        lab.switch(here);
        lab.consume("prod.b").unwrap();
        lab.run_until_idle().unwrap();
        let mut two = Self { lab, here, there, seen: [0; 2] };
        two.news();
        two
    }

    /// Relates the applications, and runs all hooks.
    fn joined(remotes: u32) -> Self {
        let mut two = Self::consumed(remotes);
        two.lab.integrate("a:db", "b:db").unwrap();
        two.news();
        two
    }

    /// Returns the new hooks of `a/0` and `b/0`, with the consumer's generated name as `remote`.
    fn news(&mut self) -> [Vec<String>; 2] {
        self.lab.run_until_idle().unwrap();
        let name = self.remote_name();
        let [a, b] = ["a/0", "b/0"].map(|unit| self.lab.hooks_of(unit));
        let news = [a[self.seen[0]..].to_vec(), b[self.seen[1]..].to_vec()];
        self.seen = [a.len(), b.len()];
        news.map(|hooks| hooks.iter().map(|hook| renamed(hook, name.as_deref())).collect())
    }

    /// Returns the name of `a` in the offering model.
    fn remote_name(&self) -> Option<String> {
        let state = self.lab.root().model(&self.there)?;
        state.remote_applications().next().map(|remote| remote.name.to_string())
    }

    fn relation(&self, model: ModelUuid) -> Option<RelationId> {
        let state = self.lab.root().model(&model)?;
        let mut relations = state.relations().filter(|relation| relation.life != Life::Dead);
        relations.next().map(|relation| relation.id)
    }

    fn there<T>(&mut self, act: impl FnOnce(&mut Lab) -> T) -> T {
        self.lab.switch(self.there);
        let done = act(&mut self.lab);
        self.lab.switch(self.here);
        done
    }

    fn suspend(&mut self) {
        let relation = self.relation(self.there).unwrap();
        let command = Command::SuspendRelation { relation, message: "unpaid".into() };
        self.there(|lab| lab.command(&command)).unwrap();
    }

    fn remove_here(&mut self) {
        let relation = self.relation(self.here).unwrap();
        self.lab.remove_relation(relation).unwrap();
    }

    /// Checks that neither model has a relation left, nor the offering one a name for the consumer.
    fn nothing_is_left(&self) {
        for model in [self.here, self.there] {
            let state = self.lab.root().model(&model).unwrap();
            assert_eq!(state.relations().count(), 0);
            assert_eq!(state.relations_with_bags().count(), 0);
            assert_eq!(state.work().count(), 0);
        }
        assert_eq!(self.remote_name(), None);
    }
}

fn renamed(hook: &str, remote: Option<&str>) -> String {
    match remote {
        Some(remote) => hook.replace(remote, "remote"),
        None => match hook.split_once("remote-") {
            // The relation is gone, and with it the name of 32 digits.
            Some((before, after)) => format!("{before}remote{}", &after[32..]),
            None => hook.to_owned(),
        },
    }
}

#[test]
fn x01_remote_units_join_one_by_one_each_with_its_change() {
    let mut two = Two::consumed(2);
    two.lab.integrate("a:db", "b:db").unwrap();
    let [a, b] = two.news();
    assert_eq!(
        a,
        [
            "db-relation-created",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
            "db-relation-joined b/1",
            "db-relation-changed b/1",
        ]
    );
    assert_eq!(b, ["db-relation-created", "db-relation-joined remote/0", "db-relation-changed remote/0"]);
    // A unit that enters has its addresses in its bag.
    two.lab.script("a/0", "config-changed", does("relation-get -r 0 private-address b/1")).unwrap();
    two.lab.configure("a", &[("colour", "blue")]).unwrap();
    two.news();
    printed(&two.lab, "relation-get -r 0 private-address b/1", "10.0.0.2\n");
}

#[test]
fn x02_bags_are_copied_and_what_is_equal_is_no_change() {
    let mut two = Two::joined(1);
    for (value, changed) in [("1", true), ("1", false), ("2", true)] {
        two.lab.script("a/0", "config-changed", does(&format!("relation-set -r 0 k={value}"))).unwrap();
        two.lab.configure("a", &[("colour", &format!("{value}{changed}"))]).unwrap();
        let [_, b] = two.news();
        assert_eq!(b, vec!["db-relation-changed remote/0"; usize::from(changed)], "{value}");
    }
    two.lab.script("a/0", "config-changed", does("relation-set -r 0 --app k=v")).unwrap();
    two.lab.configure("a", &[("colour", "red")]).unwrap();
    assert_eq!(two.news()[1], ["db-relation-changed"], "the application's bag has no unit");
    two.lab.script("b/0", "db-relation-changed", does("relation-set answer=42")).unwrap();
    two.lab.script("a/0", "config-changed", does("relation-set -r 0 k=3")).unwrap();
    two.lab.configure("a", &[("colour", "green")]).unwrap();
    two.lab.script("a/0", "db-relation-changed", does("relation-get answer b/0")).unwrap();
    let [a, b] = two.news();
    assert_eq!(
        (a.last().unwrap().as_str(), b),
        ("db-relation-changed b/0", vec!["db-relation-changed remote/0".to_owned()])
    );
    printed(&two.lab, "relation-get answer b/0", "42\n");
}

#[test]
fn x03_a_remote_unit_that_dies_departs_and_its_bag_stays() {
    let mut two = Two::joined(2);
    two.lab.script("a/0", "db-relation-departed", does("relation-get private-address b/1")).unwrap();
    // The departure comes early: b/1 has run none of its own hooks.
    two.there(|lab| lab.hold("b/1")).unwrap();
    two.there(|lab| lab.remove_unit("b/1")).unwrap();
    assert_eq!(two.news()[0], ["db-relation-departed b/1"]);
    printed(&two.lab, "relation-get private-address b/1", "10.0.0.2\n");
    two.there(|lab| lab.release("b/1")).unwrap();
    assert_eq!(two.news()[0], [""; 0], "that it is gone then is no news");
    let added = two.there(|lab| lab.add_units("b", 1));
    assert_eq!(added.unwrap().len(), 1);
    assert_eq!(two.news()[0], ["db-relation-joined b/2", "db-relation-changed b/2"]);
}

#[test]
fn x04_suspension_breaks_both_sides_and_resuming_begins_anew() {
    let mut two = Two::joined(1);
    two.suspend();
    let [a, b] = two.news();
    assert_eq!(a, ["db-relation-departed b/0", "db-relation-broken"]);
    assert_eq!(b, ["db-relation-departed remote/0", "db-relation-broken"]);
    for model in [two.here, two.there] {
        two.lab.switch(model);
        let status = two.lab.status().unwrap();
        assert_eq!(
            (status.relations[0].status.as_str(), status.relations[0].message.as_str()),
            ("suspended", "unpaid")
        );
    }
    two.lab.switch(two.here);
    let relation = two.relation(two.there).unwrap();
    two.there(|lab| lab.command(&Command::ResumeRelation { relation })).unwrap();
    let [a, b] = two.news();
    assert_eq!(a, ["db-relation-created", "db-relation-joined b/0", "db-relation-changed b/0"]);
    assert_eq!(b, ["db-relation-created", "db-relation-joined remote/0", "db-relation-changed remote/0"]);
    assert_eq!(two.lab.status().unwrap().relations[0].status, "joined");
}

#[test]
fn x04_while_units_leave_it_is_suspending() {
    let mut two = Two::joined(1);
    two.lab.hold("b/0").unwrap();
    two.suspend();
    assert_eq!(two.there(|lab| lab.status()).unwrap().relations[0].status, "suspending");
    two.lab.release("b/0").unwrap();
    two.news();
    assert_eq!(two.there(|lab| lab.status()).unwrap().relations[0].status, "suspended");
}

#[test]
fn x04_only_a_relation_with_an_own_offer_is_suspended() {
    let mut two = Two::joined(1);
    let relation = two.relation(two.here).unwrap();
    let refused = two.lab.command(&Command::SuspendRelation { relation, message: String::new() });
    let Err(LabError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert!(refusal.message.contains("is not associated with an offer"), "{refusal}");
}

#[test]
fn x05_a_removed_relation_ends_on_both_sides() {
    let ended = [
        vec!["db-relation-departed b/0", "db-relation-broken"],
        vec!["db-relation-departed remote/0", "db-relation-broken"],
    ];
    let mut two = Two::joined(1);
    two.remove_here();
    assert_eq!(two.news(), ended, "removed by the consumer");
    two.nothing_is_left();
    two.lab.integrate("a", "b").unwrap();
    two.news();
    let relation = two.relation(two.there).unwrap();
    two.there(|lab| lab.remove_relation(relation)).unwrap();
    assert_eq!(two.news(), ended, "removed by the offerer");
    two.nothing_is_left();
}

#[test]
fn x05_a_consumed_offer_and_a_consuming_application_take_their_relations_with_them() {
    let mut two = Two::joined(1);
    let application = "b".parse().unwrap();
    two.lab.command(&Command::RemoveSaas { application, force: None }).unwrap();
    assert_eq!(two.news()[1], ["db-relation-departed remote/0", "db-relation-broken"]);
    two.nothing_is_left();
    assert_eq!(two.lab.state().unwrap().remote_applications().count(), 0);

    let mut two = Two::joined(1);
    let application = "a".parse().unwrap();
    two.lab
        .command(&Command::RemoveApplication { application, force: None, storage: UnitStorage::Detach })
        .unwrap();
    assert_eq!(two.news()[1], ["db-relation-departed remote/0", "db-relation-broken"]);
    two.nothing_is_left();
}

#[test]
fn x05_a_relation_that_is_removed_before_the_other_side_heard_of_it_is_not_made_again() {
    let mut two = Two::consumed(1);
    two.lab.integrate("a:db", "b:db").unwrap();
    two.remove_here();
    two.news();
    two.nothing_is_left();
}

#[test]
fn x06_each_side_ends_whatever_hangs_on_the_other() {
    // The consumer does not wait for the offerer's units, which are gone.
    let mut two = Two::joined(1);
    two.lab.kill_agent("far").unwrap();
    two.remove_here();
    assert_eq!(two.news()[0], ["db-relation-departed b/0", "db-relation-broken"]);
    assert_eq!(two.relation(two.here), None);
    assert!(two.relation(two.there).is_some(), "b/0 has yet to leave");
    let relation = RelationSelector::Id(two.relation(two.there).unwrap());
    two.there(|lab| lab.command(&Command::RemoveRelation { relation, force: Some(FORCE) })).unwrap();
    two.lab.advance(std::time::Duration::from_secs(10)).unwrap();
    assert_eq!(two.relation(two.there), None);
    // After a forced removal the last known bags serve the last hooks.
    two.lab.script("b/0", "db-relation-departed", does("relation-get private-address")).unwrap();
    two.lab.start_agent("far").unwrap();
    assert_eq!(two.news()[1], ["db-relation-departed remote/0", "db-relation-broken"]);
    printed(&two.lab, "relation-get private-address", "10.0.0.1\n");
    two.nothing_is_left();

    // The other direction: an offer that is removed by force.
    let mut two = Two::joined(1);
    two.lab.kill_agent("host").unwrap();
    let offer: periapt_host_api::ApplicationName = "b".parse().unwrap();
    let refused = two.there(|lab| lab.command(&Command::RemoveOffer { offer: offer.clone(), force: None }));
    assert!(refused.unwrap_err().to_string().contains("offer has 1 relation"));
    two.there(|lab| lab.command(&Command::RemoveOffer { offer, force: Some(FORCE) })).unwrap();
    assert_eq!(two.news()[1], ["db-relation-departed remote/0", "db-relation-broken"]);
    assert_eq!(two.relation(two.there), None);
    assert_eq!(two.lab.status().unwrap().remote_applications["b"].application_status.current, "terminated");
    two.lab.start_agent("host").unwrap();
    assert_eq!(two.news()[0], ["db-relation-departed b/0", "db-relation-broken"]);
    let refused = two.lab.integrate("a", "b").unwrap_err().to_string();
    assert!(refused.contains("the offer was removed"), "{refused}");
}

#[test]
fn x07_a_restarted_controller_goes_on_with_what_was_under_way() {
    let mut two = Two::consumed(2);
    two.lab.integrate("a:db", "b:db").unwrap();
    two.lab.restart_controller().unwrap();
    assert_eq!(two.news()[0].len(), 5);
    two.lab.restart_controller().unwrap();
    assert_eq!(two.news(), [[""; 0], [""; 0]], "a restart alone runs no hook");
    two.suspend();
    two.lab.restart_controller().unwrap();
    assert_eq!(two.news()[0], ["db-relation-departed b/0", "db-relation-departed b/1", "db-relation-broken"]);
    two.remove_here();
    two.lab.restart_controller().unwrap();
    assert_eq!(two.news(), [[""; 0], [""; 0]], "broken once is broken");
    two.nothing_is_left();
}

#[test]
fn x08_an_offer_in_use_keeps_its_application_and_its_model() {
    let mut two = Two::joined(1);
    let application: periapt_host_api::ApplicationName = "b".parse().unwrap();
    let remove = |force| Command::RemoveApplication {
        application: application.clone(),
        force,
        storage: UnitStorage::Detach,
    };
    let refused = two.there(|lab| lab.command(&remove(None))).unwrap_err().to_string();
    assert!(refused.contains("application is used by 1 consumer"), "{refused}");
    let destroy = |model, force| ControllerCommand::DestroyModel { model, force, storage: None };
    let there = two.there;
    let refused = two.lab.control(&destroy(there, None)).unwrap_err().to_string();
    assert!(refused.contains("hosts 1 application offer"), "{refused}");

    two.there(|lab| lab.command(&remove(Some(FORCE)))).unwrap();
    assert_eq!(two.news()[0], ["db-relation-departed b/0", "db-relation-broken"]);
    two.lab.advance(std::time::Duration::from_secs(10)).unwrap();
    two.nothing_is_left();

    // A whole model, with an agent that is gone.
    let mut two = Two::joined(1);
    let there = two.there;
    two.lab.kill_agent("far").unwrap();
    two.lab.control(&destroy(there, Some(FORCE))).unwrap();
    two.lab.advance(std::time::Duration::from_secs(10)).unwrap();
    assert!(two.lab.root().model(&there).is_none());
    assert_eq!(two.news()[0], ["db-relation-departed b/0", "db-relation-broken"]);
    assert_eq!(two.relation(two.here), None);
}

#[test]
fn x08_a_consuming_model_is_destroyed_like_any_other() {
    let mut two = Two::joined(1);
    let (here, there) = (two.here, two.there);
    two.lab.control(&ControllerCommand::DestroyModel { model: here, force: None, storage: None }).unwrap();
    two.lab.run_until_idle().unwrap();
    assert!(two.lab.root().model(&here).is_none());
    assert_eq!(two.lab.hooks_of("b/0").last().map(String::as_str), Some("db-relation-broken"));
    let state = two.lab.root().model(&there).unwrap();
    assert_eq!((state.relations().count(), state.remote_applications().count()), (0, 0));
}

#[test]
fn x09_the_other_model_is_named() {
    let mut two = Two::consumed(1);
    let tools = ["relation-model-get --format=json", "goal-state --format=json"];
    for unit in ["a/0", "b/0"] {
        let actions = tools.map(|line| does(line).remove(0)).to_vec();
        two.lab.script(unit, "db-relation-created", actions).unwrap();
    }
    two.lab.hold("b/0").unwrap();
    two.lab.integrate("a:db", "b:db").unwrap();
    two.news();
    printed(&two.lab, tools[0], &format!("{{\"uuid\":\"{}\"}}\n", two.there));
    let told = crate::bench::tool_result(&two.lab, tools[1]).1;
    let goal: serde_json::Value = serde_json::from_str(&told).unwrap();
    let shown: Vec<&str> = goal["relations"]["db"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(shown, ["admin/prod.b"], "{goal}");
    two.lab.release("b/0").unwrap();
    two.news();
    printed(&two.lab, tools[0], &format!("{{\"uuid\":\"{}\"}}\n", two.here));
    let told = crate::bench::tool_result(&two.lab, tools[1]).1;
    let goal: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(goal["relations"], serde_json::json!({}), "an offerer is not shown its consumers");
}
