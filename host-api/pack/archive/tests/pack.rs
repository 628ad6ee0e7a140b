//! Modules become components, components are checked against the world, and archives are made and read back.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::PathBuf,
};

use periapt_archive::{
    AdaptError, Archive, MAX_ENTRIES, MAX_UNPACKED, PackError, WorldError, adapt, check_component,
    check_workload, inspect, pack,
};
use periapt_host_api::workloads::WorkloadInterface;
use tempfile::TempDir;
use wit_component::{StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

const WIT: &str = include_str!("../../../wit/charm.wit");

/// Returns a core module of the right types for a world. Its functions trap.
fn module_for(wit: &str, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Legacy(wit_parser::LiftLowerAbi::Sync));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

fn charm_module() -> Vec<u8> {
    module_for(WIT, "charm")
}

struct Charm {
    directory: TempDir,
}

impl Charm {
    fn new(module: &[u8]) -> Self {
        let charm = Self { directory: TempDir::new().unwrap() };
        charm.write("charmcraft.yaml", b"name: tiny\nsummary: s\ndescription: d\nprovides: {web: http}\n");
        charm.write("module.wasm", module);
        charm
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn pack(&self) -> Result<periapt_archive::Packed, PackError> {
        pack(self.directory.path(), &self.path("module.wasm"))
    }
}

#[test]
fn a_module_is_adapted_and_fits_the_world() {
    let component = adapt(&charm_module()).unwrap();
    let report = check_component(&component).unwrap();
    assert!(report.charm.contains("periapt:charm/relations@0.1.0"), "{report:?}");
    assert_eq!(adapt(&component).unwrap(), component, "a component passes through");
}

#[test]
fn a_module_that_describes_no_world_is_taken_to_be_of_the_contracts() {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("charm.wit", WIT).unwrap();
    let world = resolve.select_world(&[package], Some("charm")).unwrap();
    let bare = dummy_module(&resolve, world, ManglingAndAbi::Legacy(wit_parser::LiftLowerAbi::Sync));
    let component = adapt(&bare).unwrap();
    assert!(check_component(&component).unwrap().charm.contains("periapt:charm/hook-tools@0.1.0"));
}

#[test]
fn packing_twice_gives_the_same_bytes_and_they_are_read_back() {
    let charm = Charm::new(&charm_module());
    charm.write("templates/site/index.html", b"<p>");
    charm.write("src/secret-notes.txt", b"not for the archive");
    let packed = charm.pack().unwrap();
    assert_eq!(packed.bytes, charm.pack().unwrap().bytes);
    assert_eq!(packed.inspected.meta.name, "tiny");
    assert_eq!(inspect(&packed.bytes).unwrap().digest, packed.inspected.digest);
    let archive = Archive::read(&packed.bytes).unwrap();
    let paths: Vec<_> = archive.files().map(|(path, _)| path).collect();
    assert_eq!(paths, ["charm.wasm", "charmcraft.yaml", "templates/site/index.html"]);
}

#[test]
fn imports_that_nobody_offers_are_named() {
    let wit = WIT.replace("import config;", "import config; import launch-missiles: func();");
    let component = adapt(&module_for(&wit, "charm")).unwrap();
    let error = check_component(&component).unwrap_err();
    assert!(matches!(&error, WorldError::Imports(names) if names.len() == 1), "{error}");
    assert!(error.to_string().contains("launch-missiles: the sandbox offers no such interface"), "{error}");
}

#[test]
fn a_function_of_another_type_is_told_with_both_signatures() {
    let wit = WIT.replace("is-leader: func() -> result<bool, error>;", "is-leader: func() -> bool;");
    assert_ne!(wit, WIT);
    let error = check_component(&adapt(&module_for(&wit, "charm")).unwrap()).unwrap_err().to_string();
    assert!(
        error.starts_with("periapt:charm/leadership@0.1.0 is-leader does not match the contract"),
        "{error}"
    );
    assert!(error.ends_with("found func() -> bool"), "{error}");
}

#[test]
fn one_more_case_in_a_released_type_is_seen() {
    let wit = WIT.replace("        collect-metrics,\n", "        collect-metrics,\n        one-more,\n");
    assert_ne!(wit, WIT);
    let error = check_component(&adapt(&module_for(&wit, "charm")).unwrap()).unwrap_err();
    assert!(matches!(error, WorldError::Mismatch { .. }), "{error}");
}

#[test]
fn a_component_without_the_handler_is_refused() {
    let wit =
        WIT.replace("    export handler;\n", "    export config;\n").replace("    import config;\n", "");
    let error = check_component(&adapt(&module_for(&wit, "charm")).unwrap()).unwrap_err();
    assert!(matches!(&error, WorldError::NoHandler(exports) if exports[0].contains("config")), "{error}");
}

/// Encodes a number as the binary format does (LEB128).
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], leb(content.len()).as_slice(), content].concat()
}

