//! Secrets: what the tools say, and that the typed door says the same (`hook-model.md` 5.9).

use std::collections::BTreeMap;

use periapt_hook::{Answer, CallError, GetMode, NewOwner, SecretMetadata};
use periapt_host_api::{
    secret::{
        AccessChange, Confidential, SecretData, SecretId, SecretKey, SecretOwner, SecretReader,
        SecretRevision, Tracked,
    },
    view::{OwnedRevisionView, OwnedSecretView, SecretConsumerView, SecretView},
};

use crate::world::{DB, World, application, now, ready, unit};

fn id(number: u8) -> SecretId {
    SecretId::from_bytes([number; 12])
}

/// A secret of the hook's own unit, one granted to it that it tracks at 1 of 2, and one that it may read no more.
fn world() -> World {
    let mut world = World::new();
    let secrets = &mut world.inputs.view.secrets;
    let owned = OwnedSecretView {
        label: Some("own".into()),
        description: "what it is".into(),
        rotate: "daily".parse().unwrap(),
        next_rotate: None,
        rotate_due: false,
        revisions: BTreeMap::from([(SecretRevision(1), OwnedRevisionView::default())]),
        access: BTreeMap::from([(SecretReader::Unit(unit("b/0")), Some(DB))]),
    };
    let consumer = SecretConsumerView { tracked: SecretRevision(1), label: Some("theirs".into()) };
    let view = |number, owner, latest| SecretView {
        id: id(number),
        owner,
        latest: SecretRevision(latest),
        readers: [].into(),
        consumers: [].into(),
        owned: None,
    };
    let of_b = || SecretOwner::Application(application("b"));
    secrets.insert(id(1), SecretView { owned: Some(owned), ..view(1, SecretOwner::Unit(unit("a/0")), 1) });
    secrets.insert(
        id(2),
        SecretView {
            readers: [SecretReader::Application(application("a"))].into(),
            consumers: [(unit("a/0"), consumer.clone())].into(),
            ..view(2, of_b(), 2)
        },
    );
    secrets.insert(id(3), SecretView { consumers: [(unit("a/0"), consumer)].into(), ..view(3, of_b(), 0) });
    world
}

fn content(value: &str) -> SecretData {
    SecretData::from_texts([("password".to_owned(), value.to_owned())]).unwrap()
}

#[test]
fn m07_each_mistake_of_secret_add_has_its_own_message() {
    let mut hook = world().start();
    hook.check_errors(&[
        ("secret-add", 2, "missing secret value or filename"),
        ("secret-add s3cret", 2, "key value \"s3cret\" not valid"),
        ("secret-add --rotate foo abc=x", 2, "rotate policy \"foo\" not valid"),
        ("secret-add --owner foo abc=x", 2, "secret owner \"foo\" not valid"),
        ("secret-add --expire x abc=x", 2, "expire time or duration \"x\" not valid"),
        ("secret-add --expire -1h abc=x", 2, "negative expire duration \"-1h\" not valid"),
        ("secret-add --owner unit --label own abc=x", 1, "secret with label \"own\" already exists"),
        ("secret-add ab=x", 2, "key \"ab\" not valid"),
        ("secret-add key#base64=?", 2, "value of key \"key\" is not valid base64"),
    ]);
    let spaced = ["a b=x".to_owned()];
    let output = ready(hook.context.run_tool(now(), "secret-add", &spaced, None));
    assert_eq!((output.exit_code, output.stderr.as_str()), (2, "ERROR key \"a b\" not valid\n"));
    let empty = hook.tool_with("secret-add --owner unit --file -", Some("{}"));
    assert_eq!((empty.exit_code, empty.stderr.as_str()), (1, "ERROR empty secret value not valid\n"));
    assert!(hook.finish().effects.is_empty(), "nothing of all that is kept");
}

#[test]
fn m08_peek_and_refresh_exclude_each_other() {
    let mut hook = world().start();
    let uri = id(2).uri();
    let line = format!("secret-get {uri} --peek --refresh");
    hook.check_errors(&[(&line, 2, "specify one of --peek or --refresh but not both")]);
}

