//! The memory that reading and unpacking an image take. The only test of its binary, so that no other test's memory counts.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
};

use periapt_image::{
    ImageChoice, ImageLimits, ImagePlatform, ImageRecipe, ImageSettings, ImageSource, LayerCache, pack_image,
};
use tempfile::TempDir;

/// Returns the most memory that this process has had since [`forget_peak`], in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn forget_peak() {
    fs::File::options().write(true).open("/proc/self/clear_refs").unwrap().write_all(b"5").unwrap();
}

/// Returns the growth of peak memory during some work, in bytes.
fn grows_by(work: impl FnOnce()) -> u64 {
    forget_peak();
    let before = peak();
    work();
    peak() - before
}

/// Writes a large file that compresses to a third.
fn write_large(path: &Path) {
    let mut file = io::BufWriter::new(fs::File::create(path).unwrap());
    let mut source = fs::File::open("/dev/urandom").unwrap();
    for _ in 0..48 {
        let mut piece = vec![0; 3 << 20];
        source.read_exact(piece.get_mut(..1 << 20).unwrap()).unwrap();
        file.write_all(&piece).unwrap();
    }
    file.flush().unwrap();
}

#[test]
fn an_image_is_made_read_and_unpacked_without_being_held() {
    let most = 24 << 20;
    let work = TempDir::new().unwrap();
    let (tree, file) = (work.path().join("tree"), work.path().join("image.tar"));
    fs::create_dir(&tree).unwrap();
    write_large(&tree.join("large"));
    let recipe = ImageRecipe {
        directory: tree,
        settings: ImageSettings::default(),
        platform: ImagePlatform::of_this_host(),
        reference: None,
    };
    let limits = ImageLimits::default();
    let grown = grows_by(|| drop(pack_image(&recipe, &file, &limits).unwrap()));
    assert!(grown < most, "making takes {grown} bytes");
    let grown = grows_by(|| {
        let file = ImageSource::open(&file, &limits).unwrap();
        let image = file.choose(&ImageChoice::default()).unwrap();
        let cache = LayerCache::open(&work.path().join("cache")).unwrap();
        let unpacked = cache.unpack(&file, &image).unwrap();
        unpacked.assemble(&work.path().join("root")).unwrap();
    });
    assert!(grown < most, "unpacking takes {grown} bytes");
    assert_eq!(fs::metadata(work.path().join("root/large")).unwrap().len(), 144 << 20);
}
