//! Users, sessions, grants, and what each caller may do.

use periapt_host_api::{
    Digest, ErrorCode, ModelUuid, Refusal,
    access::{ControllerAccess, ModelAccess},
    command::{Caller, Command, ControllerCommand, Deploy},
    exec,
    offer::OfferAccess,
    resource::ResourceUpload,
    user::{SessionId, TokenScope},
};
use periapt_model::{
    EntityKey, IdentityCommand, Input, NewSession, Output, RefreshRequest, Right, Root, TABLE, UploadedCharm,
    UploadedResource, WorkerCommand, active_user, authenticate,
    entity::{PasswordHash, Registration, SessionKind, User},
    is_visible, model_access, model_users, offer_details, scope_admits_request, sessions, users,
};

use crate::world::{APP, DB, World, deploy_command};

mod external;

fn user(name: &str) -> Caller {
    Caller::User(name.parse().unwrap())
}

fn registration(world: &World, name: &str) -> Registration {
    let expires_at = world.now + jiff_seconds(60);
    Registration { token: Digest::of(format!("registration of {name}").as_bytes()), expires_at }
}

fn jiff_seconds(seconds: i64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds.unsigned_abs())
}

fn session(world: &World, token: &str, kind: SessionKind) -> NewSession {
    let expires_at = world.now + jiff_seconds(3_600);
    NewSession { token: Digest::of(token.as_bytes()), kind, expires_at, address: "192.0.2.7".into() }
}

fn identity(world: &mut World, caller: &Caller, command: IdentityCommand) -> Result<Output, Refusal> {
    world.ask(caller, &Input::Identity(command))
}

fn add(world: &mut World, name: &str) {
    let registration = registration(world, name);
    let command =
        IdentityCommand::AddUser { name: name.parse().unwrap(), display_name: String::new(), registration };
    identity(world, &user("admin"), command).unwrap();
}

/// Adds a user, registers it with a password, and returns the digest of its session.
fn registered(world: &mut World, name: &str) -> Digest {
    add(world, name);
    register(world, name, &format!("first session of {name}")).unwrap()
}

fn register(world: &mut World, name: &str, token: &str) -> Result<Digest, Refusal> {
    let session = session(world, token, SessionKind::Login);
    let opened = session.token;
    let registration = registration(world, name).token;
    let password = password(name);
    identity(world, &Caller::Worker, IdentityCommand::Register { registration, password, session })?;
    Ok(opened)
}

fn password(name: &str) -> PasswordHash {
    PasswordHash(format!("hash of {name}"))
}

fn as_user(world: &mut World, name: &str, command: Command) -> Result<Output, Refusal> {
    let model = world.model;
    world.ask(&user(name), &Input::Model(model, command))
}

fn grant(world: &mut World, name: &str, access: ModelAccess) -> Result<Output, Refusal> {
    as_user(world, "admin", Command::GrantModel { user: name.parse().unwrap(), access })
}

fn revoke(world: &mut World, name: &str, access: ModelAccess) -> Result<Output, Refusal> {
    as_user(world, "admin", Command::RevokeModel { user: name.parse().unwrap(), access })
}

fn found<'a>(world: &'a World, name: &str) -> &'a User {
    world.root.user(&name.parse().unwrap()).unwrap()
}

/// A command that changes the model, for a user with write access.
fn write() -> Command {
    Command::SetModelConfig { set: Default::default(), reset: vec![] }
}

#[test]
fn a_controller_begins_with_one_superuser_who_has_no_password() {
    let world = World::new();
    let names: Vec<_> = users(&world.root, &world.user()).into_iter().map(|user| user.name).collect();
    assert_eq!(names, ["admin".parse().unwrap()]);
    let admin = found(&world, "admin");
    assert_eq!((admin.access, admin.password.clone()), (Some(ControllerAccess::Superuser), None));
    assert_eq!(model_users(&world.root, world.state())[0].access, ModelAccess::Admin, "of its own model");
}

