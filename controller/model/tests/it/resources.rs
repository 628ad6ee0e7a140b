//! Resources: the content of applications' files, and access to it (`docs/hook-model.md` 1.10, 7.7).

use periapt_host_api::{
    ApplicationName, Digest, ErrorCode, Refusal, ResourceName,
    command::{Answer, Caller, Command, Deploy, RefreshWith},
    record::CharmRef,
    resource::{ArchiveLayer, ArchiveParts, CheckedImage, RegistryName, ResourceKey, ResourceUpload},
};
use periapt_model::{Input, UploadedResource, WorkerCommand, resource_details, resource_for_unit};

use crate::world::{APP, World, deploy_command, unit};

/// Uploads the charm of all tests, with two files and an image.
fn charm(world: &mut World) -> Digest {
    world.upload(&format!(
        "{APP}resources:\n  data: {{type: file, filename: rows.csv}}\n  more: {{type: file, filename: more}}\n  \
         image: {{type: oci-image}}\n"
    ))
}

fn upload(world: &mut World, content: &str) -> ResourceUpload {
    let digest = Digest::of(content.as_bytes());
    let uploaded = UploadedResource { digest, size: content.len() as u64, image: None, parts: None };
    world.ask(&world.user(), &Input::UploadResource(uploaded)).unwrap();
    ResourceUpload { digest, filename: None, reference: None }
}

fn name(text: &str) -> ResourceName {
    text.parse().unwrap()
}

fn application() -> ApplicationName {
    "app".parse().unwrap()
}

/// Attaches content, and returns its revision and true if the revision is new.
fn attach(world: &mut World, resource: &str, upload: ResourceUpload) -> Result<(u64, bool), Refusal> {
    let resource = name(resource);
    match world.run(Command::AttachResource { application: application(), resource, upload })? {
        Answer::Resource { revision, fresh } => Ok((revision, fresh)),
        other => panic!("{other:?}"),
    }
}

fn attach_text(world: &mut World, resource: &str, content: &str) -> (u64, bool) {
    let upload = upload(world, content);
    attach(world, resource, upload).unwrap()
}

fn deployed(units: u32) -> World {
    let mut world = World::new();
    let charm = charm(&mut world);
    world.deploy(charm, "app", units);
    world
}

fn charm_of(world: &World) -> CharmRef {
    world.application("app").charm
}

#[test]
fn new_content_is_a_revision_and_a_version_of_the_charm_and_the_same_again_is_neither() {
    let mut world = deployed(1);
    let (before, hash) = (charm_of(&world), world.application("app").config_hash.clone());
    assert_eq!(attach_text(&mut world, "data", "one"), (1, true));
    let after = charm_of(&world);
    assert_eq!((after.digest, after.modified_version), (before.digest, before.modified_version + 1));
    assert_ne!(world.application("app").config_hash, hash, "config-changed follows");
    assert_eq!(attach_text(&mut world, "data", "one"), (1, false));
    assert_eq!(charm_of(&world), after);
    assert_eq!(attach_text(&mut world, "data", "two"), (2, true));
    assert_eq!(attach_text(&mut world, "data", "one"), (3, true), "what was there before is new again");
    assert_eq!(attach_text(&mut world, "more", "one"), (1, true), "each resource counts for itself");
    let current = &world.application("app").resources[&name("data")].current;
    assert_eq!((current.revision, current.size, current.attached_by.as_str()), (3, 3, "admin"));
    let shown = &world.view("a1").applications[&application()].resources[&name("data")];
    assert_eq!((shown.revision, shown.digest, shown.size), (3, Digest::of(b"one"), 3));
}

