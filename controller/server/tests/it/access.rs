//! The document `docs/access.md` matches the table of rights.

use std::path::Path;

use periapt_controller::access_document;

#[test]
fn the_document_of_rights_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/access.md");
    if std::env::var_os("PERIAPT_UPDATE").is_some() {
        std::fs::write(&path, access_document()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == access_document(), "docs/access.md is out of date: run this test with PERIAPT_UPDATE=1");
}