#[test]
fn imports_that_share_a_long_name_are_refused_before_it_is_written_out() {
    // One group of compact imports: its module's name, an empty name, the mark of a group, the type of all, and their
    // names.
    let (name, count) = (vec![b'n'; 100_000], 4_000);
    let group =
        [&[1], leb(name.len()).as_slice(), &name, &[0, 0x7e, 0, 0], &leb(count), &vec![0; count]].concat();
    let types = section(1, &[1, 0x60, 0, 0]);
    let module = [b"\0asm\x01\0\0\0".as_slice(), &types, &section(2, &group)].concat();
    let component = [b"\0asm\x0d\0\x01\0".as_slice(), &section(1, &module)].concat();
    let error = check_component(&component).unwrap_err().to_string();
    assert!(error.contains("compact imports"), "{error}");
}

#[test]
fn a_type_that_would_fill_memory_is_told_in_part() {
    let leaf = format!("record leaf {{ {}: u8 }}", "n".repeat(50_000));
    let hundred = |name: &str| vec![name; 100].join(", ");
    let types =
        format!("{leaf} type many = tuple<{}>; type all = tuple<{}>;", hundred("leaf"), hundred("many"));
    let wit = WIT
        .replace("is-leader: func() -> result<bool, error>;", &format!("{types} is-leader: func() -> all;"));
    assert_ne!(wit, WIT);
    let error = check_component(&adapt(&module_for(&wit, "charm")).unwrap()).unwrap_err().to_string();
    assert!(error.ends_with("nnn...") && error.len() < 10_000, "{} bytes", error.len());
}

#[test]
fn of_very_many_unknown_imports_some_are_told() {
    let many: String = (0..500).map(|number| format!("import launch-{number}: func(); ")).collect();
    let wit = WIT.replace("import config;", &format!("import config; {many}"));
    let error = check_component(&adapt(&module_for(&wit, "charm")).unwrap()).unwrap_err().to_string();
    assert!(error.ends_with("; and 480 more") && error.contains("launch-0"), "{error}");
}

#[test]
fn what_is_not_wasm_is_refused() {
    assert!(matches!(adapt(b"#!/bin/sh"), Err(AdaptError::NotWasm)));
    assert!(matches!(adapt(b"\0asm\x01\0\0\0rubbish"), Err(AdaptError::Encode(_))));
    assert!(matches!(check_component(b"\0asm\x0d\0\x01\0rubbish"), Err(WorldError::NotAComponent(_))));
}

