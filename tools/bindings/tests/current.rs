//! Checks that the generated files in the repository are current.

use std::path::Path;

#[test]
fn kept_bindings_are_what_the_contract_generates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let generated = periapt_bindings::generate(&root).unwrap();
    assert!(
        generated.len() >= 5,
        "one file for Rust, three for C, one for TypeScript, got {}",
        generated.len()
    );
    for file in generated {
        let kept = std::fs::read(root.join(&file.path)).unwrap_or_default();
        assert!(
            kept == file.content,
            "{} is stale: run `cargo run -p periapt-bindings` at the repository's root",
            file.path.display()
        );
    }
}

#[test]
fn the_sdk_runs_on_the_generator_that_wrote_its_bindings() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host-api/sdk/rust");
    let bindings = std::fs::read_to_string(sdk.join("src/bindings.rs")).unwrap();
    let version =
        bindings.lines().next().and_then(|line| line.split(' ').nth(4)).unwrap().trim_end_matches('.');
    assert!(version.starts_with(|c: char| c.is_ascii_digit()), "no version in the first line: {version}");
    let manifest = std::fs::read_to_string(sdk.join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains(&format!("version = \"={version}\"")),
        "host-api/sdk/rust depends on another wit-bindgen than {version}, which wrote its bindings"
    );
}