#[test]
fn a_store_of_an_earlier_form_gets_its_first_user_at_the_next_start_and_only_then() {
    let mut world = World::new();
    let earlier = world.stored.iter().filter(|(key, _)| !matches!(key, EntityKey::User(_)));
    let earlier = earlier.map(|(key, entity)| (key.clone(), entity.clone()));
    world.root = Root::from_entities(earlier, world.root.revision()).unwrap();
    world.stored.retain(|key, _| !matches!(key, EntityKey::User(_)));
    assert!(active_user(&world.root, &world.user()).is_none());
    world.work(WorkerCommand::Initialize { name: "another".into() });
    assert!(active_user(&world.root, &world.user()).is_some());
    assert_eq!(world.root.controller().unwrap().name, "home");
    assert_eq!(model_access(&world.root, world.state(), &world.user()), Some(ModelAccess::Admin));
    let first = found(&world, "admin").uuid;
    world.work(WorkerCommand::Initialize { name: "home".into() });
    assert_eq!(found(&world, "admin").uuid, first);
}

#[test]
fn a_registration_token_is_used_once_and_in_time() {
    let mut world = World::new();
    add(&mut world, "jane");
    let opened = register(&mut world, "jane", "one").unwrap();
    let (who, _) = authenticate(&world.root, &opened, world.now).unwrap();
    assert_eq!(who.name.as_str(), "jane");
    let again = register(&mut world, "jane", "two").unwrap_err();
    assert_eq!(again.code, ErrorCode::NotLoggedIn);
    add(&mut world, "joe");
    let (late, never) = {
        let command = IdentityCommand::Register {
            registration: registration(&world, "joe").token,
            password: password("joe"),
            session: session(&world, "three", SessionKind::Login),
        };
        world.advance(60);
        let unknown = IdentityCommand::Register {
            registration: Digest::of(b"never issued"),
            password: password("joe"),
            session: session(&world, "four", SessionKind::Login),
        };
        let late = identity(&mut world, &Caller::Worker, command).unwrap_err();
        (late, identity(&mut world, &Caller::Worker, unknown).unwrap_err())
    };
    assert_eq!((&late, &again), (&never, &never), "used, expired and unknown tokens are refused alike");
}

#[test]
fn a_login_needs_the_password_that_is_set_now_and_ends_by_time() {
    let mut world = World::new();
    registered(&mut world, "jane");
    let log_in = |world: &mut World, verified: PasswordHash, token: &str| {
        let session = session(world, token, SessionKind::Login);
        let opened = session.token;
        let command = IdentityCommand::LogIn { user: "jane".parse().unwrap(), verified, session };
        identity(world, &Caller::Worker, command).map(|_| opened)
    };
    let opened = log_in(&mut world, password("jane"), "a").unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_some());
    let changed = IdentityCommand::SetPassword {
        user: "jane".parse().unwrap(),
        password: PasswordHash("another".into()),
        session: Some(opened),
    };
    identity(&mut world, &user("jane"), changed).unwrap();
    assert_eq!(sessions(&world.root, &"jane".parse().unwrap(), None).len(), 1, "the others end");
    assert!(authenticate(&world.root, &opened, world.now).is_some());
    let refused = log_in(&mut world, password("jane"), "b").unwrap_err();
    assert_eq!(refused.message, "invalid entity name or password");
    world.advance(3_600);
    assert!(authenticate(&world.root, &opened, world.now).is_none());
    world.settle();
    assert!(world.root.session(&opened).is_none(), "the worker deletes it");
}

