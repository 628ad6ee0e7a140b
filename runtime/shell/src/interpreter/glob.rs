//! Pathname expansion: words that are patterns of file names.

use super::{Shell, Unwind};
use crate::{FileKind, pattern::Pattern};

/// Bytes of a name or a path beside its own.
const PLACE: usize = 64;

impl Shell {
    /// Returns the paths that match a pattern, sorted. Without a match the word stays as it is. The
    /// script pays for each path, and [`Limits::arguments`](crate::Limits::arguments) bounds their
    /// number.
    pub(super) async fn glob(&mut self, word: &str) -> Result<Vec<String>, Unwind> {
        self.pay(word.len().saturating_mul(Pattern::PRICE))?;
        let mut found = vec![String::new()];
        let parts: Vec<&str> = word.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let pattern = has_pattern(part).then(|| Pattern::new(part));
            let mut next = Vec::new();
            for prefix in found {
                self.step().await?;
                let Some(pattern) = &pattern else {
                    self.pay((prefix.len() + part.len()).saturating_mul(2).saturating_add(PLACE))?;
                    let path = format!("{prefix}{}", unescaped(part));
                    if !is_last || part.is_empty() || self.kind(&path).await?.is_ok() {
                        next.push(path);
                    }
                    continue;
                };
                let place = self.path(if prefix.is_empty() { "." } else { &prefix });
                let Ok(names) = self.list_directory(place).await? else { continue };
                for (name, kind) in names {
                    let hidden = name.starts_with('.') && !part.starts_with('.');
                    let fits = is_last || kind == FileKind::Directory;
                    let meter = &mut self.meter;
                    if fits && !hidden && pattern.matches(&name, &mut |steps| meter.bytes(steps))? {
                        self.pay((prefix.len() + name.len()).saturating_mul(2).saturating_add(PLACE))?;
                        self.meter.check_arguments(next.len() + 1)?;
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
