//! The mutations of `tools/mutations`: each fits the sources as they are, and names tests that exist.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::{root, sources};

/// Returns the texts before and after each part of a patch, as its lines have them.
fn parts(patch: &str) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    for line in patch.lines().skip_while(|line| !line.starts_with("@@")) {
        if line.starts_with("@@") {
            parts.push((String::new(), String::new()));
        }
        let Some((before, after)) = parts.last_mut() else { continue };
        let Some((mark, text)) = line.split_at_checked(1) else { continue };
        for (is_in, part) in [(" -", before), (" +", after)] {
            if is_in.contains(mark) {
                part.push_str(text);
                part.push('\n');
            }
        }
    }
    parts
}

#[test]
fn each_mutation_fits_the_sources_and_names_tests_that_exist() -> anyhow::Result<()> {
    let root = root()?;
    let sources = sources::rust(&root)?;
    let files = fs::read_dir(root.join("tests/mutations"))?.collect::<Result<Vec<_>, _>>()?;
    ensure!(files.len() >= 6, "{} mutations: this wall looks past them", files.len());
    for path in files.iter().map(fs::DirEntry::path) {
        let patch = fs::read_to_string(&path)?;
        let name = path.display();
        let named = |prefix: &str| -> Vec<&str> {
            patch.lines().filter_map(|line| line.strip_prefix(prefix)).collect()
        };
        let targets = named("+++ b/");
        let [target] = targets.as_slice() else { anyhow::bail!("{name} changes one file") };
        ensure!(named("package: ").len() == 1, "{name} names one package");
        let source = fs::read_to_string(root.join(target)).with_context(|| format!("{name}: {target}"))?;
        let parts = parts(&patch);
        ensure!(!parts.is_empty(), "{name} changes something");
        for (before, after) in parts {
            ensure!(before != after && source.contains(&before), "{name} does not fit {target}:\n{before}");
        }
        let tests = named("fails: ");
        ensure!(!tests.is_empty(), "{name} says which test must fail");
        for test in tests {
            let function = format!("fn {}(", test.rsplit("::").next().unwrap_or_default());
            ensure!(sources.iter().any(|source| source.text.contains(&function)), "{name}: no test {test}");
        }
    }
    Ok(())
}

#[test]
fn the_parts_of_a_patch_are_its_text_before_and_after() {
    let patch =
        "A sentence - with a dash.\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn\n a\n-b\n+c\n@@ -9 +9 @@\n-d\n";
    let texts = parts(patch);
    let texts: Vec<_> = texts.iter().map(|(before, after)| (before.as_str(), after.as_str())).collect();
    assert_eq!(texts, [("a\nb\n", "a\nc\n"), ("d\n", "")]);
}