#[test]
fn a_disabled_or_removed_user_has_no_session_and_no_access() {
    let mut world = World::new();
    let opened = registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    as_user(&mut world, "jane", write()).unwrap();
    let jane = || "jane".parse().unwrap();
    world.control(ControllerCommand::DisableUser { user: jane() }).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none());
    assert!(active_user(&world.root, &user("jane")).is_none());
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::NotFound);
    world.control(ControllerCommand::EnableUser { user: jane() }).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none(), "the session does not come back");
    as_user(&mut world, "jane", write()).unwrap();
    world.control(ControllerCommand::RemoveUser { user: jane() }).unwrap();
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::NotFound);
    // A later user of the same name inherits nothing.
    registered(&mut world, "jane");
    assert_eq!(model_access(&world.root, world.state(), &user("jane")), None);
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::NotFound);
    grant(&mut world, "jane", ModelAccess::Read).unwrap();
    assert_eq!(model_access(&world.root, world.state(), &user("jane")), Some(ModelAccess::Read));
}

#[test]
fn the_controllers_owner_stays_a_superuser() {
    let mut world = World::new();
    let admin = || "admin".parse().unwrap();
    let superuser = ControllerAccess::Superuser;
    for (command, text) in [
        (ControllerCommand::RemoveUser { user: admin() }, "cannot delete controller owner \"admin\""),
        (ControllerCommand::DisableUser { user: admin() }, "cannot disable controller owner \"admin\""),
        (
            ControllerCommand::RevokeController { user: admin(), access: superuser },
            "could not revoke controller access: \"admin\" is the controller's owner and stays a superuser",
        ),
    ] {
        assert_eq!(world.control(command).unwrap_err().message, text);
    }
}

#[test]
fn a_grant_that_gives_nothing_new_is_refused_in_jujus_words() {
    let mut world = World::new();
    registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    let refused = grant(&mut world, "jane", ModelAccess::Read).unwrap_err();
    assert_eq!(refused.message, "could not grant model access: user already has \"read\" access or greater");
    let command =
        ControllerCommand::GrantController { user: "jane".parse().unwrap(), access: ControllerAccess::Login };
    let refused = world.control(command).unwrap_err();
    assert_eq!(
        refused.message,
        "could not grant controller access: user already has \"login\" access or greater"
    );
    let unknown = grant(&mut world, "nobody", ModelAccess::Read).unwrap_err();
    assert_eq!((unknown.code, &*unknown.message), (ErrorCode::NotFound, "user \"nobody\" not found"));
}

#[test]
fn a_revoked_level_leaves_the_next_lower_one() {
    let mut world = World::new();
    registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Admin).unwrap();
    let has = |world: &World| model_access(&world.root, world.state(), &user("jane"));
    revoke(&mut world, "jane", ModelAccess::Admin).unwrap();
    assert_eq!(has(&world), Some(ModelAccess::Write));
    assert_eq!(revoke(&mut world, "jane", ModelAccess::Admin).unwrap_err().code, ErrorCode::NotFound);
    revoke(&mut world, "jane", ModelAccess::Read).unwrap();
    assert_eq!(has(&world), None);
    let superuser = ControllerAccess::Superuser;
    let jane = || "jane".parse().unwrap();
    world.control(ControllerCommand::GrantController { user: jane(), access: superuser }).unwrap();
    assert_eq!(has(&world), Some(ModelAccess::Admin), "superusers administer every model");
    world.control(ControllerCommand::RevokeController { user: jane(), access: superuser }).unwrap();
    assert_eq!(found(&world, "jane").access, Some(ControllerAccess::Login));
    let login = ControllerAccess::Login;
    world.control(ControllerCommand::RevokeController { user: jane(), access: login }).unwrap();
    assert!(active_user(&world.root, &user("jane")).is_none());
    assert!(sessions(&world.root, &jane(), None).is_empty());
}