#[test]
fn a_component_that_no_wit_describes_is_refused_and_panics_nobody() {
    for (text, reason) in [
        (r#"(import "a:b/c" (func))"#, "a:b/c: the sandbox offers no such interface"),
        (r#"(import "a:b/c@1.0.0" (func))"#, "a:b/c@1.0.0: the sandbox offers no such interface"),
        (r#"(import "unlocked-dep=<a:b>" (func))"#, "unlocked-dep=<a:b>: the sandbox offers no such"),
        (r#"(import "wasi:cli/stdout@0.2.0" (func))"#, "wasi:cli/stdout@0.2.0: it is not an interface"),
        (
            r#"(import "periapt:charm/config@0.1.0" (func))"#,
            "periapt:charm/config@0.1.0: it is not an interface",
        ),
        (r#"(import "f" (func $f)) (export "a:b/c" (func $f))"#, "f: the sandbox offers no such interface"),
        (r#"(component $c) (export "a:b/c" (component $c))"#, "does not export periapt:charm/handler@0.1.0"),
        (
            r#"(component $c (type $t u8) (export "t" (type $t))) (instance $i (instantiate $c))
               (export "periapt:charm/handler@0.1.0" (instance $i))"#,
            "periapt:charm/handler@0.1.0, without its function `handle`",
        ),
        (
            r#"(core module $m (func (export "f"))) (core instance $i (instantiate $m))
               (func $f (canon lift (core func $i "f")))
               (export "periapt:charm/handler@0.1.0" (func $f))"#,
            "does not export periapt:charm/handler@0.1.0",
        ),
    ] {
        let component = wat::parse_str(format!("(component {text})")).unwrap();
        let error = check_component(&component).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
        let charm = Charm::new(&component);
        assert!(matches!(charm.pack(), Err(PackError::Refused(_))), "{text}");
    }
    let module = check_component(b"\0asm\x01\0\0\0").unwrap_err().to_string();
    assert_eq!(module, "not a WebAssembly component: it is a core module");
}

#[test]
fn what_an_error_quotes_of_a_component_is_short() {
    let name = "n".repeat(50_000);
    let wit = WIT.replace(
        "is-leader: func() -> result<bool, error>;",
        &format!("is-leader: func() -> result<bool, error>; {name}: func();"),
    );
    assert_ne!(wit, WIT);
    let error = check_component(&adapt(&module_for(&wit, "charm")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("nothing of that name") && error.len() < 1_000, "{} bytes", error.len());
}

#[test]
fn a_directory_that_is_no_charm_is_named() {
    let charm = Charm::new(&charm_module());
    fs::remove_file(charm.path("charmcraft.yaml")).unwrap();
    let error = charm.pack().unwrap_err().to_string();
    assert!(error.contains("is not a charm: it has neither charmcraft.yaml nor metadata.yaml"), "{error}");
}

#[test]
fn what_a_link_leads_to_outside_of_the_charm_is_not_given_away() {
    let secrets = TempDir::new().unwrap();
    fs::write(secrets.path().join("id_ed25519"), "private").unwrap();
    for (link, target) in [
        ("README.md", secrets.path().join("id_ed25519")),
        ("templates", secrets.path().to_owned()),
        ("files", "/dev/..".into()),
        ("icon.svg", "/dev/zero".into()),
    ] {
        let charm = Charm::new(&charm_module());
        symlink(target, charm.path(link)).unwrap();
        let error = charm.pack().unwrap_err();
        assert!(matches!(&error, PackError::LeadsOut { link: path, .. } if path.ends_with(link)), "{error}");
    }
    // A link within the charm's directory.
    let charm = Charm::new(&charm_module());
    charm.write("docs/readme.md", b"read me");
    symlink("docs/readme.md", charm.path("README.md")).unwrap();
    let packed = charm.pack().unwrap();
    assert_eq!(Archive::read(&packed.bytes).unwrap().file("README.md"), Some(b"read me".as_slice()));
}

#[test]
fn what_is_no_file_and_what_is_too_much_is_refused_before_it_is_read() {
    let charm = Charm::new(&charm_module());
    let _socket = UnixListener::bind(charm.path("config.yaml")).unwrap();
    assert!(matches!(charm.pack(), Err(PackError::NotAFile(_))));

    let charm = Charm::new(&charm_module());
    charm.write("files/large", b"");
    fs::File::create(charm.path("files/large")).unwrap().set_len(MAX_UNPACKED).unwrap();
    let error = charm.pack().unwrap_err();
    assert!(matches!(&error, PackError::TooMuch(path) if path.ends_with("large")), "{error}");

    let charm = Charm::new(&charm_module());
    fs::create_dir(charm.path("files")).unwrap();
    for number in 0..MAX_ENTRIES {
        fs::File::create(charm.path(&format!("files/{number}"))).unwrap();
    }
    assert!(matches!(charm.pack(), Err(PackError::TooMany(_))));
}

/// Returns a module with one export of WASI 0.2.3 that takes nothing.
fn workload_module(package: &str, interface: &str, function: &str) -> Vec<u8> {
    let wit = format!(
        "package {package}@0.2.3; interface {interface} {{ {function}: func(); }} world w {{ export {interface}; }}"
    );
    module_for(&wit, "w")
}

fn with_workload(declared: &str) -> Charm {
    let charm = Charm::new(&charm_module());
    let text = format!("name: tiny\nsummary: s\ndescription: d\nx-periapt: {{workloads: {{{declared}}}}}\n");
    charm.write("charmcraft.yaml", text.as_bytes());
    charm
}

#[test]
fn components_of_workloads_are_packed_and_checked() {
    let charm = with_workload("web: {component: web.wasm, http: 8080}, job: {component: parts/job.wasm}");
    charm.write("web.wasm", &workload_module("wasi:http", "incoming-handler", "handle"));
    charm.write("parts/job.wasm", &workload_module("wasi:cli", "run", "run"));
    charm.write("parts/other", b"of no use in the charm");
    let packed = charm.pack().unwrap();
    let archive = Archive::read(&packed.bytes).unwrap();
    check_workload(archive.file("web.wasm").unwrap(), WorkloadInterface::Http).unwrap();
    check_workload(archive.file("parts/job.wasm").unwrap(), WorkloadInterface::Command).unwrap();
    assert!(archive.file("parts/other").is_none());
    inspect(&packed.bytes).unwrap();
}

#[test]
fn a_workload_that_is_not_what_the_charm_declares_is_one_error() {
    let refused = |charm: &Charm| charm.pack().unwrap_err().to_string();
    let charm = with_workload("web: {component: web.wasm, http: 8080}");
    assert_eq!(refused(&charm), "workload web: the charm has no file web.wasm");
    charm.write("web.wasm", &workload_module("wasi:cli", "run", "run"));
    assert_eq!(
        refused(&charm),
        "workload web: web.wasm: the component does not export wasi:http/incoming-handler, which a workload with a \
         port has; its exports: wasi:cli/run@0.2.3"
    );
    let large = std::fs::File::create(charm.directory.path().join("web.wasm")).unwrap();
    large.set_len((128 << 20) + 1).unwrap();
    assert_eq!(refused(&charm), "workload web: web.wasm has 134217729 bytes; at most 134217728 are run");
    charm.write("web.wasm", b"no module");
    assert!(refused(&charm).contains("web.wasm"), "{}", refused(&charm));
    let charm = with_workload("web: {component: ../web.wasm, http: 8080}");
    assert!(refused(&charm).contains("no path within the charm"), "{}", refused(&charm));
}
