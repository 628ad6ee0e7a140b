//! The pages that carry a model: each is as large as one commit may be, and the same parts make the same pages.

use periapt_host_api::{
    ModelUuid,
    migration::{ImportPage, ImportedAgent, ImportedRecord},
    size,
};
use serde_json::Value;
use uuid::Uuid;

/// The most entities of a page. One more, the model itself, is written with them.
const ENTITIES: usize = 80;

/// The most rows of history of a page.
const RECORDS: usize = 400;

/// The bytes after which a page ends. The largest entity, a unit with its record, takes more than that and has a page of its
/// own.
pub(super) const BYTES: usize = 256 << 10;

/// The pages of one migration, as they fill.
pub(super) struct Pages {
    model: ModelUuid,
    id: Uuid,
    /// The number of the page that the other controller expects: earlier ones have come.
    expected: u64,
    number: u64,
    entities: Vec<Value>,
    records: Vec<ImportedRecord>,
    bytes: usize,
}

impl Pages {
    pub(super) fn new(model: ModelUuid, id: Uuid, expected: u64) -> Self {
        Self { model, id, expected, number: 0, entities: Vec::new(), records: Vec::new(), bytes: 0 }
    }

    /// Returns a page of agents, unless it has come.
    pub(super) fn of_agents(&mut self, agents: Vec<ImportedAgent>) -> Option<ImportPage> {
        let page = self.next()?;
        Some(ImportPage { agents, ..page })
    }

    /// Adds an entity, and returns the page before it if that is full.
    pub(super) fn add_entity(&mut self, entity: Value) -> Option<ImportPage> {
        let bytes = size::of_json(&entity);
        let full = self.make_room(bytes, self.entities.len(), ENTITIES);
        self.entities.push(entity);
        self.bytes += bytes;
        full
    }

    /// Adds a row of history, and returns the page before it if that is full.
    pub(super) fn add_record(&mut self, record: ImportedRecord) -> Option<ImportPage> {
        let bytes = size::of_json(&record);
        let full = self.make_room(bytes, self.records.len(), RECORDS);
        self.records.push(record);
        self.bytes += bytes;
        full
    }

    /// Returns the page that was begun, unless it is empty or has come.
    pub(super) fn end(&mut self) -> Option<ImportPage> {
        if self.entities.is_empty() && self.records.is_empty() {
            return None;
        }
        self.bytes = 0;
        let (entities, records) = (std::mem::take(&mut self.entities), std::mem::take(&mut self.records));
        let page = self.next()?;
        Some(ImportPage { entities, records, ..page })
    }

    /// Ends the page before a part of so many bytes, if it has its most parts or would be too large.
    fn make_room(&mut self, bytes: usize, parts: usize, most: usize) -> Option<ImportPage> {
        let is_large = self.bytes > 0 && self.bytes.saturating_add(bytes) > BYTES;
        if parts >= most || is_large { self.end() } else { None }
    }

    /// Numbers the next page; none if it has come.
    fn next(&mut self) -> Option<ImportPage> {
        let number = self.number;
        self.number += 1;
        (number >= self.expected).then(|| ImportPage {
            model: self.model,
            id: self.id,
            number,
            agents: Vec::new(),
            entities: Vec::new(),
            records: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(expected: u64) -> Vec<(u64, usize)> {
        let mut pages = Pages::new(ModelUuid(Uuid::nil()), Uuid::nil(), expected);
        let mut made = Vec::new();
        for number in 0..200 {
            // Some entities are as large as a page.
            let size = if number % 50 == 7 { BYTES } else { 10 };
            made.extend(pages.add_entity(Value::String("x".repeat(size))));
        }
        made.extend(pages.end());
        assert_eq!(pages.end(), None);
        made.iter().map(|page| (page.number, page.entities.len())).collect()
    }

    #[test]
    fn pages_are_bounded_and_the_same_at_each_attempt() {
        let all = pages(0);
        assert_eq!(all.iter().map(|(_, count)| count).sum::<usize>(), 200);
        assert!(all.iter().all(|(_, count)| *count <= ENTITIES), "{all:?}");
        assert!(all.iter().enumerate().all(|(index, (number, _))| index as u64 == *number), "{all:?}");
        assert_eq!(pages(3), all[3..], "what has come is not made again");
    }
}
