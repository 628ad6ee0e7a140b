//! The open ports of one unit (`docs/hook-model.md` 5.5). A hook applies its requests to a copy, and the controller
//! applies the hook's changes to the stored table, by the same rules.

use std::collections::{BTreeMap, BTreeSet};

use super::{OpenedPorts, PortRange};
use crate::{
    EndpointName,
    commit::{PortChanges, PortRequest},
};

/// The open ranges of one unit, each with the endpoints that it is open for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortTable(BTreeMap<PortRange, Reach>);

/// The endpoints that a range is open for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    All,
    Only(BTreeSet<EndpointName>),
}

impl PortTable {
    /// Creates the table from a stored list.
    pub fn new(opened: &[OpenedPorts]) -> Self {
        let reach = |endpoints: &BTreeSet<EndpointName>| match endpoints.is_empty() {
            true => Reach::All,
            false => Reach::Only(endpoints.clone()),
        };
        Self(opened.iter().map(|opened| (opened.range, reach(&opened.endpoints))).collect())
    }

    /// Returns the table as a list, sorted by protocol, first and last port.
    pub fn to_opened(&self) -> Vec<OpenedPorts> {
        self.0
            .iter()
            .map(|(range, reach)| OpenedPorts {
                range: *range,
                endpoints: match reach {
                    Reach::All => BTreeSet::new(),
                    Reach::Only(endpoints) => endpoints.clone(),
                },
            })
            .collect()
    }

    /// Counts the open pairs of a range and an endpoint. All endpoints together count as one.
    pub fn len(&self) -> usize {
        let pairs = |reach: &Reach| match reach {
            Reach::All => 1,
            Reach::Only(endpoints) => endpoints.len(),
        };
        self.0.values().map(pairs).sum()
    }

    /// Returns true if no range is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if exactly this range is open, for any endpoint.
    pub fn contains(&self, range: &PortRange) -> bool {
        self.0.contains_key(range)
    }

    /// Returns true if exactly this range is open for an endpoint, or for all of them.
    pub fn contains_for(&self, range: &PortRange, endpoint: Option<&EndpointName>) -> bool {
        match (self.0.get(range), endpoint) {
            (Some(Reach::All), _) => true,
            (Some(Reach::Only(endpoints)), Some(endpoint)) => endpoints.contains(endpoint),
            _ => false,
        }
    }

    /// Returns another open range with a port in common with `range`.
    pub fn overlapping(&self, range: &PortRange) -> Option<PortRange> {
        self.0.keys().find(|open| *open != range && open.overlaps(range)).copied()
    }

    /// Opens a range for one endpoint, or for all. A range that is open for all is open for each endpoint.
    pub fn open(&mut self, range: PortRange, endpoint: Option<EndpointName>) {
        let Some(endpoint) = endpoint else {
            self.0.insert(range, Reach::All);
            return;
        };
        match self.0.entry(range).or_insert_with(|| Reach::Only(BTreeSet::new())) {
            Reach::All => {}
            Reach::Only(endpoints) => {
                endpoints.insert(endpoint);
            }
        }
    }