#[test]
fn an_application_begins_with_what_it_is_given_and_needs_nothing() {
    let mut world = World::new();
    let (charm, rows) = (charm(&mut world), upload(&mut world, "rows"));
    let Command::Deploy(deploy) = deploy_command(charm, "app", 1) else { panic!() };
    let deploy = |resource: &str, upload: &ResourceUpload| {
        let resources = [(name(resource), upload.clone())].into();
        Command::Deploy(Deploy { resources, ..deploy.clone() })
    };
    let refused = |world: &mut World, command| world.run(command).unwrap_err();
    let unknown = refused(&mut world, deploy("rows", &rows));
    assert_eq!(unknown.code, ErrorCode::NotFound);
    assert!(unknown.message.contains("unrecognized resource \"rows\""), "{unknown}");
    let image = refused(&mut world, deploy("image", &rows));
    assert_eq!(image.code, ErrorCode::BadRequest);
    assert!(image.message.contains("was uploaded as a file, and is to be an image"), "{image}");
    let wrong = ResourceUpload { filename: Some("rows.zip".into()), ..rows.clone() };
    assert_eq!(refused(&mut world, deploy("data", &wrong)).code, ErrorCode::BadRequest);
    let absent = ResourceUpload { digest: Digest::of(b"absent"), filename: None, reference: None };
    let absent = refused(&mut world, deploy("data", &absent));
    assert!(absent.message.contains("upload it first"), "{absent}");
    assert!(!world.has_application("app"));

    let right = ResourceUpload { filename: Some("my.csv".into()), ..rows };
    world.run(deploy("data", &right)).unwrap();
    let application = world.application("app");
    assert_eq!(application.charm.modified_version, 0, "its first units are told of nothing new");
    assert_eq!(application.resources[&name("data")].current.revision, 1);
    assert!(!application.resources.contains_key(&name("more")));
}

#[test]
fn what_cannot_be_attached_changes_nothing() {
    let mut world = deployed(1);
    let (before, rows) = (world.application("app").clone(), upload(&mut world, "rows"));
    let wrong = ResourceUpload { filename: Some("rows.zip".into()), ..rows.clone() };
    for (resource, upload, code) in [
        ("other", rows.clone(), ErrorCode::NotFound),
        ("image", rows.clone(), ErrorCode::BadRequest),
        ("data", wrong, ErrorCode::BadRequest),
    ] {
        assert_eq!(attach(&mut world, resource, upload).unwrap_err().code, code, "{resource}");
    }
    assert_eq!(*world.application("app"), before);
    world
        .run(Command::RemoveApplication {
            application: application(),
            force: None,
            storage: Default::default(),
        })
        .unwrap();
    assert_eq!(attach(&mut world, "data", rows).unwrap_err().code, ErrorCode::NotAlive);
}

#[test]
fn only_a_runner_that_has_a_unit_of_the_application_may_have_its_content() {
    let mut world = deployed(1);
    attach_text(&mut world, "data", "one");
    attach_text(&mut world, "more", "two");
    let key = |resource: &str, content: &str| ResourceKey {
        name: name(resource),
        digest: Digest::of(content.as_bytes()),
    };
    let may = |world: &World, caller: &Caller, of: &str, key: &ResourceKey| {
        resource_for_unit(&world.root, caller, &unit(of), key)
    };
    let own = world.runner("a1");
    assert_eq!(may(&world, &own, "app/0", &key("data", "one")), Ok(()));

    world.agent("a2");
    let db = world.deploy_db("db", 1);
    let other_model = world.add_model("other");
    let elsewhere = Caller::Runner { agent: "a1".parse().unwrap(), model: other_model };
    for (caller, of, key) in [
        (own.clone(), "app/0", key("data", "two")),
        (own.clone(), "app/0", key("data", "never uploaded")),
        (own.clone(), "app/0", key("other", "one")),
        (own.clone(), db[0].to_string().as_str(), key("data", "one")),
        (own, "app/7", key("data", "one")),
        (world.runner("a2"), "app/0", key("data", "one")),
        (elsewhere, "app/0", key("data", "one")),
        (world.user(), "app/0", key("data", "one")),
        (Caller::Agent("a1".parse().unwrap()), "app/0", key("data", "one")),
    ] {
        let refusal = may(&world, &caller, of, &key).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.message.as_str()),
            (ErrorCode::PermissionDenied, "permission denied")
        );
    }
}

#[test]
fn hooks_under_way_may_have_what_was_replaced_and_no_more_of_it_than_a_little() {
    let mut world = deployed(1);
    let contents: Vec<String> = (0..7).map(|number| format!("content {number}")).collect();
    for content in &contents {
        attach_text(&mut world, "data", content);
    }
    let may = |content: &String| {
        let key = ResourceKey { name: name("data"), digest: Digest::of(content.as_bytes()) };
        resource_for_unit(&world.root, &world.runner("a1"), &unit("app/0"), &key).is_ok()
    };
    let may: Vec<_> = contents.iter().map(may).collect();
    assert_eq!(may, [false, false, true, true, true, true, true]);
}

