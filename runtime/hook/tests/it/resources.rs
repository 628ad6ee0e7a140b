//! Resources, beside their table (`docs/hook-model.md` 5.2).

use periapt_hook::{CallAnswer, CallError, ResourceFile};
use periapt_host_api::{Digest, resource::ResourceKey};

use crate::world::{World, now, ready};

fn key() -> ResourceKey {
    ResourceKey { name: "data".parse().unwrap(), digest: Digest::of(b"a,b") }
}

#[test]
fn a_file_is_fetched_once_and_both_doors_tell_where_it_is() {
    let mut hook = World::new().start();
    assert_eq!(hook.context.resource_get("data"), CallAnswer::NeedsResource(key()));
    let asked = hook.context.run_tool(now(), "resource-get", &["data".to_owned()], None);
    assert_eq!(asked, CallAnswer::NeedsResource(key()), "nothing is told of a file that is not there");
    hook.context.resource_fetched(key(), Ok(()));
    // The tool prints the path alone, without a line break.
    hook.check(&[("resource-get data", "/resources/data/rows.csv")]);
    let file = ready(hook.context.resource_get("data")).unwrap();
    let path = "/resources/data/rows.csv".to_owned();
    assert_eq!(file, ResourceFile { path, revision: 3, size: 3, digest: Digest::of(b"a,b") });
    assert_eq!(hook.context.resource_filename(&key().name), Some("rows.csv"));
}

#[test]
fn a_file_that_could_not_be_fetched_is_asked_for_again_by_the_next_call() {
    let mut hook = World::new().start();
    let away = CallError::TryAgain("the controller is not reachable, try again".to_owned());
    hook.context.resource_fetched(key(), Err(away.clone()));
    assert_eq!(hook.context.resource_get("data"), CallAnswer::Ready(Err(away)));
    assert_eq!(hook.context.resource_get("data"), CallAnswer::NeedsResource(key()));
    hook.context.resource_fetched(key(), Err(CallError::TryAgain("away".to_owned())));
    hook.check_errors(&[("resource-get data", 1, "away")]);
}

#[test]
fn a_name_is_shown_within_reason() {
    let mut hook = World::new().start();
    let refused = ready(hook.context.resource_get(&"x".repeat(100_000))).unwrap_err().to_string();
    assert!(refused.len() < 300, "{}", refused.len());
}

#[test]
fn the_record_tells_path_and_digest_of_what_was_read_by_either_door() {
    let mut hook = World::new().start();
    hook.context.resource_fetched(key(), Ok(()));
    hook.check(&[("resource-get data", "/resources/data/rows.csv")]);
    let recorded = hook.finish().calls;
    let functions: Vec<_> = recorded.calls.iter().map(|call| call.function.as_str()).collect();
    assert_eq!(functions, ["resources.fetched", "hook-tools.run"]);
    let answer = |index: usize| &recorded.answers[recorded.calls[index].answer as usize];
    assert!(answer(0).contains(&Digest::of(b"a,b").to_string()), "{}", answer(0));
    assert!(answer(1).contains("/resources/data/rows.csv"), "{}", answer(1));
}

#[test]
fn a_charm_says_whether_it_has_files_at_all() {
    assert!(World::new().start().context.has_resources());
    let mut without = World::new();
    let charms = &mut without.inputs.view.charms;
    let (digest, mut charm) = charms.iter().next().map(|(digest, charm)| (*digest, charm.clone())).unwrap();
    charm.meta.resources.retain(|_, meta| meta.filename().is_none());
    charms.insert(digest, charm);
    assert!(!without.start().context.has_resources(), "an image is no file");
}
