//! Sizes of values.

use std::io;

use serde::Serialize;

/// Counts the bytes of a value's JSON form without building it. Returns the largest number for a value that JSON
/// cannot express.
pub fn of_json<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_what_its_text_has() {
        let value = serde_json::json!({"a": ["\n", "ü", 1.5], "b": null});
        assert_eq!(of_json(&value), serde_json::to_vec(&value).unwrap().len());
        let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert_eq!(of_json(&unwritable), usize::MAX);
    }
}
