//! Images that are made to do harm, given by an operator's commands.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{EVIL, ImageFate, Installation, hostile_images};

use super::{APPLETS, Scene};

/// Returns what is below a directory and has [`EVIL`] in its name.
fn evil_below(directory: &Path) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_name().to_string_lossy().contains(EVIL) {
                found.push(path.display().to_string());
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    found
}

#[test]
fn a_hostile_image_is_one_error_and_nothing_of_it_is_written() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("probe", periapt.path())?;
    let mut given = Vec::new();
    for image in hostile_images(b"", &[]) {
        let ImageFate::Refused(expected) = image.fate else { continue };
        let file = format!("{}.tar", image.name);
        fs::write(periapt.path().join(&file), &image.archive)?;
        let resource = format!("image={file}");
        let error = periapt.refused(["deploy", "probe.charm", "--resource", &resource])?;
        ensure!(error.contains(expected) && error.contains("resource \"image\""), "{file}: {error}");
        given.push((resource, expected));
    }
    ensure!(given.len() > 20, "there are {} images", given.len());
    let status = periapt.json(["status"])?;
    ensure!(status["applications"].as_object().is_none_or(serde_json::Map::is_empty), "{status}");

    periapt.ok(["deploy", "probe.charm"])?;
    for (resource, expected) in &given {
        let error = periapt.refused(["attach-resource", "probe", resource])?;
        ensure!(error.contains(expected), "{resource}: {error}");
    }
    let shown = periapt.json(["resources", "probe"])?;
    let image = shown["resources"].as_array().into_iter().flatten().find(|shown| shown["name"] == "image");
    ensure!(image.is_none_or(|image| image["image"].is_null()), "{shown}");
    ensure!(evil_below(periapt.path()).is_empty(), "{:?}", evil_below(periapt.path()));
    ensure!(!Path::new("/tmp").join(EVIL).exists());
    Ok(())
}

#[test]
fn hostile_images_that_are_taken_have_no_devices_and_give_nobody_rights() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let program = fs::read(scene.periapt.path().join("root/bin/busybox"))?;
    scene.periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    let mut boot = scene.boot_id("")?;
    for image in hostile_images(&program, &APPLETS) {
        if image.fate != ImageFate::Harmless {
            continue;
        }
        let (name, file) = (image.name, format!("{}.tar", image.name));
        fs::write(scene.periapt.path().join(&file), &image.archive)?;
        scene.periapt.ok(["attach-resource", "probe", &format!("image={file}")])?;
        boot = scene.boot_id(&boot)?;
        let script = format!(
            "test -d /etc/{name} || exit 1; for f in /etc/{EVIL}-*; do \
             if test -b $f || test -c $f || test -p $f || test -u $f || test -g $f; then echo $f; fi; done"
        );
        let found = scene
            .periapt
            .ok(["exec", "-u", "probe/0", "--container", "web", "--", "sh", "-c", &script])
            .with_context(|| name.to_owned())?;
        ensure!(found.trim().is_empty(), "{name}: {found}");
        // On the disk of the host, too.
        for path in evil_below(&scene.periapt.path().join("worker")) {
            // The layers of an earlier image go meanwhile.
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let kind = metadata.file_type();
            // In the place of a device is a whiteout of overlays, which is a device of no driver.
            let is_whiteout = kind.is_char_device() && metadata.rdev() == 0;
            ensure!(
                kind.is_file() || kind.is_dir() || kind.is_symlink() || is_whiteout,
                "{name}: {path} is {kind:?}"
            );
            ensure!(metadata.permissions().mode() & 0o6000 == 0, "{name}: {path} gives rights");
            ensure!(path.contains("/images/layers/"), "{name}: {path} is no file of a layer");
        }
    }
    let outside = evil_below(scene.periapt.path());
    ensure!(outside.iter().all(|path| path.contains("/worker/images/layers/")), "{outside:?}");
    Ok(())
}
