//! Secrets: their writes stay within the size of a commit, however many there are.

use periapt_host_api::{
    ErrorCode, Refusal, Timestamp,
    agent::RunnerAnswer,
    command::{Command, Force, SecretSelector},
    commit::UnitCommit,
    secret::{
        AccessChange, Confidential, NewSecret, Removal, RotatePolicy, Sealed, SecretData, SecretId,
        SecretKey, SecretOwner, SecretReader, SecretRevision, SecretUpdate, Tracked, Tracking,
    },
};
use periapt_model::{entity::Work, secret_for_unit};

use crate::world::{DB, World, deploy_command, unit};

/// More than half of the bytes of a commit.
const LARGE: usize = 600 << 10;

fn id(number: u8) -> SecretId {
    SecretId::from_bytes([number; 12])
}

fn content(number: usize, bytes: usize) -> Confidential<SecretData> {
    Confidential::Sealed(Sealed { checksum: format!("{number:064x}"), bytes: "x".repeat(bytes) })
}

/// Returns a new secret of `app/0`.
fn secret(number: u8, bytes: usize, expire: Option<Timestamp>) -> (SecretId, NewSecret) {
    let new = NewSecret {
        owner: SecretOwner::Unit(unit("app/0")),
        content: content(usize::from(number), bytes),
        label: None,
        description: String::new(),
        rotate: RotatePolicy::Never,
        expire,
    };
    (id(number), new)
}

fn started() -> World {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world
}

fn add(world: &mut World, (id, new): (SecretId, NewSecret)) -> Result<RunnerAnswer, Refusal> {
    world.commit("app/0", |commit| drop(commit.effects.secrets.add.insert(id, new)))
}

/// Returns the answer to a runner that asks for content.
fn asked(
    world: &World,
    agent: &str,
    reader: &str,
    id: SecretId,
    revision: SecretRevision,
) -> Result<(), ErrorCode> {
    let key = SecretKey { id, revision };
    let read = secret_for_unit(&world.root, &world.runner(agent), &unit(reader), &key);
    read.map(drop).map_err(|refusal| refusal.code)
}

#[test]
fn who_may_not_read_a_secret_is_told_whether_it_exists() {
    let mut world = started();
    let charm = world.upload(DB);
    world.deploy(charm, "db", 1);
    world.start("db/0");
    add(&mut world, secret(1, 10, None)).unwrap();
    let first = SecretRevision(1);
    let (denied, missing) = (Err(ErrorCode::PermissionDenied), Err(ErrorCode::NotFound));
    for revision in [SecretRevision::NONE, first, SecretRevision(2)] {
        assert_eq!(asked(&world, "a1", "db/0", id(1), revision), denied);
        assert_eq!(asked(&world, "a1", "db/0", id(2), revision), missing);
    }
    assert_eq!(asked(&world, "a1", "app/0", id(1), first), Ok(()));
    assert_eq!(asked(&world, "a1", "app/0", id(1), SecretRevision(2)), missing);
    assert_eq!(asked(&world, "a1", "app/0", id(1), SecretRevision::NONE), denied, "its view was older");
    world.agent("a2");
    for secret in [id(1), id(2)] {
        assert_eq!(asked(&world, "a2", "app/0", secret, first), denied, "the unit is another agent's");
    }
}

fn in_an_hour(world: &World) -> Timestamp {
    world.now + jiff::SignedDuration::from_secs(3_600)
}

#[test]
fn secrets_that_expire_together_are_told_whatever_they_weigh() {
    let mut world = started();
    let at = in_an_hour(&world);
    for number in 1..=3 {
        add(&mut world, secret(number, LARGE, Some(at))).unwrap();
    }
    world.advance(3_600);
    world.settle();
    for number in 1..=3 {
        let told = world.state().secret_expiry(&id(number), SecretRevision(1)).unwrap();
        assert!(told.expire_due && told.expire == Some(at), "{told:?}");
    }
    let seen = &world.view("a1").secrets[&id(1)];
    assert!(seen.owned.as_ref().unwrap().revisions[&SecretRevision(1)].expire_due);
}

