//! Functions in native code, by what they were compiled from: a component that shares most of its functions with one that
//! was compiled before, as all Python charms do, need not have them compiled again.
//!
//! Here is only what a compilation reads and adds to. Where that is kept, and who may write it, is the keeper's business:
//! a function that is read here becomes code of whoever runs the component, so it is to be trusted as that is.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use wasmtime::CacheStore;

/// What the engine names a function by: a SHA-256 of all that its code depends on.
type Key = [u8; KEY];

const KEY: usize = 32;

/// Bytes that say how long a function's form is.
const LENGTH: usize = 4;

/// The most bytes that one compilation adds, and so may hold in memory beside its own: some four times what a Python
/// charm's functions take.
const MAX_ADDED: usize = 256 << 20;

/// The functions that a compilation may take instead of compiling, and those that it compiled.
pub struct Functions {
    /// One form after the other, each with its key and its length in front.
    text: Vec<u8>,
    /// Where in `text` a function's form is.
    known: BTreeMap<Key, Range<usize>>,
    added: Mutex<Added>,
}

#[derive(Default)]
struct Added {
    /// In the same form as what is known.
    text: Vec<u8>,
    /// How many were asked for and known.
    found: usize,
    /// How many were compiled.
    compiled: usize,
}

/// What a compilation asked for and added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionCounts {
    /// Functions that were taken.
    pub found: usize,
    /// Functions that were compiled.
    pub compiled: usize,
}

impl Functions {
    /// Those of earlier compilations, one after the other; of several of one name the last counts. What is cut short or makes
    /// no sense is left out.
    pub fn new(text: Vec<u8>) -> Self {
        let mut known = BTreeMap::new();
        let mut at = 0;
        while let Some((key, range)) = entry(&text, at) {
            at = range.end;
            known.insert(key, range);
        }
        Self { text, known, added: Mutex::default() }
    }

    /// What was compiled, in the form that [`Functions::new`] reads.
    pub fn take_added(&self) -> Vec<u8> {
        std::mem::take(&mut self.added().text)
    }

    /// How much was found and how much compiled.
    pub fn counts(&self) -> FunctionCounts {
        let added = self.added();
        FunctionCounts { found: added.found, compiled: added.compiled }
    }

    fn added(&self) -> MutexGuard<'_, Added> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of the entry at a place, and where its form is; none at the end, and where the text is damaged.
fn entry(text: &[u8], at: usize) -> Option<(Key, Range<usize>)> {
    let key: Key = text.get(at..at + KEY)?.try_into().ok()?;
    let begin = at + KEY + LENGTH;
    let length: [u8; LENGTH] = text.get(at + KEY..begin)?.try_into().ok()?;
    let end = begin.checked_add(usize::try_from(u32::from_le_bytes(length)).ok()?)?;
    text.get(begin..end)?;
    Some((key, begin..end))
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let key: Key = key.try_into().ok()?;
        let form = self.text.get(self.known.get(&key)?.clone())?;
        self.added().found += 1;
        Some(Cow::Borrowed(form))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let mut added = self.added();
        added.compiled += 1;
        let (Ok(key), Ok(length)) = (Key::try_from(key), u32::try_from(value.len())) else { return false };
        if added.text.len() + KEY + LENGTH + value.len() > MAX_ADDED {
            return false;
        }
        added.text.extend_from_slice(&key);
        added.text.extend_from_slice(&length.to_le_bytes());
        added.text.extend_from_slice(&value);
        true
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Functions {
        let functions = Functions::new(Vec::new());
        assert!(functions.insert(&[1; KEY], b"one".to_vec()));
        assert!(functions.insert(&[2; KEY], Vec::new()));
        functions
    }

    #[test]
    fn what_was_added_is_known_to_the_next() {
        let next = Functions::new(filled().take_added());
        assert_eq!(next.get(&[1; KEY]).as_deref(), Some(b"one".as_slice()));
        assert_eq!(next.get(&[2; KEY]).as_deref(), Some(b"".as_slice()));
        assert_eq!(next.get(&[3; KEY]), None);
        assert_eq!(next.counts(), FunctionCounts { found: 2, compiled: 0 });
        assert!(next.take_added().is_empty());
    }

    #[test]
    fn several_compilations_are_read_one_after_the_other() {
        let more = Functions::new(Vec::new());
        more.insert(&[3; KEY], b"three".to_vec());
        let both = [filled().take_added(), more.take_added()].concat();
        assert_eq!(Functions::new(both).known.len(), 3);
        let other = Functions::new(Vec::new());
        other.insert(&[1; KEY], b"another one".to_vec());
        let both = Functions::new([other.take_added(), filled().take_added()].concat());
        assert_eq!(both.get(&[1; KEY]).as_deref(), Some(b"one".as_slice()));
    }

    #[test]
    fn what_is_cut_short_is_left_out() {
        let mut text = filled().take_added();
        for _ in 0..text.len() {
            text.pop();
            assert!(Functions::new(text.clone()).known.len() < 2);
        }
        assert_eq!(Functions::new(vec![0xff; 100]).known.len(), 0);
    }
}
