//! Models that migrate to another controller: what is frozen, what comes, and that one controller serves at a time.

use periapt_host_api::{
    AgentName, ModelUuid, Refusal,
    access::ModelAccess,
    agent::ControllerPlace,
    command::{Answer, Command, ControllerCommand},
    migration::{ImportPage, ImportPlan, MigrationPhase, MigrationTarget},
    secret::{Confidential, Sealed},
};
use periapt_model::{
    Input, UploadedCharm, agents_to_migrate, entities_to_migrate, migration_status, plan_begun_migration,
};
use uuid::Uuid;

use crate::world::World;

mod agents;
mod hand_over;
mod notes;
mod pages;
mod refusals;

/// Makes a controller whose agent "a1" has joined with a key, with an application of three units.
fn source() -> World {
    let mut world = World::new();
    world.join("a1", "key");
    world.deploy_db("db", 3);
    world
}

fn target() -> World {
    World::bare("other", 1 << 20)
}

fn seconds(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap()
}

fn name(text: &str) -> AgentName {
    text.parse().unwrap()
}

fn place(of: &World) -> ControllerPlace {
    ControllerPlace {
        controller: of.root.controller().unwrap().uuid,
        addresses: vec!["https://other.example:17070".to_owned()],
        authority: "PEM".to_owned(),
    }
}

fn migrate(from: &mut World, to: &World) -> Result<Uuid, Refusal> {
    let sealed = Sealed { checksum: "c".to_owned(), bytes: "b".to_owned() };
    let target = Box::new(MigrationTarget { place: place(to), token: Confidential::Sealed(sealed) });
    let model = from.model;
    from.control(ControllerCommand::Migrate { model, target })?;
    Ok(status(from, model).unwrap().0)
}

fn status(world: &World, model: ModelUuid) -> Option<(Uuid, MigrationPhase)> {
    let status = migration_status(world.root.model_or_remains(&model)?)?;
    Some((status.id, status.phase))
}

fn begin(to: &mut World, plan: &ImportPlan, check: bool) -> Result<u64, Refusal> {
    match to.control(ControllerCommand::BeginImport { plan: Box::new(plan.clone()), check })? {
        Answer::Import { next } => Ok(next),
        other => panic!("{other:?}"),
    }
}

fn upload_charms(from: &World, to: &mut World) {
    for charm in from.root.charms() {
        let charm = UploadedCharm {
            digest: charm.digest,
            component: charm.component,
            meta: charm.meta.clone(),
            size: charm.size,
            reader: charm.reader,
        };
        to.ask(&to.user(), &Input::UploadCharm(charm)).unwrap();
    }
}

/// Returns the pages of a model, of few entities each.
fn pages(from: &World, id: Uuid) -> Vec<ImportPage> {
    let plan = plan_begun_migration(&from.root, &from.model, id).unwrap();
    let state = from.root.model(&from.model).unwrap();
    let page = || ImportPage {
        model: from.model,
        id,
        number: 0,
        agents: Vec::new(),
        entities: Vec::new(),
        records: Vec::new(),
    };
    let entities: Vec<_> =
        entities_to_migrate(&from.root, state).map(|entity| serde_json::to_value(entity).unwrap()).collect();
    let entities = entities.chunks(3).map(|entities| ImportPage { entities: entities.to_vec(), ..page() });
    let agents = agents_to_migrate(&from.root, &plan, 1, 1 << 20).into_iter();
    let mut pages: Vec<_> = entities.chain(agents.map(|agents| ImportPage { agents, ..page() })).collect();
    for (number, page) in pages.iter_mut().enumerate() {
        page.number = u64::try_from(number).unwrap();
    }
    pages
}

fn count(world: &World) -> u64 {
    let state = world.root.model(&world.model).unwrap();
    u64::try_from(entities_to_migrate(&world.root, state).count()).unwrap()
}

fn send(to: &mut World, page: ImportPage) -> Result<(), Refusal> {
    to.control(ControllerCommand::ImportPage(Box::new(page))).map(drop)
}

fn hold(to: &mut World, model: ModelUuid, id: Uuid, entities: u64) -> Result<(), Refusal> {
    to.control(ControllerCommand::HoldImport { model, id, entities }).map(drop)
}

fn activate(to: &mut World, model: ModelUuid, id: Uuid) -> Result<(), Refusal> {
    to.control(ControllerCommand::ActivateImport { model, id }).map(drop)
}

/// Carries a model that is being exported, up to the point at which the other controller has all of it.
fn carry(from: &World, to: &mut World, id: Uuid) {
    upload_charms(from, to);
    let plan = plan_begun_migration(&from.root, &from.model, id).unwrap();
    assert_eq!(begin(to, &plan, false), Ok(0));
    for page in pages(from, id) {
        send(to, page).unwrap();
    }
    hold(to, from.model, id, count(from)).unwrap();
}

fn source_with_reader() -> World {
    let mut world = source();
    world.add_user("jane");
    world.run(Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Write }).unwrap();
    world
}
