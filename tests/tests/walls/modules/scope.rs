//! The names that one module defines and imports, and the paths in it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;

use super::token::Token;

/// The keywords before the name of a definition.
const DEFINES: [&str; 8] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static"];

/// One module's names and paths.
#[derive(Debug, Default)]
pub(super) struct Scope {
    aliases: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    defined: BTreeSet<String>,
    paths: BTreeSet<Vec<String>>,
}

/// A declared module: its name, with the content of its braces; none if it has a file.
type Child<'a> = (String, Option<&'a [Token]>);

impl Scope {
    /// Reads a module's names and paths, and the modules that it declares.
    pub(super) fn read(tokens: &[Token]) -> anyhow::Result<(Self, Vec<Child<'_>>)> {
        let (mut scope, mut children, mut own) = (Self::default(), Vec::new(), Vec::new());
        let mut rest = tokens;
        while let Some((token, behind)) = rest.split_first() {
            let name = behind.first().and_then(Token::word).filter(|_| token.word() == Some("mod"));
            rest = match (name, behind.get(1)) {
                (Some(name), Some(body)) => {
                    children.push((name.to_owned(), body.group()));
                    behind.get(2..).unwrap_or_default()
                }
                _ => {
                    own.push(token.clone());
                    behind
                }
            };
        }
        scope.note_definitions(&own);
        scope.note_paths(&own)?;
        Ok((scope, children))
    }

    /// Returns all paths, of `use` and of code.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Vec<String>> {
        self.paths.iter()
    }

    /// Returns the paths of glob imports.
    pub(super) fn globs(&self) -> impl Iterator<Item = &Vec<String>> {
        self.globs.iter()
    }

    /// Returns the path of a name that a `use` imports.
    pub(super) fn alias(&self, name: &str) -> Option<&[String]> {
        self.aliases.get(name).map(Vec::as_slice)
    }

    /// Returns true if the module defines the name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Records the names defined at the top of a module. The names that macros define are taken from their calls.
    fn note_definitions(&mut self, code: &[Token]) {
        for window in code.windows(2) {
            if let [Token::Word(word), Token::Word(name)] = window
                && DEFINES.contains(&word.as_str())
            {
                self.defined.insert(name.clone());
            }
        }
        for window in code.windows(3) {
            match window {
                [Token::Word(word), Token::Sign('!'), Token::Word(name)] if word == "macro_rules" => {
                    self.defined.insert(name.clone());
                }
                [Token::Word(_), Token::Sign('!'), called] => self.note_capitals(called),
                _ => {}
            }
        }
    }

    fn note_capitals(&mut self, called: &Token) {
        match called {
            Token::Word(word) if word.starts_with(char::is_uppercase) => {
                self.defined.insert(word.clone());
            }
            other => other.group().into_iter().flatten().for_each(|token| self.note_capitals(token)),
        }
    }

    /// Records the paths in `use` and in code, at any depth.
    fn note_paths(&mut self, code: &[Token]) -> anyhow::Result<()> {
        let mut index = 0;
        while let Some(token) = code.get(index) {
            let starts = index
                .checked_sub(1)
                .and_then(|before| code.get(before))
                .is_none_or(|before| !before.is(':') && !before.is('.'));
            let behind = code.get(index + 1..).unwrap_or_default();
            match token {
                // `use<…>` in a bound is no import.
                Token::Word(word) if word == "use" && !behind.first().is_some_and(|next| next.is('<')) => {
                    let end = behind.iter().position(|token| token.is(';')).context("a `use` has no end")?;
                    self.note_use(behind.get(..end).unwrap_or_default(), &[])?;
                    index += end;
                }
                Token::Word(first) if starts || is_rooted(code, index) => {
                    let mut path = vec![first.clone()];
                    while let Some([Token::Sign(':'), Token::Sign(':'), Token::Word(next), ..]) =
                        code.get(index + 1..)
                    {
                        path.push(next.clone());
                        index += 3;
                    }
                    if path.len() > 1 {
                        self.paths.insert(path);
                    }
                }
                other => self.note_paths(other.group().unwrap_or_default())?,
            }
            index += 1;
        }
        Ok(())
    }

    /// Records one tree of a `use` with its prefix.
    fn note_use(&mut self, tree: &[Token], prefix: &[String]) -> anyhow::Result<()> {
        let mut path = prefix.to_vec();
        for (index, token) in tree.iter().enumerate() {
            if let Some(inner) = token.group() {
                let trees = inner.split(|token| token.is(','));
                return trees.filter(|tree| !tree.is_empty()).try_for_each(|tree| self.note_use(tree, &path));
            }
            if token.is('*') {
                self.paths.insert(path.clone());
                self.globs.push(path);
                return Ok(());
            }
            if token.word() == Some("as") {
                let alias =
                    tree.get(index + 1).and_then(Token::word).context("a `use … as` gives no name")?;
                self.note_alias(alias, path);
                return Ok(());
            }
            path.extend(token.word().map(str::to_owned));
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = path.last().cloned() {
            self.note_alias(&name, path);
        }
        Ok(())
    }

    fn note_alias(&mut self, name: &str, path: Vec<String>) {
        self.paths.insert(path.clone());
        self.aliases.insert(name.to_owned(), path);
    }
}

/// Returns true if a word after a single colon starts a path: `name: crate::…`.
fn is_rooted(code: &[Token], index: usize) -> bool {
    let back = |by| index.checked_sub(by).and_then(|at| code.get(at));
    match (back(2), back(1)) {
        (Some(before), Some(last)) => !before.is(':') && last.is(':'),
        _ => true,
    }
}