    /// Closes a range for one endpoint, or for all. A range that is open for all and closed for one stays open for
    /// the others of `endpoints`, which are the charm's.
    pub fn close<'a>(
        &mut self,
        range: PortRange,
        endpoint: Option<&EndpointName>,
        endpoints: impl IntoIterator<Item = &'a EndpointName>,
    ) {
        let (Some(closed), Some(reach)) = (endpoint, self.0.get_mut(&range)) else {
            self.0.remove(&range);
            return;
        };
        let left = match reach {
            Reach::All => {
                let others: BTreeSet<_> =
                    endpoints.into_iter().filter(|other| *other != closed).cloned().collect();
                let left = others.len();
                *reach = Reach::Only(others);
                left
            }
            Reach::Only(endpoints) => {
                endpoints.remove(closed);
                endpoints.len()
            }
        };
        if left == 0 {
            self.0.remove(&range);
        }
    }

    /// Returns the smallest changes that lead from `base` to this table.
    pub fn changes_from(&self, base: &Self) -> PortChanges {
        let mut changes = PortChanges::default();
        for (range, before) in &base.0 {
            match (before, self.0.get(range)) {
                (Reach::Only(before), Some(Reach::Only(after))) => {
                    changes.close.extend(requests(*range, before.difference(after)));
                }
                (_, Some(Reach::All)) => {}
                (Reach::All, Some(Reach::Only(_))) | (_, None) => {
                    changes.close.insert(PortRequest { range: *range, endpoint: None });
                }
            }
        }
        for (range, after) in &self.0 {
            match (base.0.get(range), after) {
                (Some(Reach::All), Reach::All) => {}
                (_, Reach::All) => {
                    changes.open.insert(PortRequest { range: *range, endpoint: None });
                }
                (Some(Reach::Only(before)), Reach::Only(after)) => {
                    changes.open.extend(requests(*range, after.difference(before)));
                }
                (_, Reach::Only(after)) => changes.open.extend(requests(*range, after)),
            }
        }
        changes
    }

    /// Applies a commit's changes: first those that close, then those that open. A range that is open for all can
    /// only be closed for all, and [`Self::changes_from`] requests nothing else.
    pub fn apply(&mut self, changes: &PortChanges) {
        for request in &changes.close {
            match (self.0.get(&request.range), &request.endpoint) {
                (Some(Reach::All), Some(_)) => {}
                (_, endpoint) => self.close(request.range, endpoint.as_ref(), []),
            }
        }
        for request in &changes.open {
            self.open(request.range, request.endpoint.clone());
        }
    }
}

fn requests<'a>(
    range: PortRange,
    endpoints: impl IntoIterator<Item = &'a EndpointName>,
) -> impl Iterator<Item = PortRequest> {
    endpoints.into_iter().map(move |endpoint| PortRequest { range, endpoint: Some(endpoint.clone()) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn endpoint(name: &str) -> EndpointName {
        EndpointName::new(name).unwrap()
    }

    fn range(text: &str) -> PortRange {
        text.parse().unwrap()
    }

    fn shown(table: &PortTable) -> Vec<String> {
        let names =
            |set: &BTreeSet<EndpointName>| set.iter().map(|e| e.as_str()).collect::<Vec<_>>().join(",");
        table.to_opened().iter().map(|open| format!("{} {}", open.range, names(&open.endpoints))).collect()
    }

    #[test]
    fn closing_one_endpoint_of_all_leaves_the_others_open() {
        let mut table = PortTable::default();
        table.open(range("80"), None);
        table.close(range("80"), Some(&endpoint("a")), &[endpoint("a"), endpoint("b")]);
        assert_eq!(shown(&table), ["80/tcp b"]);
        table.close(range("80"), Some(&endpoint("b")), &[endpoint("a"), endpoint("b")]);
        assert!(table.is_empty());
    }

    #[test]
    fn opening_for_all_subsumes_the_single_endpoints() {
        let mut table = PortTable::default();
        table.open(range("80"), Some(endpoint("a")));
        table.open(range("80"), None);
        table.open(range("80"), Some(endpoint("b")));
        assert_eq!(shown(&table), ["80/tcp "]);
    }

    #[test]
    fn opposite_requests_leave_no_change() {
        let mut base = PortTable::default();
        base.open(range("80"), None);
        let mut table = base.clone();
        table.close(range("80"), None, []);
        table.open(range("80"), None);
        table.open(range("icmp"), None);
        table.close(range("icmp"), None, []);
        assert_eq!(table.changes_from(&base), PortChanges::default());
    }

    fn tables() -> impl Strategy<Value = PortTable> {
        let names = proptest::sample::select(vec!["", "a", "b", "c"]);
        let request = (80_u16..84, names).prop_map(|(port, name)| (range(&port.to_string()), name));
        proptest::collection::vec(request, 0..8).prop_map(|requests| {
            let mut table = PortTable::default();
            for (range, name) in requests {
                table.open(range, (!name.is_empty()).then(|| endpoint(name)));
            }
            table
        })
    }

    proptest! {
        #[test]
        fn changes_lead_from_one_table_to_the_other(before in tables(), after in tables()) {
            let changes = after.changes_from(&before);
            prop_assert!(changes.open.is_disjoint(&changes.close));
            let mut table = before;
            table.apply(&changes);
            prop_assert_eq!(table, after);
        }
    }
}
