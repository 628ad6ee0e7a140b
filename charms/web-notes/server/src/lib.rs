//! A store of notes as a component: each note is a file in the directory that the unit's storage is at.
//!
//! Each request has an instance of its own. Two that add notes at one time get two numbers, because a file is created once.

/// The directory of the notes.
#[cfg(target_arch = "wasm32")]
const DIRECTORY: &str = "/data";

/// The most bytes of a note.
#[cfg(target_arch = "wasm32")]
const LONGEST: u64 = 4 << 10;

/// The most notes. Older ones are removed.
#[cfg(any(test, target_arch = "wasm32"))]
const MOST: usize = 1_000;

#[cfg(target_arch = "wasm32")]
mod server;

/// Returns the numbers of notes from the names of files, the newest first.
#[cfg(any(test, target_arch = "wasm32"))]
fn numbers(names: impl Iterator<Item = String>) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers
}

/// Returns the numbers of the notes that have no place any more.
#[cfg(any(test, target_arch = "wasm32"))]
fn over(numbers: &[u64]) -> &[u64] {
    numbers.get(MOST..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_numbered_and_what_is_none_is_passed_over() {
        let names = ["2", "10", "lost+found", "1"].map(str::to_owned);
        assert_eq!(numbers(names.into_iter()), [10, 2, 1]);
    }

    #[test]
    fn the_oldest_notes_go_first() {
        let numbers: Vec<u64> = (0..1_002).rev().collect();
        assert_eq!(over(&numbers), [1, 0]);
        assert_eq!(over(&[3, 2]), []);
    }
}
