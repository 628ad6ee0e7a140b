//! The rule for the names of public types: each exists once in the workspace, so that a name in an error, a comment or
//! a search means one thing.

use std::collections::{BTreeMap, BTreeSet};

use crate::{host_workspace, no_breaches, sources};

/// The words that declare a public type at a module's top level.
const DECLARES: &[&str] = &["pub struct ", "pub enum ", "pub trait ", "pub union ", "pub type "];

/// A name that crates share.
struct Shared {
    name: &'static str,
    rooms: &'static [&'static str],
    /// The reason why one name serves all of them. Callers write it with its crate.
    #[expect(dead_code, reason = "for developers who add an entry")]
    reason: &'static str,
}

/// The names that several crates declare. The list only shrinks.
const SHARED: &[Shared] = &[
    Shared {
        name: "Handle",
        rooms: &["periapt-agent", "periapt-controller"],
        reason: "each service has one handle, which its `build` returns",
    },
    Shared {
        name: "Options",
        rooms: &[
            "periapt-agent",
            "periapt-client",
            "periapt-controller",
            "periapt-sandbox",
            "periapt-uniter",
        ],
        reason: "each service is built from its own options",
    },
];

/// Returns the names of the public types that a text declares.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = DECLARES.iter().find_map(|word| line.strip_prefix(word))?;
        rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
    })
}

/// Returns one text for each name that exists twice and is not listed, and for each entry of the list that no longer
/// holds. `types` has each declaration with its crate and file.
fn breaches(shared: &[Shared], types: &[(String, String, String)]) -> Vec<String> {
    let mut declarations: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (name, room, file) in types {
        declarations.entry(name).or_default().push((room, file));
    }
    let mut breaches = Vec::new();
    for (name, declarations) in &declarations {
        let listed: BTreeSet<&str> = shared
            .iter()
            .filter(|entry| entry.name == *name)
            .flat_map(|entry| entry.rooms)
            .copied()
            .collect();
        let rooms: BTreeSet<&str> = declarations.iter().map(|(room, _)| *room).collect();
        if declarations.len() > 1 && (rooms.len() < declarations.len() || !rooms.is_subset(&listed)) {
            let files: Vec<_> = declarations.iter().map(|(_, file)| *file).collect();
            breaches.push(format!("{name} is declared in {}: give each a name of its own", files.join(", ")));
        }
    }
    for entry in shared {
        let declarations = declarations.get(entry.name).map_or(&[][..], Vec::as_slice);
        for room in entry.rooms {
            if declarations.len() < 2 || declarations.iter().all(|(declaring, _)| declaring != room) {
                let name = entry.name;
                breaches.push(format!("{room} shares the name {name} no longer: take it off the list"));
            }
        }
    }
    breaches
}

#[test]
fn each_public_type_has_a_name_of_its_own_in_the_workspace() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    let mut types = Vec::new();
    for room in graph.members() {
        for source in sources::rust(&graph.directory(room)?.join("src"))? {
            let file = source.path.display().to_string();
            types.extend(declared(&source.text).map(|name| (name.to_owned(), room.to_owned(), file.clone())));
        }
    }
    assert!(types.len() > 500, "{} public types found: this wall looks past them", types.len());
    no_breaches("public types share a name", &breaches(SHARED, &types));
    Ok(())
}

#[test]
fn a_name_that_is_declared_twice_or_shared_no_longer_is_a_breach() {
    let shared = [Shared { name: "Options", rooms: &["one", "two"], reason: "" }];
    let only = |types: &[(&str, &str)]| -> String {
        let types: Vec<_> = types
            .iter()
            .map(|(name, room)| ((*name).to_owned(), (*room).to_owned(), format!("{room}.rs")))
            .collect();
        breaches(&shared, &types).join("; ")
    };
    let options = [("Options", "one"), ("Options", "two")];
    assert_eq!(only(&options), "");
    let twice = only(&[&options[..], &[("Unit", "one"), ("Unit", "three")]].concat());
    assert_eq!(twice, "Unit is declared in one.rs, three.rs: give each a name of its own");
    let grown = only(&[&options[..], &[("Options", "three")]].concat());
    assert!(grown.starts_with("Options is declared in one.rs, two.rs, three.rs"), "{grown}");
    let again = only(&[&options[..], &[("Options", "two")]].concat());
    assert!(again.starts_with("Options is declared in one.rs, two.rs, two.rs"), "{again}");
    let gone = only(&options[..1]);
    assert!(gone.contains("one shares the name Options no longer"), "{gone}");
    assert!(gone.contains("two shares the name Options no longer"), "{gone}");
}

#[test]
fn declarations_are_read_at_the_top_level_alone() {
    let text = "pub struct One<T>(T);\npub(crate) enum Two {}\n    pub struct Three;\npub trait Four: Send {\npub type Five = u8;\n";
    assert_eq!(declared(text).collect::<Vec<_>>(), ["One", "Four", "Five"]);
}
