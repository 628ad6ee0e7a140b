//! Images that share layers, from an operator's files to the blobs of controllers.

use std::{collections::BTreeMap, fs, path::Path};

use periapt_image::testing::{directory, file, image, layer, members, tar};
use periapt_tests::Installation;

/// The bytes of the file in the layer that all images have.
const BASE: usize = 3 << 20;

/// Writes `NAME.tar`, the archive of an image with the common layer and one of its own.
fn write_image(periapt: &Installation, name: &str) -> anyhow::Result<()> {
    let base = layer(&[directory("bin/"), file("bin/base", vec![7; BASE])]);
    let top = layer(&[file("own", name.repeat(9_000))]);
    let archive = tar(&members(&image(&[base, top]).files()));
    Ok(fs::write(periapt.path().join(format!("{name}.tar")), archive)?)
}

/// Returns the sizes of a controller's blobs of resources, by their names.
fn blobs(periapt: &Installation, controller: &str) -> anyhow::Result<BTreeMap<String, u64>> {
    fn found(directory: &Path, blobs: &mut BTreeMap<String, u64>) -> anyhow::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => found(&entry.path(), blobs)?,
                false => {
                    blobs.insert(entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len());
                }
            }
        }
        Ok(())
    }
    let mut blobs = BTreeMap::new();
    let of = format!("data/controllers/{controller}/controller/blobs/resources");
    found(&periapt.path().join(of), &mut blobs)?;
    Ok(blobs)
}

#[test]
fn the_next_image_takes_the_room_and_the_upload_of_its_own_layers() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    for name in ["one", "two"] {
        write_image(&periapt, name)?;
    }
    periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    let before = blobs(&periapt, "local")?;
    assert_eq!(before.len(), 3, "two layers, and what is around them: {before:?}");
    let attached = periapt.run(["attach-resource", "probe", "image=two.tar", "--debug"])?;
    assert_eq!(attached.code, Some(0), "{attached:?}");
    assert!(attached.stderr.contains("the controller has these layers of the image"), "{attached:?}");
    assert!(!attached.stderr.contains("the whole image is uploaded"), "{attached:?}");
    let after = blobs(&periapt, "local")?;
    assert!(before.keys().all(|name| after.contains_key(name)), "{after:?}");
    let grown = after.values().sum::<u64>() - before.values().sum::<u64>();
    assert!(grown > 0 && grown < BASE as u64 / 2, "{grown}");

    let again = periapt.run(["attach-resource", "probe", "image=one.tar", "--debug"])?;
    assert!(again.stderr.contains("the controller has this content"), "{again:?}");
    assert_eq!(blobs(&periapt, "local")?, after);
    Ok(())
}

#[test]
fn a_model_takes_all_layers_of_its_images_to_another_controller() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for name in ["other", "local"] {
        periapt.ok(["bootstrap", name, "--no-agent"])?;
    }
    let mut agent = periapt.agent("first", [])?;
    assert_eq!(agent.first_line()?, "ready first");
    periapt.ok(["add-model", "test"])?;
    for name in ["one", "two"] {
        write_image(&periapt, name)?;
    }
    periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    periapt.ok(["attach-resource", "probe", "image=two.tar"])?;
    periapt.wait_for(["application", "probe"])?;
    let here = blobs(&periapt, "local")?;
    assert_eq!(here.len(), 5, "{here:?}");
    let done = periapt.run(["migrate", "test", "other"])?;
    assert_eq!(done.code, Some(0), "{done:?}\n{}", periapt.logs());
    assert_eq!(blobs(&periapt, "other")?, here);
    let former = periapt.run(["attach-resource", "-m", "other:test", "probe", "image=1"])?;
    assert!(former.stderr.contains("as revision 3"), "{former:?}");
    Ok(())
}
