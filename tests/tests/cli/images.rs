//! `image`: images of containers, without a controller.

use std::{fs, os::unix::fs::symlink};

use anyhow::ensure;
use periapt_tests::Installation;
use serde_json::{Value, json};

#[test]
fn an_image_is_made_of_a_directory_and_shown() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let root = periapt.path().join("web");
    fs::create_dir_all(root.join("bin"))?;
    fs::write(root.join("bin/web"), "program")?;
    symlink("bin/web", root.join("web"))?;
    let pack = ["image", "pack", "web", "--entrypoint", "/bin/web", "--entrypoint=--quiet", "--env", "A=1"];
    let done = periapt.run(pack)?;
    ensure!(done.code == Some(0) && done.stderr.starts_with("Packed web.tar ("), "{done:?}");
    periapt.ok(pack.iter().chain(&["--output", "again.tar"]))?;
    let bytes = fs::read(periapt.path().join("web.tar"))?;
    ensure!(bytes == fs::read(periapt.path().join("again.tar"))?, "the same directory gives other bytes");
    let shown: Value = serde_json::from_str(&periapt.ok(["image", "show", "web.tar", "--format", "json"])?)?;
    assert_eq!(shown.pointer("/settings/entrypoint"), Some(&json!(["/bin/web", "--quiet"])));
    assert_eq!(shown.pointer("/content/files"), Some(&json!(1)));
    assert_eq!(shown.pointer("/content/links"), Some(&json!(1)));
    assert_eq!(shown.pointer("/layers/0/form"), Some(&json!("tar+gzip")));
    Ok(())
}

#[test]
fn what_is_no_image_and_what_none_can_be_made_of_is_one_error() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    fs::create_dir(periapt.path().join("web"))?;
    fs::write(periapt.path().join("text"), "no image")?;
    for (line, expected) in [
        ("image show text", "text: this is no image: "),
        ("image pack web --env A", "KEY=VALUE"),
        (
            "image pack web --architecture x86-64",
            "the platform linux/x86-64 is none of linux, such as linux/amd64",
        ),
        ("image pack web --output web/web.tar", "write it outside of the directory"),
    ] {
        let error = periapt.refused(line.split(' '))?;
        ensure!(error.contains(expected), "{line}: {error}");
    }
    // A word that cannot be read is a mistake of usage.
    let done = periapt.run(["image", "pack", "web", "--label", "A"])?;
    ensure!(
        done.code == Some(2) && done.stderr.contains("expected NAME=VALUE as a label, got \"A\""),
        "{done:?}"
    );
    ensure!(fs::read_dir(periapt.path().join("web"))?.count() == 0, "a file was left");
    periapt.ok(["image", "pack", "web", "--architecture", "riscv64"])?;
    let error = periapt.refused(["image", "show", "web.tar", "--architecture", "s390x"])?;
    ensure!(error.contains("the image is for linux/riscv64, and linux/s390x is wanted"), "{error}");
    Ok(())
}
