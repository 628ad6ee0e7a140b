//! Files with images: their forms, the choice of an image, and documents that are refused.

use std::{fs, os::unix::fs::symlink};

use periapt_host_api::{
    Digest,
    resource::{MAX_ARCHIVE_LAYERS, check_layers},
};
use periapt_image::{ImageChoice, ImageLimits, ImageSource, ImageSourceForm, LayerForm};
use serde_json::json;

use crate::made::{
    Files, INDEX, MANIFEST, Made, chosen, descriptor, directory, file, files_of, gzip, gzip_layer, hard_link,
    image, inspected, layer, link, members, own_architecture, raw_layer, tar, work, zstd_layer,
};

fn web() -> Made {
    let lower = tar(&[directory("bin/"), file("bin/web", "program")]);
    let upper = tar(&[file("etc", "settings")]);
    image(&[gzip_layer(&lower), zstd_layer(&upper), layer(&[file("last", "3")])])
}

/// Returns the error of choosing and reading the image of a layout.
fn refused(files: &Files) -> String {
    let error = inspected(files, &ImageLimits::default()).unwrap_err();
    assert!(!error.is_of_host(), "{error}");
    error.to_string()
}

#[test]
fn one_image_is_the_same_in_each_form() {
    let (made, limits) = (web(), ImageLimits::default());
    let mut seen = Vec::new();
    for form in ["layout", "archive", "docker"] {
        let work = work();
        let path = match form {
            "layout" => work.layout(&made.files()),
            "archive" => work.archive(&members(&made.files())),
            _ => work.archive(&made.docker("example/web:1")),
        };
        let (file, image) = chosen(&path, &limits).unwrap();
        let expected = if form == "docker" { ImageSourceForm::Docker } else { ImageSourceForm::Layout };
        assert_eq!(file.form(), expected);
        assert_eq!(image.settings.entrypoint, ["/bin/web"]);
        assert_eq!(image.settings.working_directory, "/srv");
        let forms: Vec<_> = image.layers.iter().map(|layer| layer.form).collect();
        assert_eq!(forms, [LayerForm::Gzip, LayerForm::Zstd, LayerForm::Tar]);
        seen.push(file.inspect(&image).unwrap().merged);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[0].entries.keys().collect::<Vec<_>>(), ["", "bin", "bin/web", "etc", "last"]);
}

#[test]
fn layers_that_docker_wrote_once_are_found_by_their_links() {
    let made = image(&[layer(&[file("a", "1")]), layer(&[file("a", "1")])]);
    let mut entries = made.docker("web:1");
    for (member, with) in [
        ("1/layer.tar", link("1/layer.tar", "../0/layer.tar")),
        ("1/layer.tar", hard_link("1/layer.tar", "0/layer.tar")),
    ] {
        let at = entries.iter().position(|entry| entry.path == member.as_bytes()).unwrap();
        entries[at] = with;
        let work = work();
        let (file, image) = chosen(&work.archive(&entries), &ImageLimits::default()).unwrap();
        assert_eq!(file.inspect(&image).unwrap().layers.len(), 2);
    }
    entries.retain(|entry| entry.path != b"1/layer.tar");
    for target in ["1/layer.tar", "../1/layer.tar", "../../etc/passwd", "/etc/passwd"] {
        let mut entries = entries.clone();
        entries.push(link("1/layer.tar", target));
        let work = work();
        let error = chosen(&work.archive(&entries), &ImageLimits::default()).unwrap_err();
        assert!(!error.is_of_host(), "{target}: {error}");
    }
}

