//! Secrets: how content reaches a hook, and which records must not hold it (`docs/hook-model.md` 5.9).

use periapt_hook::{CallAnswer, CallError, GetMode, NewOwner, SecretMetadata};
use periapt_host_api::secret::{SecretData, SecretKey, SecretRevision, Tracked};

use crate::{
    table::secret,
    world::{World, application, now},
};

fn content(value: &str) -> SecretData {
    SecretData::from_texts([("password".to_owned(), value.to_owned())]).unwrap()
}

/// Content is fetched once, and the tracked revision moves only with it (S-1).
#[test]
fn content_is_fetched_and_tracked_by_revision() {
    let mut hook = World::new().start();
    let (uri, key) =
        (secret(2).uri(), |revision| SecretKey { id: secret(2), revision: SecretRevision(revision) });
    assert_eq!(
        hook.context.secret_get(Some(&uri), None, GetMode::Tracked),
        CallAnswer::NeedsSecret(key(1)),
        "nothing is known of content before it is fetched"
    );
    let away = CallError::TryAgain("the controller is not reachable, try again".to_owned());
    hook.context.secret_fetched(key(1), Err(away.clone()));
    assert_eq!(hook.context.secret_get(Some(&uri), None, GetMode::Tracked), CallAnswer::Ready(Err(away)));
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

/// A host that does not run the owner has nothing of a secret in its view, so the hook asks the controller whether it
/// exists.
#[test]
fn a_secret_that_the_view_lacks_is_denied_if_it_exists_and_not_found_if_it_does_not() {
    let denied = CallError::PermissionDenied("permission denied".to_owned());
    let missing = CallError::NotFound(format!("secret {:?} not found", secret(9).to_string()));
    for refusal in [denied, missing] {
        let mut hook = World::new().start();
        let (uri, unseen) = (secret(9).uri(), SecretKey { id: secret(9), revision: SecretRevision::NONE });
        let away = CallError::TryAgain("the controller is not reachable, try again".to_owned());
        for mode in [GetMode::Tracked, GetMode::Peek, GetMode::Refresh] {
            let get = |hook: &mut crate::world::Hook| hook.context.secret_get(Some(&uri), None, mode);
            if mode == GetMode::Tracked {
                for answer in [away.clone(), refusal.clone()] {
                    assert_eq!(get(&mut hook), CallAnswer::NeedsSecret(unseen));
                    hook.context.secret_fetched(unseen, Err(answer.clone()));
                    assert_eq!(get(&mut hook), CallAnswer::Ready(Err(answer)));
                }
            }
            assert_eq!(
                get(&mut hook),
                CallAnswer::Ready(Err(refusal.clone())),
                "the same for the whole hook"
            );
        }
        hook.check_errors(&[(&format!("secret-get {uri} --label mine"), 1, &refusal.to_string())]);
        let gathered = hook.finish();
        assert!(gathered.effects.secrets.track.is_empty(), "nothing is tracked");
        let text = serde_json::to_string(&refusal).unwrap();
        let recorded = gathered.calls.secrets.iter().filter(|kept| kept.0.contains(&text)).count();
        assert_eq!(recorded, 4, "the record has the answer of each call");
    }
}

/// A grant that is newer than the hook's view takes effect in the next hook.
#[test]
fn content_of_a_secret_that_the_view_lacks_is_not_read() {
    let mut hook = World::new().start();
    let unseen = SecretKey { id: secret(9), revision: SecretRevision::NONE };
    hook.context.secret_fetched(unseen, Ok(content("newer")));
    let denied = CallError::PermissionDenied("permission denied".to_owned());
    let get = hook.context.secret_get(Some(&secret(9).uri()), None, GetMode::Peek);
    assert_eq!(get, CallAnswer::Ready(Err(denied)));
}

/// An application's secret needs the lease; a unit's own does not (S-7).
#[test]
fn an_applications_secret_is_the_leaders() {
    let mut world = World::new();
    world.inputs.view.applications.get_mut(&application("a")).unwrap().leader = None;
    let mut hook = world.start();
    let add = |hook: &mut crate::world::Hook, owner| {
        let content = vec![("token".to_owned(), b"abc".to_vec())];
        hook.context.secret_add(now(), owner, &content, SecretMetadata::default(), None)
    };
    assert_eq!(add(&mut hook, NewOwner::Application), CallAnswer::NeedsLease);
    assert!(matches!(add(&mut hook, NewOwner::Unit), CallAnswer::Ready(Ok(_))));
    hook.context.lease_renewed(Default::default());
    let refused = add(&mut hook, NewOwner::Application);
    assert_eq!(
        refused,
        CallAnswer::Ready(Err(CallError::NotLeader("this unit is not the leader".to_owned())))
    );
}

/// The journal keeps confidential arguments and answers apart, to be sealed.
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
