//! Guests that attack the storage of the test's unit, of 64 blocks and 32 files, at `/srv/data`.

use periapt_sdk::{Context, Error, Result, Unit};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

/// The storage's directory. The guest writes nowhere else.
const PLACE: &str = "/srv/data";

/// A size above that of the storage, in bytes.
const TOO_MUCH: u64 = 1 << 20;

/// Writes until the host refuses.
pub(crate) fn storage_flood(_: &Unit) -> Result {
    let mut file = File::create(format!("{PLACE}/flood")).context("creating a file")?;
    let block = vec![0x5a_u8; 4096];
    for _ in 0..TOO_MUCH / 4096 {
        if file.write_all(&block).is_err() {
            return Ok(());
        }
    }
    Err(Error::new("escaped: wrote more than the storage holds"))
}

/// Makes sparse files, by a length and by writes far behind the end.
pub(crate) fn storage_sparse(_: &Unit) -> Result {
    let mut file = File::create(format!("{PLACE}/sparse")).context("creating a file")?;
    for length in [TOO_MUCH, 1 << 40, i64::MAX as u64, u64::MAX] {
        if file.set_len(length).is_ok() {
            return Err(Error::new(format!("escaped: has a file of {length} bytes")));
        }
    }
    for place in [TOO_MUCH, 1 << 40, i64::MAX as u64 - 1] {
        let written = file.seek(SeekFrom::Start(place)).and_then(|_| file.write_all(b"x"));
        if written.is_ok() {
            return Err(Error::new(format!("escaped: wrote at {place}")));
        }
    }
    Ok(())
}

/// Creates many empty files, and renames them meanwhile.
pub(crate) fn storage_files(_: &Unit) -> Result {
    for number in 0..10_000 {
        let name = format!("{PLACE}/{number}");
        if File::create(&name).is_err() {
            return Ok(());
        }
        // A rename onto another file frees one; a rename to a new name frees nothing.
        fs::rename(&name, format!("{PLACE}/{number}-moved")).context("renaming")?;
    }
    Err(Error::new("escaped: made 10000 files"))
}

/// Creates nested directories.
pub(crate) fn storage_deep(_: &Unit) -> Result {
    let mut here = PathBuf::from(PLACE);
    for _ in 0..10_000 {
        here.push("d");
        if fs::create_dir(&here).is_err() {
            return Ok(());
        }
    }
    Err(Error::new("escaped: made 10000 directories"))
}

/// Keeps deleted files open. They must count, as they exist as long as they are open.
pub(crate) fn storage_unnamed(_: &Unit) -> Result {
    let name = format!("{PLACE}/unnamed");
    let mut held = Vec::new();
    for _ in 0..10_000 {
        let Ok(mut file) = File::create(&name) else { return Ok(()) };
        if file.write_all(&[7; 4096]).is_err() {
            return Ok(());
        }
        fs::remove_file(&name).context("removing")?;
        held.push(file);
    }
    Err(Error::new("escaped: holds 10000 files without a name"))
}

/// Syncs a file to disk again and again. The hook uses no CPU, but delays all users of the disk.
pub(crate) fn storage_sync(_: &Unit) -> Result {
    let file = File::create(format!("{PLACE}/sync")).context("creating a file")?;
    loop {
        file.sync_all().context("bringing a file to the disk")?;
    }
}

/// A number of listings of a thousand long names that no hook of 8 MiB may hold.
#[cfg(target_arch = "wasm32")]
const TOO_MANY_LISTINGS: usize = 40;

/// Lists one large directory again and again and keeps all listings, which take the host's memory. Closing them must
/// free the memory.
#[cfg(target_arch = "wasm32")]
pub(crate) fn storage_listings(_: &Unit) -> Result {
    for number in 0..1_000 {
        File::create(format!("{PLACE}/{number:0>200}")).context("creating a file")?;
    }
    let directory = storage()?;
    let mut held = Vec::new();
    while let Ok(listing) = directory.read_directory() {
        held.push(listing);
        if held.len() >= TOO_MANY_LISTINGS {
            return Err(Error::new(format!("escaped: holds {TOO_MANY_LISTINGS} large listings")));
        }
    }
    drop(held);
    match directory.read_directory() {
        Ok(_) => Ok(()),
        Err(code) => Err(Error::new(format!("closed listings were not given back: {code:?}"))),
    }
}

/// Writes zero bytes far behind the end. They must not count as size.
#[cfg(target_arch = "wasm32")]
pub(crate) fn storage_nothing(_: &Unit) -> Result {
    use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};
    let file = storage()?
        .open_at(PathFlags::empty(), "nothing", OpenFlags::CREATE, DescriptorFlags::WRITE)
        .map_err(|code| Error::new(format!("creating a file: {code:?}")))?;
    for _ in 0..100 {
        file.write(&[], TOO_MUCH / 8).map_err(|code| Error::new(format!("writing nothing: {code:?}")))?;
    }
    Ok(())
}

/// Returns WASI's descriptor of the storage.
#[cfg(target_arch = "wasm32")]
fn storage() -> Result<wasip2::filesystem::types::Descriptor> {
    let found = wasip2::filesystem::preopens::get_directories().into_iter().find(|(_, path)| path == PLACE);
    found.map(|(directory, _)| directory).ok_or_else(|| Error::new(format!("no {PLACE}")))
}

/// Returns at once: native code has no WASI handles.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn storage_listings(_: &Unit) -> Result {
    Ok(())
}

/// Returns at once: native code has no WASI host.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn storage_nothing(_: &Unit) -> Result {
    Ok(())
}

/// Looks for a way out by names, by existing links, and by links that it makes.
pub(crate) fn storage_wander(_: &Unit) -> Result {
    for path in ["..", "../secret", "../../etc/passwd", "link-to-secret", "link-out/secret", "./../secret"] {
        let path = format!("{PLACE}/{path}");
        if fs::read(&path).is_ok() || fs::write(&path, "x").is_ok() {
            return Err(Error::new(format!("escaped: {path}")));
        }
    }
    fs::write(format!("{PLACE}/own"), "own").context("writing")?;
    if fs::hard_link(format!("{PLACE}/own"), format!("{PLACE}/second")).is_ok() {
        return Err(Error::new("escaped: made a link"));
    }
    if fs::rename(format!("{PLACE}/own"), "/tmp/own").is_ok()
        || fs::rename(format!("{PLACE}/own"), format!("{PLACE}/../own")).is_ok()
    {
        return Err(Error::new("escaped: moved a file out"));
    }
    for entry in fs::read_dir(PLACE).context("listing")? {
        let entry = entry.context("listing")?;
        if entry.file_name() != "own" {
            return Err(Error::new(format!("escaped: {:?} is to be seen", entry.file_name())));
        }
    }
    Ok(())
}
