//! Images that no container can be made of, as an operator gives them: one error each, which says all.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_host_api::Digest;
use periapt_image::{
    ImageLimits,
    testing::{CraftedImage, LayoutFiles, file, image, layer, members, own_architecture, tar},
};
use periapt_tests::Installation;
use serde_json::{Value, json};

/// Returns an image of one layer, in which nothing is wrong.
fn usable() -> CraftedImage {
    image(&[layer(&[file("a", "x")])])
}

/// Returns the digest of the configuration.
fn configuration(of: &CraftedImage) -> Digest {
    Digest::of(of.configuration.to_string().as_bytes())
}

/// Returns the digest of the layer, which is not compressed.
fn only_layer(of: &CraftedImage) -> anyhow::Result<Digest> {
    Ok(of.layers.first().context("a layer")?.diff_id)
}

/// Returns the files without the blob of a digest.
fn without(mut files: LayoutFiles, digest: Digest) -> LayoutFiles {
    files.retain(|(name, _)| !name.ends_with(&digest.to_string()));
    files
}

/// Changes one byte of the blob of a digest, and returns the digest that it has then.
fn damaged(files: &mut LayoutFiles, digest: Digest) -> anyhow::Result<Digest> {
    let blob = files.iter_mut().find(|(name, _)| name.ends_with(&digest.to_string()));
    let (_, content) = blob.context("a blob")?;
    let byte = content.iter_mut().find(|byte| **byte == b'x').context("a byte")?;
    *byte = b'y';
    Ok(Digest::of(content))
}

/// Returns the image with a part of its manifest changed.
fn with_manifest(part: &str, value: Value) -> anyhow::Result<LayoutFiles> {
    let made = usable();
    let mut manifest = made.manifest();
    *manifest.pointer_mut(part).with_context(|| part.to_owned())? = value;
    Ok(made.files_with(&manifest))
}

/// Returns a part of an image's configuration.
fn configured<'a>(image: &'a mut CraftedImage, part: &str) -> anyhow::Result<&'a mut Value> {
    image.configuration.pointer_mut(part).with_context(|| part.to_owned())
}

/// Returns the files of images, each with its name and the error after the name of its file.
fn unusable() -> anyhow::Result<Vec<(&'static str, LayoutFiles, String)>> {
    let own = format!("linux/{}", own_architecture());
    let (made, most) = (usable(), ImageLimits::default().layer);
    let (layer, config) = (only_layer(&made)?, configuration(&made));
    let mut foreign = usable();
    *configured(&mut foreign, "/architecture")? = json!("riscv64");
    let mut other = usable();
    let zeros = "0".repeat(64);
    *configured(&mut other, "/rootfs/diff_ids")? = json!([format!("sha256:{zeros}")]);
    let mut bad_layer = made.files();
    let layer_has = damaged(&mut bad_layer, layer)?;
    let mut bad_config = made.files();
    let config_has = damaged(&mut bad_config, config)?;
    let media_type = |part: &str, value: &str| with_manifest(&format!("/{part}/mediaType"), json!(value));
    Ok(vec![
        ("architecture", foreign.files(), format!("the image is for linux/riscv64, and {own} is wanted")),
        ("no-configuration", without(made.files(), config), format!("configuration sha256:{config}: it is missing")),
        (
            "configuration-kind",
            media_type("config", "application/vnd.oci.empty.v1+json")?,
            "the configuration is of the media type application/vnd.oci.empty.v1+json: the image has no configuration of \
             OCI or Docker: it is something else in an image's form"
                .to_owned(),
        ),
        (
            "damaged-configuration",
            bad_config,
            format!("configuration sha256:{config}: its bytes have the digest sha256:{config_has}"),
        ),
        ("no-layer", without(made.files(), layer), format!("layer sha256:{layer}: it is missing")),
        (
            "damaged-layer",
            bad_layer,
            format!("layer 1 (sha256:{layer}): its bytes have the digest sha256:{layer_has}"),
        ),
        (
            "large-layer",
            with_manifest("/layers/0/size", json!(most + 1))?,
            format!("layer sha256:{layer}: it has {} bytes, and a layer may have {most}", most + 1),
        ),
        (
            "longer-layer",
            with_manifest("/layers/0/size", json!(999))?,
            format!("layer 1 (sha256:{layer}): it has more than the 999 bytes of its descriptor"),
        ),
        (
            "layer-kind",
            media_type("layers/0", "application/vnd.example.thing")?,
            "layer 1 is of the media type application/vnd.example.thing: layers of tar, tar+gzip and tar+zstd are read"
                .to_owned(),
        ),
        (
            "layer-elsewhere",
            media_type("layers/0", "application/vnd.oci.image.layer.nondistributable.v1.tar")?,
            "layer 1 is of the media type application/vnd.oci.image.layer.nondistributable.v1.tar: such layers are \
             fetched from elsewhere, which is not done here"
                .to_owned(),
        ),
        (
            "another-layer",
            other.files(),
            format!("layer 1 (sha256:{zeros}): it unpacks to another layer, sha256:{layer}"),
        ),
        (
            "another-digest",
            with_manifest("/layers/0/digest", json!(format!("sha256:{zeros}")))?,
            format!("layer sha256:{zeros}: it is missing"),
        ),
    ])
}

#[test]
fn an_image_that_cannot_be_used_is_one_whole_error_and_nothing_is_deployed_or_attached() -> anyhow::Result<()>
{
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("probe", periapt.path())?;
    let unusable = unusable()?;
    let mut lines = Vec::new();
    for (name, files, reason) in &unusable {
        let archive = format!("{name}.tar");
        fs::write(periapt.path().join(&archive), tar(&members(files)))?;
        let error = periapt.refused(["deploy", "probe.charm", "--resource", &format!("image={archive}")])?;
        ensure!(error == format!("ERROR resource \"image\": {archive}: {reason}\n"), "{name}: {error}");
        // Without a controller, the same.
        let shown = periapt.refused(["image", "show", &archive])?;
        ensure!(shown == format!("ERROR {archive}: {reason}\n"), "{name}: {shown}");
        lines.push((archive, reason));
    }
    let status = periapt.json(["status"])?;
    ensure!(status["applications"].as_object().is_none_or(serde_json::Map::is_empty), "{status}");
    // The same image as all of these, with nothing wrong in it.
    fs::write(periapt.path().join("usable.tar"), tar(&members(&usable().files())))?;
    periapt.ok(["deploy", "probe.charm", "--resource", "image=usable.tar"])?;
    for (archive, reason) in lines {
        let error = periapt.refused(["attach-resource", "probe", &format!("image={archive}")])?;
        ensure!(error == format!("ERROR resource \"image\": {archive}: {reason}\n"), "{error}");
    }
    let shown = periapt.json(["resources", "probe"])?;
    let image = shown["resources"].as_array().into_iter().flatten().find(|shown| shown["name"] == "image");
    ensure!(image.is_some_and(|image| image["revision"] == "1"), "{shown}");
    Ok(())
}