#[test]
fn what_names_no_secret_is_told_in_jujus_words() {
    let mut hook = world().start();
    let unknown = id(9);
    let lines = [
        ("secret-get".to_owned(), 2, "require either a secret URI or label".to_owned()),
        ("secret-get nonsense".to_owned(), 2, "secret URI \"nonsense\" not valid".to_owned()),
        (format!("secret-get {unknown}"), 1, format!("secret \"{unknown}\" not found")),
        ("secret-get --label x".to_owned(), 1, "consumer label \"x\" not found".to_owned()),
        (format!("secret-get {}", id(3)), 1, "permission denied".to_owned()),
        (format!("secret-info-get {unknown}"), 1, format!("secret \"{unknown}\" not found")),
        (format!("secret-info-get {}", id(2)), 1, format!("secret \"{}\" not found", id(2))),
        ("secret-revoke".to_owned(), 2, "missing secret URI".to_owned()),
        (format!("secret-revoke {unknown}"), 2, "missing relation or application or unit".to_owned()),
        (
            format!("secret-revoke {unknown} --app b --unit b/0"),
            2,
            "specify only one of application or unit".to_owned(),
        ),
        (
            format!("secret-revoke {unknown} --app b -r {DB}"),
            2,
            "do not specify both relation and app".to_owned(),
        ),
        (format!("secret-grant {unknown} -r {DB}"), 1, format!("secret \"{unknown}\" not found")),
    ];
    for (line, code, error) in &lines {
        hook.check_errors(&[(line, *code, error)]);
    }
}

/// S-1: content is asked for once, and what is tracked moves only with it.
#[test]
fn content_is_fetched_and_tracked_by_revision() {
    let mut hook = world().start();
    let (uri, key) = (id(2).uri(), |revision| SecretKey { id: id(2), revision: SecretRevision(revision) });
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
    assert_eq!(effects.track[&id(2)].revision, Tracked::Revision(SecretRevision(2)));
}

/// S-3, S-4, and what is pending in `secret-info-get` and `secret-ids`.
#[test]
fn what_this_hook_changed_is_seen_in_it() {
    let mut hook = world().start();
    let printed = hook.tool("secret-add --owner unit --label new --rotate daily token=abc").stdout;
    let new: SecretId = printed.trim_end().strip_prefix("secret:").unwrap().parse().unwrap();
    let own = id(1);
    let mut ids = [own.to_string(), new.to_string()];
    ids.sort();
    hook.check(&[
        ("secret-get --label new", "token: abc\n"),
        ("secret-ids", &format!("{}\n{}\n", ids[0], ids[1])),
        (&format!("secret-set {own} --description new"), ""),
        (&format!("secret-set {own} password=two"), ""),
        (&format!("secret-get {own} --peek password"), "two\n"),
        (&format!("secret-grant {new} -r {DB}"), ""),
        (&format!("secret-revoke {own} --unit b/0"), ""),
        (
            &format!("secret-info-get {own} --format json"),
            &format!(
                "{{\"{own}\":{{\"description\":\"new\",\"label\":\"own\",\"owner\":\"unit\",\"revision\":2,\
                 \"rotation\":\"daily\"}}}}\n"
            ),
        ),
    ]);
    let effects = hook.finish().effects.secrets;
    assert_eq!(effects.update[&own].description.as_deref(), Some("new"));
    assert_eq!(effects.access[&own], [(SecretReader::Unit(unit("b/0")), AccessChange::Revoke)].into());
    assert_eq!(
        effects.access[&new],
        [(SecretReader::Application(application("b")), AccessChange::Grant(DB))].into()
    );
    let Confidential::Open(token) = &effects.add[&new].content else { panic!("open on its way") };
    assert_eq!(token.value("token").unwrap(), "abc");
}

#[test]
fn a_call_that_changes_nothing_records_nothing() {
    let mut hook = world().start();
    let own = id(1);
    for line in [format!("secret-set {own}"), format!("secret-set {own} --label own --rotate daily")] {
        hook.check(&[(&line, "")]);
    }
    assert!(hook.finish().effects.is_empty());
}

/// S-7: an application's secret needs the lease; a unit's own does not.
#[test]
fn an_applications_secret_is_the_leaders() {
    let mut world = world();
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
    let mut hook = world().start();
    let uri = hook.tool("secret-add --owner unit token=hunter2hunter2").stdout;
    hook.tool(&format!("secret-get {} token", uri.trim_end()));
    let calls = hook.finish().calls;
    let open = format!("{:?}{:?}", calls.calls, calls.answers);
    assert!(!open.contains("hunter2hunter2"), "{open}");
    assert_eq!(calls.secrets.len(), 4, "arguments and answers of both calls");
    assert!(calls.secrets.iter().any(|kept| kept.0.contains("hunter2hunter2")));
    assert!(!format!("{calls:?}").contains("hunter2hunter2"), "not even when it is printed");
}