#[test]
fn an_image_is_chosen_by_platform_and_name() {
    let limits = ImageLimits::default();
    let other = if own_architecture() == "amd64" { "arm64" } else { "amd64" };
    let platform = |architecture: &str| Some(json!({ "os": "linux", "architecture": architecture }));
    let (mut own, mut foreign, mut second) = (web(), web(), image(&[]));
    (own.platform, own.reference) = (platform(own_architecture()), None);
    (foreign.platform, foreign.reference) = (platform(other), None);
    foreign.configuration["architecture"] = json!(other);
    second.reference = Some("second".into());
    let manifests: Vec<Vec<u8>> =
        [&own, &foreign, &second].map(|made| made.manifest().to_string().into_bytes()).to_vec();
    // As builders write it: an index of platforms with an attestation, within the layout's own.
    let attestation = {
        let mut described = descriptor(MANIFEST, b"{}");
        described["platform"] = json!({ "os": "unknown", "architecture": "unknown" });
        described
    };
    let inner = json!({
        "schemaVersion": 2,
        "manifests": [foreign.described(&manifests[1]), attestation, own.described(&manifests[0])],
    });
    let inner = inner.to_string().into_bytes();
    let mut described = descriptor(INDEX, &inner);
    described["annotations"] = json!({ "org.opencontainers.image.ref.name": "first" });
    let mut files = files_of(&[described.clone(), second.described(&manifests[2])]);
    for content in manifests.iter().chain([&inner]) {
        files.push((format!("blobs/sha256/{}", Digest::of(content)), content.clone()));
    }
    files.extend([&own, &foreign, &second].into_iter().flat_map(Made::blobs));
    let work = work();
    let open = ImageSource::open(&work.layout(&files), &limits).unwrap();
    assert_eq!(open.references().into_iter().collect::<Vec<_>>(), ["first", "second"]);
    let choose = |reference: Option<&str>, architecture: &str| {
        let mut choice = ImageChoice { reference: reference.map(Into::into), ..ImageChoice::default() };
        choice.platform.architecture = architecture.into();
        open.choose(&choice)
    };
    assert_eq!(choose(Some("first"), own_architecture()).unwrap().digest, Digest::of(&manifests[0]));
    assert_eq!(choose(Some("first"), other).unwrap().digest, Digest::of(&manifests[1]));
    assert_eq!(choose(Some("second"), own_architecture()).unwrap().digest, Digest::of(&manifests[2]));
    let error = |reference, architecture| choose(reference, architecture).unwrap_err().to_string();
    assert_eq!(
        error(Some("second"), "riscv64"),
        format!("the image is for linux/{}, and linux/riscv64 is wanted", own_architecture())
    );
    assert_eq!(error(Some("third"), "amd64"), "the file has no image third; it has: first, second");
    let several = error(None, own_architecture());
    assert!(several.ends_with("and one must be named: first, second"), "{several}");
}