#[test]
fn a_hook_that_hears_of_an_expiry_writes_as_large_a_revision_again() {
    let mut world = started();
    let at = in_an_hour(&world);
    add(&mut world, secret(1, LARGE, Some(at))).unwrap();
    world.advance(3_600);
    world.settle();
    let later = in_an_hour(&world);
    world
        .commit("app/0", |commit| {
            commit.transitions.expired.insert(SecretKey { id: id(1), revision: SecretRevision(1) });
            let update =
                SecretUpdate { content: Some(content(2, LARGE)), expire: Some(later), ..Default::default() };
            commit.effects.secrets.update.insert(id(1), update);
        })
        .unwrap();
    let first = world.state().secret_expiry(&id(1), SecretRevision(1)).unwrap();
    assert_eq!((first.expire, first.expire_due), (Some(at), false));
    assert!(first.tell_at.is_some(), "it is told again");
    assert_eq!(world.state().secret_expiry(&id(1), SecretRevision(2)).unwrap().expire, Some(later));
}

#[test]
fn grants_of_a_reader_that_is_gone_are_taken_back_however_many_there_are() {
    let mut world = started();
    let name = "d".repeat(100);
    world.deploy_db(&name, 1);
    let relation = world.integrate("app", &name).unwrap();
    let reader = |number: u32| SecretReader::Unit(unit(&format!("{name}/{number}")));
    for number in 1..=12 {
        add(&mut world, secret(number, 10, None)).unwrap();
        let granted = (0..1_000).map(|number| (reader(number), AccessChange::Grant(relation))).collect();
        world
            .commit("app/0", |commit| drop(commit.effects.secrets.access.insert(id(number), granted)))
            .unwrap();
    }
    let force = Some(Force { max_wait: 0 });
    let gone = unit(&format!("{name}/0"));
    world.run(Command::RemoveUnit { unit: gone, force, storage: Default::default() }).unwrap();
    world.settle();
    for number in 1..=12 {
        let access = &world.state().secret(&id(number)).unwrap().access;
        assert!(access.len() == 999 && !access.contains_key(&reader(0)));
    }
}

/// Adds so many revisions to a secret of `app/0`.
fn revise(world: &mut World, id: SecretId, revisions: usize) {
    for number in 1..revisions {
        let update = SecretUpdate { content: Some(content(number, 10)), ..Default::default() };
        world.commit("app/0", |commit| drop(commit.effects.secrets.update.insert(id, update))).unwrap();
    }
}

fn remove(world: &mut World, ids: impl IntoIterator<Item = SecretId>) -> Result<RunnerAnswer, Refusal> {
    world.commit("app/0", |commit| {
        commit.effects.secrets.remove.extend(ids.into_iter().map(|id| (id, Removal::Secret)));
    })
}

#[test]
fn a_name_is_taken_while_secrets_of_its_last_application_remain() {
    let mut world = World::new();
    let charm = world.upload(DB);
    world.deploy(charm, "db", 0);
    let add = Command::AddSecret {
        id: Some(id(1)),
        name: "pw".into(),
        content: content(1, 10),
        description: String::new(),
    };
    world.run(add).unwrap();
    let grant = |name: &str| Command::GrantSecret {
        secret: SecretSelector::Id(id(1)),
        applications: vec![name.parse().unwrap()],
    };
    world.run(grant("db")).unwrap();
    let application = "db".parse().unwrap();
    world.run(Command::RemoveApplication { application, force: None, storage: Default::default() }).unwrap();
    assert!(!world.has_application("db"));
    let noted: Vec<_> = world.state().work().map(|item| item.work.clone()).collect();
    let reader = SecretReader::Application("db".parse().unwrap());
    // The item has no list that grows with the number of grants, so the commit that removes a reader always fits.
    assert_eq!(noted, [Work::ForgetSecretReader { reader, secrets: vec![] }]);
    let refusal = world.run(deploy_command(charm, "db", 0)).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::TryAgain, "the new one would have the grant of the old one");
    world.settle();
    world.deploy(charm, "db", 0);
    assert!(world.state().secret(&id(1)).unwrap().access.is_empty());
    world.run(grant("db")).unwrap();
    world.settle();
    assert_eq!(world.state().secret(&id(1)).unwrap().access.len(), 1, "and nobody takes the new one's away");
}

