//! Access to uploaded charms and contents of resources.

use periapt_host_api::{
    Digest, ErrorCode, ModelUuid, access::ModelAccess, command::Command, resource::ResourceUpload,
};
use periapt_model::{Input, RefreshRequest, UploadedCharm, UploadedResource};

use super::{grant, registered, user};
use crate::world::{APP, DB, World, deploy_command};

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
        reader: known.reader,
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
    let upload =
        || Input::UploadResource(UploadedResource { digest: content, size: 4, image: None, parts: None });
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