#[test]
fn what_is_no_image_is_refused_with_what_one_is() {
    let limits = ImageLimits::default();
    let of = |bytes: &[u8]| {
        let work = work();
        fs::write(work.path("x"), bytes).unwrap();
        ImageSource::open(&work.path("x"), &limits).unwrap_err().to_string()
    };
    let no_image = "this is no image: ";
    assert!(of(b"").starts_with(&format!("{no_image}it has neither oci-layout nor manifest.json")));
    assert!(of(&tar(&[file("a", "b")])).starts_with(&format!("{no_image}it has neither")));
    assert!(of(&[b'x'; 2000]).contains("wrong checksum: it is no tar"), "{}", of(&[b'x'; 2000]));
    assert!(of(b"short").contains("ends within a header"));
    assert!(of(&gzip(&tar(&[]))).ends_with("unpack it with gunzip first"));
    assert!(of(&tar(&[file("oci-layout", "{}")])).starts_with("oci-layout: missing field"));
    let version = tar(&[file("oci-layout", r#"{"imageLayoutVersion":"2.0.0"}"#)]);
    assert_eq!(of(&version), "oci-layout: version 2.0.0 is not read here, 1.0.0 is");
    let layout = file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    assert_eq!(
        of(&tar(std::slice::from_ref(&layout))),
        "this is no image: it has oci-layout and no index.json"
    );
    assert!(of(&tar(&[layout.clone(), layout])).ends_with("oci-layout: it is in the archive twice"));
    let missing = ImageSource::open(&work().path("x"), &limits).unwrap_err();
    assert!(missing.is_of_host(), "{missing}");
    assert!(
        ImageSource::open("/dev/null".as_ref(), &limits).unwrap_err().to_string().contains("neither a file")
    );
}

#[test]
fn blobs_that_are_links_missing_or_damaged_are_refused() {
    let made = web();
    let files = made.files();
    for (index, part) in [(2, "manifest"), (3, "configuration"), (4, "layer"), (5, "layer"), (6, "layer")] {
        let (name, content) = &files[index];
        let digest = name.strip_prefix("blobs/sha256/").unwrap();
        let without: Files = files.iter().filter(|(other, _)| other != name).cloned().collect();
        assert_eq!(refused(&without), format!("{part} sha256:{digest}: it is missing"));
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut files = files.clone();
            change(&mut files[index].1);
            refused(&files)
        };
        let longer = with(&|content| content.push(b' '));
        assert!(
            longer.ends_with(&format!("it has more than the {} bytes of its descriptor", content.len())),
            "{longer}"
        );
        let shorter = with(&|content| content.truncate(content.len() - 1));
        assert!(!shorter.is_empty());
        let flipped = with(&|content| {
            let middle = content.len() / 2;
            content[middle] ^= 1;
        });
        assert!(!flipped.is_empty());
    }
    let work = work();
    let layout = work.layout(&files);
    let blob = layout.join(&files[4].0);
    fs::rename(&blob, work.path("elsewhere")).unwrap();
    symlink(work.path("elsewhere"), &blob).unwrap();
    let (file, image) = chosen(&layout, &ImageLimits::default()).unwrap();
    let error = file.inspect(&image).unwrap_err().to_string();
    assert!(error.ends_with("is a link, and links are not followed"), "{error}");
    fs::remove_file(&blob).unwrap();
    fs::create_dir(&blob).unwrap();
    assert!(file.inspect(&image).unwrap_err().to_string().ends_with("is no file"));
}

#[test]
fn a_layer_that_unpacks_to_another_one_is_refused() {
    let mut made = web();
    made.configuration["rootfs"]["diff_ids"][1] = json!(format!("sha256:{}", Digest::of(b"other")));
    assert!(refused(&made.files()).contains("it unpacks to another layer, sha256:"));
    made.configuration["rootfs"]["diff_ids"] = json!([]);
    assert!(refused(&made.files()).ends_with("it has 3 layers, and its configuration 0"));
}

#[test]
fn what_is_of_another_kind_is_refused_by_its_name() {
    let with = |media_type: &str| {
        let mut made = web();
        made.layers[1].media_type = media_type.into();
        refused(&made.files())
    };
    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    assert_eq!(
        with(foreign),
        format!(
            "layer 2 is of the media type {foreign}: such layers are fetched from elsewhere, which is not done here"
        )
    );
    let own = "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd";
    assert!(with(own).starts_with(&format!("layer 2 is of the media type {own}: ")));
    let unknown = "application/vnd.oci.image.layer.v1.tar+encrypted";
    assert!(with(unknown).ends_with("layers of tar, tar+gzip and tar+zstd are read"));
    // A layer that claims another compression than it has.
    assert!(with("application/vnd.oci.image.layer.v1.tar+gzip").starts_with("layer 2 (sha256:"));

    let made = web();
    let mut manifest = made.manifest();
    manifest["config"]["mediaType"] = json!("application/vnd.oci.empty.v1+json");
    assert!(refused(&made.files_with(&manifest)).contains("the image has no configuration of OCI or Docker"));
    let mut manifest = made.manifest();
    manifest["mediaType"] = json!(INDEX);
    assert!(
        refused(&made.files_with(&manifest))
            .ends_with(&format!("it calls itself {INDEX}, and is a manifest"))
    );
    let mut manifest = made.manifest();
    manifest["schemaVersion"] = json!(1);
    assert!(refused(&made.files_with(&manifest)).ends_with("its schema is 1, not 2"));
    let mut manifest = made.manifest();
    manifest["layers"][0]["digest"] = json!(format!("sha512:{}", "0".repeat(128)));
    assert!(
        refused(&made.files_with(&manifest))
            .starts_with("digest: only sha256 is read, and this is sha512:000")
    );
    let files = files_of(&[descriptor("application/vnd.example", b"x")]);
    assert!(
        refused(&files).starts_with("all that the index names is of the media type application/vnd.example")
    );
}

#[test]
fn configurations_with_texts_that_no_process_can_have_are_refused() {
    for (key, value, reason) in [
        ("Env", json!(["PATH"]), "its environment has an entry that is not KEY=VALUE"),
        ("Env", json!(["A=\0"]), "its environment has a byte of value 0"),
        ("Cmd", json!(["\0"]), "its command has a byte of value 0"),
        ("WorkingDir", json!("/\0"), "its working directory or user has a byte of value 0"),
        ("Entrypoint", json!(vec!["x"; 5000]), "its entrypoint has more than 4096 entries"),
    ] {
        let mut made = web();
        made.configuration["config"][key] = value;
        assert_eq!(refused(&made.files()), format!("configuration: {reason}"));
    }
    let mut made = web();
    made.configuration["rootfs"]["type"] = json!("windows");
    assert!(refused(&made.files()).ends_with("its root is of the kind windows, not layers"));
}

#[test]
fn documents_and_layers_above_their_bounds_are_refused_before_they_are_read() {
    let made = web();
    let mut manifest = made.manifest();
    manifest["config"]["size"] = json!(5 << 20);
    assert!(refused(&made.files_with(&manifest)).contains("it has 5242880 bytes, and may have 4 MiB"));
    let mut manifest = made.manifest();
    manifest["layers"][0]["size"] = json!(5_u64 << 30);
    assert!(refused(&made.files_with(&manifest)).contains("and a layer may have 4294967296"));
    let mut manifest = made.manifest();
    for layer in 0..3 {
        manifest["layers"][layer]["size"] = json!(3_u64 << 30);
    }
    assert!(refused(&made.files_with(&manifest)).starts_with("the layers: they have 9663676416 bytes"));
    let many = image(&vec![layer(&[]); 128]);
    assert_eq!(refused(&many.files()), "the layers: there are 128, and may be 127");
    let mut files = made.files();
    files[1].1.resize(5 << 20, b' ');
    assert!(refused(&files).starts_with("index.json: it has 5242880 bytes"));
    // An index within an index within an index within an index.
    let mut files = made.files();
    let mut described = made.described(made.manifest().to_string().as_bytes());
    for _ in 0..3 {
        let index = json!({ "schemaVersion": 2, "manifests": [described] }).to_string().into_bytes();
        described = descriptor(INDEX, &index);
        files.push((format!("blobs/sha256/{}", Digest::of(&index)), index));
    }
    files[1] = files_of(&[described]).remove(1);
    assert_eq!(refused(&files), "index: it is the fourth index within another");
}

#[test]
fn an_index_that_names_another_one_again_and_again_is_refused() {
    let empty = json!({ "schemaVersion": 2, "manifests": [] }).to_string().into_bytes();
    let mut files = files_of(&vec![descriptor(INDEX, &empty); 257]);
    files.push((format!("blobs/sha256/{}", Digest::of(&empty)), empty));
    assert_eq!(refused(&files), "the file has more than 256 indexes");
}

#[test]
fn an_image_for_many_other_platforms_is_refused_with_a_few_of_them() {
    let made = web();
    let manifest = made.manifest().to_string().into_bytes();
    let described = |number: u32| {
        let mut described = descriptor(MANIFEST, &manifest);
        described["platform"] = json!({ "os": "linux", "architecture": format!("other{number:02}") });
        described
    };
    let error = refused(&files_of(&(10..90).map(described).collect::<Vec<_>>()));
    assert!(error.starts_with("the image is for linux/other10, linux/other11, "), "{error}");
    assert!(error.contains("linux/other17, and linux/") && !error.contains("other18"), "{error}");
}

#[test]
fn an_index_that_names_itself_is_refused() {
    // No index can have its own digest, so that its blob never matches.
    let described = descriptor(INDEX, b"itself");
    let index = json!({ "schemaVersion": 2, "manifests": [described] }).to_string().into_bytes();
    let mut files = files_of(std::slice::from_ref(&described));
    files.push((format!("blobs/sha256/{}", Digest::of(b"itself")), index));
    assert!(refused(&files).starts_with("index sha256:"));
}

#[test]
fn the_places_of_layers_in_an_archive_have_their_bytes() {
    let big = |letter: &str| tar(&[file("data", letter.repeat(9_000))]);
    let made = image(&[layer(&[file("a", big("x"))]), gzip_layer(&big("y")), raw_layer(big("z"))]);
    for entries in [members(&made.files()), made.docker("web:1")] {
        let work = work();
        let path = work.archive(&entries);
        let (source, image) = chosen(&path, &ImageLimits::default()).unwrap();
        source.inspect(&image).unwrap();
        let places = source.layer_places(&image).unwrap();
        assert_eq!(places.len(), 2, "what is small after its compression is left out");
        let bytes = fs::read(&path).unwrap();
        for place in &places {
            let range = place.at as usize..(place.at + place.size) as usize;
            assert_eq!(Digest::of(&bytes[range]), place.digest);
        }
        check_layers(&places, bytes.len() as u64).unwrap();
    }
    let (source, image) = chosen(&work().layout(&made.files()), &ImageLimits::default()).unwrap();
    assert!(source.layer_places(&image).unwrap().is_empty());
}

#[test]
fn a_layer_that_is_in_an_archive_once_has_one_place() {
    let entries = [file("a", vec![7; 9_000])];
    let made = image(&[layer(&entries), layer(&entries)]);
    let mut members = made.docker("web:1");
    let at = members.iter().position(|entry| entry.path == b"1/layer.tar").unwrap();
    members[at] = link("1/layer.tar", "../0/layer.tar");
    let (source, image) = chosen(&work().archive(&members), &ImageLimits::default()).unwrap();
    assert_eq!(image.layers.len(), 2);
    assert_eq!(source.layer_places(&image).unwrap().len(), 1);
}

#[test]
fn of_very_many_layers_the_largest_have_places() {
    let layers: Vec<_> = (0..MAX_ARCHIVE_LAYERS + 3)
        .map(|number| layer(&[file("data", vec![number as u8; 5_000 + 1_024 * (number % 7)])]))
        .collect();
    let work = work();
    let (source, image) =
        chosen(&work.archive(&members(&image(&layers).files())), &ImageLimits::default()).unwrap();
    let places = source.layer_places(&image).unwrap();
    assert_eq!(places.len(), MAX_ARCHIVE_LAYERS);
    check_layers(&places, 1 << 30).unwrap();
    let smallest = image.layers.iter().map(|layer| layer.size).min().unwrap();
    assert_eq!(places.iter().filter(|place| place.size == smallest).count(), 10 - 3);
}
