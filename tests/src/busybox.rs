//! A busybox, of which tests make the images of their containers.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::ensure;

/// The exit code of `tools/busybox` where there is none.
const NO_BUSYBOX: i32 = 3;

/// Makes the root of an image in a directory, with all programs of busybox, or returns the reason why there is none.
///
/// # Errors
/// A file cannot be written, or the program found is no busybox.
pub fn busybox_root(root: &Path) -> anyhow::Result<Result<(), String>> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/busybox");
    let found = Command::new(tool).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&found.stderr).trim().to_owned();
    if found.status.code() == Some(NO_BUSYBOX) {
        return Ok(Err(said));
    }
    ensure!(found.status.success(), "{said}");
    let path = String::from_utf8(found.stdout)?;
    let busybox = path.trim();
    for name in ["bin", "etc", "srv"] {
        fs::create_dir_all(root.join(name))?;
    }
    let program = root.join("bin/busybox");
    fs::copy(busybox, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let applets = Command::new(busybox).arg("--list").output()?.stdout;
    for applet in String::from_utf8(applets)?.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    Ok(Ok(()))
}

/// Says that a test does nothing, and why.
///
/// # Errors
/// This is CI, where each test must do something.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
pub fn skipped(reason: &str) -> anyhow::Result<()> {
    ensure!(std::env::var_os("CI").is_none(), "no container can be made here: {reason}");
    eprintln!("SKIPPED: {reason}");
    Ok(())
}
