//! Words that are patterns of files' names.

use super::{Halt, Shell};
use crate::{FileAnswer, FileCall, FileKind, pattern};

impl Shell {
    /// The paths that match a pattern, sorted; none leaves the word as it is.
    pub(super) async fn glob(&mut self, word: &str) -> Result<Vec<String>, Halt> {
        let mut found = vec![String::new()];
        let parts: Vec<&str> = word.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let mut next = Vec::new();
            for prefix in found {
                self.step().await?;
                if !has_pattern(part) {
                    let path = format!("{prefix}{}", unescaped(part));
                    if !is_last || part.is_empty() || self.stat(&path).await.is_ok() {
                        next.push(path);
                    }
                    continue;
                }
                let place = self.path(if prefix.is_empty() { "." } else { &prefix });
                let Ok(FileAnswer::Names(names)) = self.file(FileCall::List { path: place }).await else {
                    continue;
                };
                for (name, kind) in names {
                    // As many steps as matching may take.
                    self.pay(prefix.len() + (name.len() + 1).saturating_mul(part.len()))?;
                    let hidden = name.starts_with('.') && !part.starts_with('.');
                    let fits = is_last || kind == FileKind::Directory;
                    if fits && !hidden && pattern::matches(part, &name) {
                        next.push(format!("{prefix}{name}"));
                    }
                }
            }
            if !is_last {
                next.iter_mut().for_each(|path| path.push('/'));
            }
            found = next;
        }
        Ok(found)
    }
}

fn has_pattern(part: &str) -> bool {
    let mut escaped = false;
    part.chars().any(|character| {
        let counts = !escaped && matches!(character, '*' | '?' | '[');
        escaped = !escaped && character == '\\';
        counts
    })
}

fn unescaped(part: &str) -> String {
    let mut text = String::new();
    let mut characters = part.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}