#[test]
fn an_id_is_taken_until_the_last_of_a_removed_secret_is_gone() {
    let mut world = started();
    add(&mut world, secret(1, 10, None)).unwrap();
    revise(&mut world, id(1), 120);
    remove(&mut world, [id(1)]).unwrap();
    assert!(world.state().secret(&id(1)).is_none());
    let refusal = add(&mut world, secret(1, 10, None)).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AlreadyExists, "revisions of the old one would be the new one's");
    world.settle();
    add(&mut world, secret(1, 10, None)).unwrap();
    assert_eq!(world.state().secret_contents(&id(1)).count(), 1);
}

#[test]
fn a_hook_removes_many_secrets_of_many_revisions() {
    let mut world = started();
    let ids: Vec<SecretId> = (1..=15).map(id).collect();
    for number in 1..=15 {
        add(&mut world, secret(number, 10, None)).unwrap();
        revise(&mut world, id(number), 10);
    }
    remove(&mut world, ids.clone()).unwrap();
    assert!(ids.iter().all(|id| world.state().secret(id).is_none()));
    assert!(world.state().work().count() <= 1, "the rest is one thing to do");
    world.settle();
    assert!(ids.iter().all(|id| world.state().secret_contents(id).next().is_none()));
}

#[test]
fn a_hook_takes_newer_revisions_of_many_secrets_that_prune_themselves() {
    let mut world = started();
    let ids: Vec<SecretId> = (1..=60).map(id).collect();
    for id in &ids {
        let (name, description) = (format!("s{id}"), String::new());
        world.run(Command::AddSecret { id: Some(*id), name, content: content(1, 10), description }).unwrap();
        let applications = vec!["app".parse().unwrap()];
        world.run(Command::GrantSecret { secret: SecretSelector::Id(*id), applications }).unwrap();
        let first = Tracking { revision: Tracked::Revision(SecretRevision(1)), label: None };
        world.commit("app/0", |commit| drop(commit.effects.secrets.track.insert(*id, first))).unwrap();
        let update = Command::UpdateSecret {
            secret: SecretSelector::Id(*id),
            content: Some(content(2, 10)),
            name: None,
            description: None,
            auto_prune: Some(true),
        };
        world.run(update).unwrap();
    }
    let latest = Tracking { revision: Tracked::Latest, label: None };
    let all = ids.iter().map(|id| (*id, latest.clone()));
    world.commit("app/0", |commit| commit.effects.secrets.track.extend(all)).unwrap();
    world.settle();
    for id in &ids {
        let kept: Vec<u32> = world.state().secret_contents(id).map(|content| content.revision.0).collect();
        assert_eq!(kept, [2], "nobody reads the first any more");
    }
}

#[test]
fn what_secrets_take_beside_their_content_counts() {
    let mut world = started();
    // By content alone, a hundred would fit exactly.
    let bytes = (64 << 20) / 100;
    for number in 1..=99 {
        add(&mut world, secret(number, bytes, None)).unwrap();
    }
    let refusal = add(&mut world, secret(100, bytes, None)).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::QuotaExceeded);
    // Descriptions and grants count, too. A smaller one is always accepted.
    add(&mut world, secret(100, bytes - 250 * 512, None)).unwrap();
    let describe = |number: u8, description: String| {
        let update = SecretUpdate { description: Some(description), ..Default::default() };
        move |commit: &mut UnitCommit| drop(commit.effects.secrets.update.insert(id(number), update))
    };
    let full = (1..=100).find(|number| world.commit("app/0", describe(*number, "x".repeat(4_000))).is_err());
    assert!(full.is_some_and(|number| number > 1), "{full:?}");
    world.commit("app/0", describe(1, String::new())).unwrap();
}