#[test]
fn a_unit_is_shown_with_the_revision_that_it_was_told_of() {
    let mut world = deployed(2);
    world.start("app/0");
    attach_text(&mut world, "data", "one");
    world.start("app/0");
    attach_text(&mut world, "data", "two");
    let shown = |world: &World| {
        let details = resource_details(&world.root, world.state(), world.application("app"));
        let data = details.into_iter().find(|resource| resource.name == name("data")).unwrap();
        let told: Vec<_> = data.units.values().map(|told| told.as_ref().map(|told| told.revision)).collect();
        (data.attached.unwrap().revision, told)
    };
    assert_eq!(shown(&world), (2, vec![Some(1), None]));
    world.start("app/0");
    world.start("app/1");
    assert_eq!(shown(&world), (2, vec![Some(2), Some(2)]));
    let names: Vec<_> = resource_details(&world.root, world.state(), world.application("app"))
        .iter()
        .map(|resource| resource.name.to_string())
        .collect();
    assert_eq!(names, ["data", "image", "more"]);
}

#[test]
fn a_refresh_keeps_what_either_charm_declares() {
    let mut world = deployed(1);
    attach_text(&mut world, "data", "one");
    attach_text(&mut world, "more", "two");
    let refresh_to = |resource: &str, world: &mut World| {
        let charm = world.upload(&format!("{APP}resources: {{{resource}: {{type: file, filename: f}}}}\n"));
        let (application, with) = (application(), RefreshWith::default());
        world.run(Command::Refresh { application, charm, force: false, with }).unwrap();
        world.application("app").resources.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(refresh_to("data", &mut world), ["data", "more"], "units that run the old charm read it");
    assert_eq!(refresh_to("new", &mut world), ["data"]);
}

#[test]
fn content_is_forgotten_when_no_application_has_it_or_can_go_back_to_it() {
    let mut world = deployed(0);
    let contents: Vec<String> = (0..7).map(|number| format!("content {number}")).collect();
    for content in &contents {
        attach_text(&mut world, "data", content);
    }
    let uploads = |content: &String| ResourceUpload {
        digest: Digest::of(content.as_bytes()),
        filename: None,
        reference: None,
    };
    let uploads: Vec<_> = contents.iter().map(uploads).collect();
    for upload in &uploads {
        world.work(WorkerCommand::ForgetResource(upload.digest));
    }
    let is_there = |upload: &ResourceUpload| world.root.resource_content(&upload.digest).is_some();
    let there: Vec<_> = uploads.iter().map(is_there).collect();
    assert_eq!(there, [false, false, true, true, true, true, true]);
    let former = |world: &World| -> Vec<u64> {
        let details = resource_details(&world.root, world.state(), world.application("app"));
        let data = details.into_iter().find(|resource| resource.name == name("data")).unwrap();
        data.former.iter().map(|content| content.revision).collect()
    };
    assert_eq!(former(&world), [3, 4, 5, 6]);
    assert_eq!(attach(&mut world, "data", uploads[0].clone()).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(attach(&mut world, "data", uploads[2].clone()).unwrap(), (8, true));
    assert_eq!(former(&world), [4, 5, 6, 7]);
    // It is the present content now, and stays as long as one revision has it.
    world.work(WorkerCommand::ForgetResource(uploads[2].digest));
    assert!(world.root.resource_content(&uploads[2].digest).is_some());
}

/// Uploads an archive in which an image was found.
fn upload_image(world: &mut World, content: &str) -> ResourceUpload {
    let (digest, size) = (Digest::of(content.as_bytes()), content.len() as u64);
    let image = CheckedImage { digest: Digest::of(b"manifest"), platform: "linux/amd64".into() };
    let uploaded = UploadedResource { digest, size, image: Some(image), parts: None };
    world.ask(&world.user(), &Input::UploadResource(uploaded)).unwrap();
    let reference = RegistryName::new("registry.example/web:1").ok();
    ResourceUpload { digest, filename: Some("web.tar".into()), reference }
}

#[test]
fn an_image_is_attached_once_it_was_found_to_be_one() {
    let mut world = deployed(1);
    let file = upload(&mut world, "archive");
    let refused = attach(&mut world, "image", file.clone()).unwrap_err();
    assert!(refused.message.contains("was uploaded as a file"), "{refused}");
    let image = upload_image(&mut world, "archive");
    assert_eq!(attach(&mut world, "image", image.clone()).unwrap(), (1, true));
    let current = world.application("app").resources[&name("image")].current.clone();
    assert_eq!(current.image.map(|image| image.platform).as_deref(), Some("linux/amd64"));
    assert_eq!(current.reference.as_ref().map(RegistryName::as_str), Some("registry.example/web:1"));
    // An upload as a file takes nothing away, and an image may be a file.
    upload(&mut world, "archive");
    assert_eq!(attach(&mut world, "image", image).unwrap(), (1, false));
    assert_eq!(attach(&mut world, "more", file).unwrap(), (1, true));
    assert_eq!(world.application("app").resources[&name("more")].current.image, None);
}

/// Returns an upload of an image of 100 bytes with one layer of 60 bytes.
fn image_in_parts(name: &str, layer: &str) -> UploadedResource {
    let digest = |text: &str| Digest::of(text.as_bytes());
    let layers = vec![ArchiveLayer { at: 20, size: 60, digest: digest(layer) }];
    UploadedResource {
        digest: digest(name),
        size: 100,
        image: Some(CheckedImage { digest: digest("manifest"), platform: "linux/amd64".into() }),
        parts: Some(ArchiveParts { frame: digest(&format!("frame of {name}")), layers }),
    }
}

#[test]
fn a_layer_stays_as_long_as_one_image_has_it() {
    let mut world = deployed(0);
    let images = [image_in_parts("one", "base"), image_in_parts("two", "base")];
    for image in &images {
        world.ask(&world.user(), &Input::UploadResource(image.clone())).unwrap();
    }
    let size = |world: &World, text: &str| {
        world.root.resource_content(&Digest::of(text.as_bytes())).map(|content| content.size)
    };
    let all =
        |world: &World| ["one", "two", "base", "frame of one", "frame of two"].map(|text| size(world, text));
    assert_eq!(all(&world), [Some(100), Some(100), Some(60), Some(40), Some(40)]);
    let forget_all = |world: &mut World| {
        for text in ["frame of one", "frame of two", "base"] {
            world.work(WorkerCommand::ForgetResource(Digest::of(text.as_bytes())));
        }
    };
    forget_all(&mut world);
    assert_eq!(all(&world), [Some(100), Some(100), Some(60), Some(40), Some(40)], "images have all of them");
    world.work(WorkerCommand::ForgetResource(images[0].digest));
    forget_all(&mut world);
    assert_eq!(all(&world), [None, Some(100), Some(60), None, Some(40)], "the other image has the layer");
    world.work(WorkerCommand::ForgetResource(images[1].digest));
    forget_all(&mut world);
    assert_eq!(all(&world), [None; 5]);
}

#[test]
fn a_content_stays_as_it_is_stored_and_a_part_is_never_in_parts_itself() {
    let mut world = deployed(0);
    let ask = |world: &mut World, uploaded: &UploadedResource| {
        world.ask(&world.user(), &Input::UploadResource(uploaded.clone()))
    };
    let parts = |world: &World, digest: &Digest| world.root.resource_content(digest).unwrap().parts.clone();
    let (whole, image) = (upload(&mut world, "whole"), image_in_parts("whole", "base"));
    ask(&mut world, &image).unwrap();
    assert_eq!(parts(&world, &whole.digest), None);
    assert!(world.root.resource_content(&Digest::of(b"base")).is_none(), "nothing needs the parts");

    let image = image_in_parts("one", "base");
    ask(&mut world, &image).unwrap();
    ask(&mut world, &UploadedResource { image: None, parts: None, ..image.clone() }).unwrap();
    assert_eq!(parts(&world, &image.digest), image.parts);

    let refused = ask(&mut world, &image_in_parts("two", "one")).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TryAgain, "{refused}");
    let mut outside = image_in_parts("three", "base");
    outside.size = 79;
    assert_eq!(ask(&mut world, &outside).unwrap_err().code, ErrorCode::BadRequest);
    assert!(world.root.resource_content(&Digest::of(b"three")).is_none());
}