#[test]
fn each_level_may_do_what_the_table_says_and_no_more() {
    let mut world = World::new();
    registered(&mut world, "jane");
    let destroy = |model: ModelUuid| {
        Input::Controller(ControllerCommand::DestroyModel { model, force: None, storage: None })
    };
    let model = world.model;
    let grant_other = || Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Admin };
    // Without access, a model is refused as one that does not exist.
    let hidden = as_user(&mut world, "jane", write()).unwrap_err();
    let nowhere = ModelUuid(uuid::Uuid::from_u128(99));
    let missing = world.ask(&user("jane"), &Input::Model(nowhere, write())).unwrap_err();
    assert_eq!(
        hidden.message.replace(&model.to_string(), ""),
        missing.message.replace(&nowhere.to_string(), "")
    );
    assert_eq!((hidden.code, hidden.subject), (missing.code, missing.subject));
    assert_eq!(world.ask(&user("jane"), &destroy(model)).unwrap_err().code, ErrorCode::NotFound);

    grant(&mut world, "jane", ModelAccess::Read).unwrap();
    assert!(is_visible(&world.root, &user("jane"), world.state()));
    assert_eq!(as_user(&mut world, "jane", write()).unwrap_err().code, ErrorCode::PermissionDenied);
    assert_eq!(world.ask(&user("jane"), &destroy(model)).unwrap_err().code, ErrorCode::PermissionDenied);

    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    as_user(&mut world, "jane", write()).unwrap();
    for command in [grant_other(), script()] {
        assert_eq!(as_user(&mut world, "jane", command).unwrap_err().code, ErrorCode::PermissionDenied);
    }

    grant(&mut world, "jane", ModelAccess::Admin).unwrap();
    assert_eq!(as_user(&mut world, "jane", grant_other()).unwrap_err().code, ErrorCode::AlreadyExists);
    assert_ne!(as_user(&mut world, "jane", script()).unwrap_err().code, ErrorCode::PermissionDenied);
    let add = Input::Controller(ControllerCommand::add_model("mine".parse().unwrap()));
    assert_eq!(world.ask(&user("jane"), &add).unwrap_err().code, ErrorCode::PermissionDenied);
    world.ask(&user("jane"), &destroy(model)).unwrap();
}

#[test]
fn only_administrators_of_a_model_grant_hosts_outside() {
    let mut world = World::new();
    let charm = world.upload_app();
    world.deploy(charm, "app", 0);
    registered(&mut world, "jane");
    grant(&mut world, "jane", ModelAccess::Write).unwrap();
    let pair = |value: &str| [("workload-egress".to_owned(), value.to_owned())].into();
    let key = || vec!["workload-egress".to_owned()];
    let app = || "app".parse().unwrap();
    let commands = || {
        let own = |set, reset| Command::SetConfig { application: app(), set, reset };
        let mut deploy = Deploy::of(charm, 0);
        deploy.application = Some("other".parse().unwrap());
        deploy.config = pair("example.com");
        [
            Command::SetModelConfig { set: pair("example.com"), reset: vec![] },
            Command::SetModelConfig { set: Default::default(), reset: key() },
            own(pair("203.0.113.7:443"), vec![]),
            own(Default::default(), key()),
            Command::Deploy(deploy),
        ]
    };
    for command in commands() {
        let refused = as_user(&mut world, "jane", command).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied, "{refused}");
    }
    as_user(&mut world, "jane", write()).unwrap();
    grant(&mut world, "jane", ModelAccess::Admin).unwrap();
    for command in commands() {
        as_user(&mut world, "jane", command).unwrap();
    }
    let granted = world.application("other").workload_egress.clone();
    assert_eq!(granted.map(|granted| granted.to_string()).as_deref(), Some("example.com"));
    assert_eq!(world.application("app").workload_egress, None);
}

/// A script on a unit that does not exist.
fn script() -> Command {
    Command::EnqueueOperation(periapt_host_api::action::EnqueueOperation {
        action: exec::ACTION.into(),
        receivers: vec![],
        parameters: Default::default(),
        turns: Default::default(),
    })
}

