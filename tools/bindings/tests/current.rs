//! The generated files in the repository are what the generator writes today.

use std::path::Path;

#[test]
fn kept_bindings_are_what_the_contract_generates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let generated = periapt_bindings::generate(&root).unwrap();
    assert!(generated.len() >= 4, "one file for Rust and three for C, got {}", generated.len());
    for file in generated {
        let kept = std::fs::read(root.join(&file.path)).unwrap_or_default();
        assert!(
            kept == file.content,
            "{} is stale: run `cargo run -p periapt-bindings` at the repository's root",
            file.path.display()
        );
    }
}
