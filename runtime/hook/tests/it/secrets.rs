//! Secrets: how content comes to a hook, and where it must not stand (`hook-model.md` 5.9).

use periapt_hook::{Answer, CallError, GetMode, NewOwner, SecretMetadata};
use periapt_host_api::secret::{SecretData, SecretKey, SecretRevision, Tracked};

use crate::{
    table::secret,
    world::{World, application, now},
};

fn content(value: &str) -> SecretData {
    SecretData::from_texts([("password".to_owned(), value.to_owned())]).unwrap()
}

/// S-1: content is asked for once, and what is tracked moves only with it.
#[test]
fn content_is_fetched_and_tracked_by_revision() {
    let mut hook = World::new().start();
    let (uri, key) =
        (secret(2).uri(), |revision| SecretKey { id: secret(2), revision: SecretRevision(revision) });
    assert_eq!(
        hook.context.secret_get(Some(&uri), None, GetMode::Tracked),
        Answer::NeedsSecret(key(1)),
        "nothing is known of content before it is fetched"
    );
    let away = CallError::TryAgain("the controller is away, try again".to_owned());
    hook.context.secret_fetched(key(1), Err(away.clone()));
    assert_eq!(hook.context.secret_get(Some(&uri), None, GetMode::Tracked), Answer::Ready(Err(away)));
    hook.context.secret_fetched(key(1), Ok(content("one")));
    hook.context.secret_fetched(key(2), Ok(content("two")));
    let tracked = format!("secret-get {uri} password");
    let lines = [
        (tracked.clone(), "one\n"),
        (format!("secret-get {uri} --peek"), "password: two\n"),
        (tracked.clone(), "one\n"),
        ("secret-get --label theirs --format json".to_owned(), "{\"password\":\"one\"}\n"),
        (format!("secret-get {uri} password --refresh"), "two\n"),
        (format!("{tracked}#base64"), "dHdv\n"),
    ];
    for (line, printed) in &lines {
        hook.check(&[(line, printed)]);
    }
    let effects = hook.finish().effects.secrets;
    assert_eq!(effects.track[&secret(2)].revision, Tracked::Revision(SecretRevision(2)));
}

/// S-7: an application's secret needs the lease; a unit's own does not.
#[test]
fn an_applications_secret_is_the_leaders() {
    let mut world = World::new();
    world.inputs.view.applications.get_mut(&application("a")).unwrap().leader = None;
    let mut hook = world.start();
    let add = |hook: &mut crate::world::Hook, owner| {
        let content = vec![("token".to_owned(), b"abc".to_vec())];
        hook.context.secret_add(now(), owner, &content, SecretMetadata::default(), None)
    };
    assert_eq!(add(&mut hook, NewOwner::Application), Answer::NeedsLease);
    assert!(matches!(add(&mut hook, NewOwner::Unit), Answer::Ready(Ok(_))));
    hook.context.lease_renewed(Default::default());
    let refused = add(&mut hook, NewOwner::Application);
    assert_eq!(refused, Answer::Ready(Err(CallError::NotLeader("this unit is not the leader".to_owned()))));
}

/// The journal keeps what was confidential apart, to be sealed.
#[test]
fn content_stands_nowhere_in_the_open_record() {
    let mut hook = World::new().start();
    let uri = hook.tool("secret-add --owner unit token=hunter2hunter2").stdout;
    hook.tool(&format!("secret-get {} token", uri.trim_end()));
    let calls = hook.finish().calls;
    let open = format!("{:?}{:?}", calls.calls, calls.answers);
    assert!(!open.contains("hunter2hunter2"), "{open}");
    assert_eq!(calls.secrets.len(), 4, "arguments and answers of both calls");
    assert!(calls.secrets.iter().any(|kept| kept.0.contains("hunter2hunter2")));
    assert!(!format!("{calls:?}").contains("hunter2hunter2"), "not even when it is printed");
}