#[test]
fn only_superusers_manage_users_and_others_see_themselves_alone() {
    let mut world = World::new();
    registered(&mut world, "jane");
    registered(&mut world, "joe");
    let jane = user("jane");
    let names = |world: &World, caller: &Caller| -> Vec<String> {
        users(&world.root, caller).into_iter().map(|user| user.name.to_string()).collect()
    };
    assert_eq!(names(&world, &jane), ["jane"]);
    assert_eq!(names(&world, &user("admin")), ["admin", "jane", "joe"]);
    let joe = || "joe".parse().unwrap();
    for command in [
        ControllerCommand::RemoveUser { user: joe() },
        ControllerCommand::DisableUser { user: joe() },
        ControllerCommand::GrantController { user: joe(), access: ControllerAccess::Superuser },
    ] {
        let refused = world.ask(&jane, &Input::Controller(command)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
    }
    let set = |user| IdentityCommand::SetPassword { user, password: password("x"), session: None };
    assert_eq!(identity(&mut world, &jane, set(joe())).unwrap_err().code, ErrorCode::PermissionDenied);
    identity(&mut world, &user("joe"), set(joe())).unwrap();
}

#[test]
fn a_session_is_closed_by_its_user_or_a_superuser_and_is_nothing_to_others() {
    let mut world = World::new();
    let opened = registered(&mut world, "jane");
    registered(&mut world, "joe");
    let close = |digest: &Digest| {
        Input::Controller(ControllerCommand::CloseSession { session: SessionId::of(digest) })
    };
    let foreign = world.ask(&user("joe"), &close(&opened)).unwrap_err();
    let missing = world.ask(&user("joe"), &close(&Digest::of(b"none"))).unwrap_err();
    assert_eq!((foreign.code, missing.code), (ErrorCode::NotFound, ErrorCode::NotFound));
    assert!(authenticate(&world.root, &opened, world.now).is_some());
    world.ask(&user("jane"), &close(&opened)).unwrap();
    assert!(authenticate(&world.root, &opened, world.now).is_none());
}

#[test]
fn sessions_and_tokens_of_a_user_are_bounded() {
    let mut world = World::new();
    let first = registered(&mut world, "jane");
    for number in 0..40 {
        world.advance(1);
        let session = session(&world, &format!("login {number}"), SessionKind::Login);
        identity(&mut world, &user("jane"), IdentityCommand::OpenSession { session }).unwrap();
    }
    assert!(world.root.session(&first).is_none(), "the oldest make room");
    let token = |world: &mut World, name: String| {
        let scope = TokenScope { access: ModelAccess::Read, models: vec![] };
        let session = session(world, &name, SessionKind::Api { name: name.clone(), scope });
        identity(world, &user("jane"), IdentityCommand::OpenSession { session })
    };
    for number in 0..32 {
        token(&mut world, format!("ci-{number}")).unwrap();
    }
    assert_eq!(token(&mut world, "ci-0".into()).unwrap_err().code, ErrorCode::AlreadyExists);
    assert_eq!(token(&mut world, "more".into()).unwrap_err().code, ErrorCode::QuotaExceeded);
    assert_eq!(token(&mut world, "".into()).unwrap_err().code, ErrorCode::BadRequest);
    assert_eq!(sessions(&world.root, &"jane".parse().unwrap(), None).len(), 64);
    world.control(ControllerCommand::RemoveUser { user: "jane".parse().unwrap() }).unwrap();
    assert!(sessions(&world.root, &"jane".parse().unwrap(), None).is_empty(), "all in one commit");
}

#[test]
fn an_offer_is_seen_and_consumed_by_those_who_were_granted_it() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    let offer = Command::Offer {
        application: "db".parse().unwrap(),
        endpoints: ["server".parse().unwrap()].into(),
        name: None,
        description: None,
    };
    world.run(offer).unwrap();
    registered(&mut world, "jane");
    let url: periapt_host_api::offer::OfferUrl = "admin/m.db".parse().unwrap();
    let change = |access| ControllerCommand::GrantOffer {
        offer: "admin/m.db".parse().unwrap(),
        user: "jane".parse().unwrap(),
        access,
    };
    let jane = user("jane");
    assert_eq!(offer_details(&world.root, &jane, &url).unwrap_err().code, ErrorCode::NotFound);
    let foreign = world.ask(&jane, &Input::Controller(change(OfferAccess::Admin))).unwrap_err();
    assert_eq!(foreign.message, "offer \"admin/m.db\" not found");
    world.control(change(OfferAccess::Read)).unwrap();
    let seen = offer_details(&world.root, &jane, &url).unwrap();
    assert_eq!((seen.access, seen.connections.len()), (OfferAccess::Read, 0));
    let refused = world.ask(&jane, &Input::Controller(change(OfferAccess::Admin))).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PermissionDenied, "to read an offer is not to grant it");
    // A model in which jane may write, to consume the offer from.
    let other = world.add_model("shop");
    let write = Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Write };
    world.ask(&user("admin"), &Input::Model(other, write)).unwrap();
    let consume = Input::Model(other, Command::Consume { offer: url.clone(), application: None });
    assert_eq!(world.ask(&jane, &consume).unwrap_err().code, ErrorCode::PermissionDenied);
    world.control(change(OfferAccess::Consume)).unwrap();
    world.ask(&jane, &consume).unwrap();
    let revoke = ControllerCommand::RevokeOffer {
        offer: url.clone(),
        user: "jane".parse().unwrap(),
        access: OfferAccess::Read,
    };
    world.control(revoke).unwrap();
    assert_eq!(offer_details(&world.root, &jane, &url).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn the_scope_of_a_token_holds_for_the_models_of_offers() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    world.offer("db", &["server"]).unwrap();
    let (own, shop) = (world.model, world.add_model("shop"));
    let url = |text: &str| text.parse::<periapt_host_api::offer::OfferUrl>().unwrap();
    let jane = || "jane".parse().unwrap();
    let access = OfferAccess::Read;
    let granted = |offer| Input::Controller(ControllerCommand::GrantOffer { offer, user: jane(), access });
    let revoked = |offer| Input::Controller(ControllerCommand::RevokeOffer { offer, user: jane(), access });
    let consumed = |offer| Input::Model(shop, Command::Consume { offer, application: None });
    for offer in ["admin/m.db", "m.db"] {
        for input in [granted(url(offer)), revoked(url(offer)), consumed(url(offer))] {
            let admits = |models| {
                let scope = TokenScope { access: ModelAccess::Admin, models };
                scope_admits_request(&world.root, &user("admin"), &scope, &input)
            };
            assert!(!admits(vec![shop]), "{input:?}");
            assert!(admits(vec![shop, own]) && admits(vec![]), "{input:?}");
        }
    }
    let scope = TokenScope { access: ModelAccess::Write, models: vec![own] };
    let input = granted(url("admin/m.db"));
    assert!(!scope_admits_request(&world.root, &user("admin"), &scope, &input), "a grant needs admin");
}

#[test]
fn a_charm_is_deployed_by_its_uploaders_and_by_readers_of_a_model_that_uses_it() {
    let mut world = World::new();
    let charm = world.upload_app();
    world.run(deploy_command(charm, "app", 1)).unwrap();
    let (jane, joe) = (own_model(&mut world, "jane"), own_model(&mut world, "joe"));
    let deploy = |world: &mut World, of: &str, model, charm| {
        world.ask(&user(of), &Input::Model(model, deploy_command(charm, "app", 1)))
    };
    let foreign = deploy(&mut world, "jane", jane, charm).unwrap_err();
    let unknown = Digest::of(b"never uploaded");
    let missing = deploy(&mut world, "jane", jane, unknown).unwrap_err();
    assert_eq!((foreign.code, missing.code), (ErrorCode::NotFound, ErrorCode::NotFound));
    assert_eq!(foreign.message.replace(&charm.short(), ""), missing.message.replace(&unknown.short(), ""));

    let known = world.root.charm(&charm).unwrap();
    let same = UploadedCharm {
        digest: charm,
        component: known.component,
        meta: known.meta.clone(),
        size: known.size,
    };
    world.ask(&user("joe"), &Input::UploadCharm(same)).unwrap();
    deploy(&mut world, "joe", joe, charm).unwrap();
    assert_eq!(deploy(&mut world, "jane", jane, charm).unwrap_err().code, ErrorCode::NotFound);
    grant(&mut world, "jane", ModelAccess::Read).unwrap();
    deploy(&mut world, "jane", jane, charm).unwrap();

    // No more than a deployment may a refresh, or its plan, name another tenant's charm.
    let other = world.upload(DB);
    let application = "app".parse().unwrap();
    let refresh = RefreshRequest { application, charm: other, force: true };
    let plan = world.within(jane, |world| world.plan_as(&user("jane"), &refresh));
    assert_eq!(plan.unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn a_content_is_attached_by_its_uploaders_and_by_readers_of_a_model_that_has_it() {
    let mut world = World::new();
    let charm = world.upload(&format!("{APP}resources:\n  data: {{type: file, filename: rows.csv}}\n"));
    let jane = own_model(&mut world, "jane");
    world.within(jane, |world| world.run(deploy_command(charm, "app", 1)).unwrap());
    let content = Digest::of(b"rows");
    let upload = || Input::UploadResource(UploadedResource { digest: content, size: 4, image: None });
    let attach = |world: &mut World, of: &str, model, digest| {
        let (application, resource) = ("app".parse().unwrap(), "data".parse().unwrap());
        let upload = ResourceUpload { digest, filename: None, reference: None };
        let attach = Command::AttachResource { application, resource, upload };
        world.ask(&user(of), &Input::Model(model, attach))
    };
    world.ask(&user("admin"), &upload()).unwrap();
    let foreign = attach(&mut world, "jane", jane, content).unwrap_err();
    let unknown = Digest::of(b"never uploaded");
    let missing = attach(&mut world, "jane", jane, unknown).unwrap_err();
    assert_eq!((foreign.code, missing.code), (ErrorCode::NotFound, ErrorCode::NotFound));
    assert_eq!(foreign.message.replace(&content.short(), ""), missing.message.replace(&unknown.short(), ""));
    world.ask(&user("jane"), &upload()).unwrap();
    attach(&mut world, "jane", jane, content).unwrap();

    let joe = own_model(&mut world, "joe");
    world.within(joe, |world| world.run(deploy_command(charm, "app", 1)).unwrap());
    assert_eq!(attach(&mut world, "joe", joe, content).unwrap_err().code, ErrorCode::NotFound);
    let read = Command::GrantModel { user: "joe".parse().unwrap(), access: ModelAccess::Read };
    world.ask(&user("admin"), &Input::Model(jane, read)).unwrap();
    attach(&mut world, "joe", joe, content).unwrap();
}

/// Adds a user who administers a model of that name.
fn own_model(world: &mut World, name: &str) -> ModelUuid {
    registered(world, name);
    let model = world.add_model(name);
    let admin = Command::GrantModel { user: name.parse().unwrap(), access: ModelAccess::Admin };
    world.ask(&user("admin"), &Input::Model(model, admin)).unwrap();
    model
}

#[test]
fn no_caller_but_users_holds_a_right_over_users_and_models() {
    let mut world = World::new();
    registered(&mut world, "jane");
    let model = world.model;
    for caller in [Caller::Agent("a1".parse().unwrap()), world.runner("a1")] {
        let command = world.ask(&caller, &Input::Model(model, write())).unwrap_err();
        assert_eq!(command.code, ErrorCode::PermissionDenied);
        let remove = ControllerCommand::RemoveUser { user: "jane".parse().unwrap() };
        let refused = world.ask(&caller, &Input::Controller(remove)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
    }
    let anyone: Vec<Right> = TABLE
        .iter()
        .filter(|row| row.holders.contains(&periapt_model::Holder::Anyone))
        .map(|row| row.right)
        .collect();
    assert_eq!(anyone, [Right::LogIn, Right::JoinControllers, Right::JoinAgent]);
}
