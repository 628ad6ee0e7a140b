//! Notices: events that clients ask for.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{duration::GoDuration, limits::PodLimits, message::NoticesQuery};

/// The type of notices that clients make.
pub(crate) const CUSTOM: &str = "custom";

/// The type of notices about changes.
pub(crate) const CHANGE_UPDATE: &str = "change-update";

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    id: u64,
    /// The user who may see it; none for all.
    user: Option<u32>,
    kind: &'static str,
    key: String,
    first: Timestamp,
    last: Timestamp,
    repeated: Timestamp,
    occurrences: u64,
    data: BTreeMap<String, String>,
    repeat_after: Option<GoDuration>,
}

/// One occurrence.
#[derive(Debug)]
pub(crate) struct Occurrence {
    pub(crate) user: Option<u32>,
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    pub(crate) data: BTreeMap<String, String>,
    pub(crate) repeat_after: Option<GoDuration>,
}

/// The result of an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occurred {
    /// The notice's id.
    pub(crate) id: u64,
    /// True if the notice is new, or repeats: its pause is over.
    pub(crate) is_repeated: bool,
}

/// All notices that are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices {
    notices: BTreeMap<u64, Notice>,
    last_id: u64,
    /// The latest time that a notice was given: each gets a later one, even if the clock is set back.
    latest: Option<Timestamp>,
    /// Notices that were dropped for want of room.
    pub(crate) dropped: u64,
}

impl Notices {
    /// Records an occurrence.
    pub(crate) fn occur(&mut self, date: Timestamp, occurrence: Occurrence, limits: &PodLimits) -> Occurred {
        let now = match self.latest {
            Some(latest) if latest >= date => {
                latest.saturating_add(SignedDuration::from_micros(1)).unwrap_or(latest)
            }
            _ => date,
        };
        self.latest = Some(now);
        let Occurrence { user, kind, key, data, repeat_after } = occurrence;
        let known = self.notices.values_mut().find(|it| it.user == user && it.kind == kind && it.key == key);
        if let Some(notice) = known {
            let pause = repeat_after.map_or(Duration::ZERO, |it| it.0);
            let is_repeated = age(now, notice.repeated) >= pause;
            if is_repeated {
                notice.repeated = now;
            }
            notice.last = now;
            notice.occurrences += 1;
            notice.data = data;
            notice.repeat_after = repeat_after;
            return Occurred { id: notice.id, is_repeated };
        }
        self.expire(now, limits);
        while self.notices.len() >= limits.notices.max(1) {
            let Some(oldest) = self.notices.values().min_by_key(|it| it.last).map(|it| it.id) else { break };
            self.notices.remove(&oldest);
            self.dropped += 1;
        }
        self.last_id += 1;
        let (id, first, last, repeated) = (self.last_id, now, now, now);
        let notice =
            Notice { id, user, kind, key, first, last, repeated, occurrences: 1, data, repeat_after };
        self.notices.insert(id, notice);
        Occurred { id, is_repeated: true }
    }

    fn expire(&mut self, now: Timestamp, limits: &PodLimits) {
        self.notices.retain(|_, notice| age(now, notice.last) < limits.notice_age);
    }

    /// Returns a notice. `user` is none for all users.
    pub(crate) fn shown(&self, id: u64, user: Option<Option<u32>>, limits: &PodLimits) -> Option<Value> {
        let notice = self.notices.get(&id)?;
        let is_visible = user.is_none_or(|user| notice.user.is_none() || notice.user == user);
        is_visible.then(|| notice.shown(limits))
    }

    /// Returns the notices of a query, by the time of their last repetition. `user` is none for all users.
    pub(crate) fn listed(
        &self,
        query: &NoticesQuery,
        user: Option<Option<u32>>,
        date: Timestamp,
        limits: &PodLimits,
    ) -> Vec<Value> {
        let mut found: Vec<&Notice> = self
            .notices
            .values()
            .filter(|it| age(date, it.last) < limits.notice_age)
            .filter(|it| user.is_none_or(|user| it.user.is_none() || it.user == user))
            .filter(|it| query.types.is_empty() || query.types.iter().any(|kind| kind == it.kind))
            .filter(|it| query.keys.is_empty() || query.keys.contains(&it.key))
            .filter(|it| query.after.is_none_or(|after| it.repeated > after))
            .collect();
        found.sort_by_key(|it| it.repeated);
        found.into_iter().map(|notice| notice.shown(limits)).collect()
    }

    /// Returns the number of notices.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.notices.len()
    }
}

/// Returns the time since an earlier one; zero for a later one.
fn age(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

impl Notice {
    fn shown(&self, limits: &PodLimits) -> Value {
        let mut shown = json!({
            "id": self.id.to_string(),
            "user-id": self.user,
            "type": self.kind,
            "key": self.key,
            "first-occurred": self.first.to_string(),
            "last-occurred": self.last.to_string(),
            "last-repeated": self.repeated.to_string(),
            "occurrences": self.occurrences,
            "expire-after": GoDuration(limits.notice_age).to_string(),
        });
        if let Some(shown) = shown.as_object_mut() {
            if !self.data.is_empty() {
                shown.insert("last-data".to_owned(), json!(self.data));
            }
            if let Some(pause) = self.repeat_after {
                shown.insert("repeat-after".to_owned(), pause.to_string().into());
            }
        }
        shown
    }
}

/// Refuses a key of a custom notice that is not `example.com/path`, and data that are too large.
pub(crate) fn check(key: &str, data: &BTreeMap<String, String>, limits: &PodLimits) -> Result<(), String> {
    if key.len() > limits.name {
        return Err(format!("custom notice key must be {} bytes or less", limits.name));
    }
    if !is_key(key) {
        return Err(format!("custom notice key {key:?} must be in \"domain.com/key\" format"));
    }
    let size: usize = data.iter().map(|(name, value)| name.len() + value.len()).sum();
    match size > limits.notice_data {
        true => Err(format!("total size of data must be {} bytes or less", limits.notice_data)),
        false => Ok(()),
    }
}

fn is_key(key: &str) -> bool {
    let is_word = |word: &str| {
        word.split('-').all(|part| {
            !part.is_empty() && part.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        })
    };
    let Some((domain, path)) = key.split_once('/') else { return false };
    domain.contains('.') && domain.split('.').all(is_word) && path.split('/').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn custom(key: &str, repeat_after: Option<u64>) -> Occurrence {
        let repeat_after = repeat_after.map(|it| GoDuration(Duration::from_secs(it)));
        Occurrence { user: Some(1), kind: CUSTOM, key: key.to_owned(), data: BTreeMap::new(), repeat_after }
    }

    #[test]
    fn a_notice_repeats_after_its_pause_alone() {
        let (mut notices, limits) = (Notices::default(), PodLimits::default());
        let repeated =
            |notices: &Notices| notices.shown(1, Some(Some(1)), &limits).unwrap()["last-repeated"].clone();
        notices.occur(at(0), custom("a.b/c", None), &limits);
        notices.occur(at(5), custom("a.b/c", Some(10)), &limits);
        assert_eq!(repeated(&notices), at(0).to_string());
        notices.occur(at(11), custom("a.b/c", Some(10)), &limits);
        assert_eq!(repeated(&notices), at(11).to_string());
        let shown = notices.shown(1, Some(Some(1)), &limits).unwrap();
        assert_eq!(shown["occurrences"], 3);
        assert_eq!(shown["expire-after"], "168h0m0s");
        assert_eq!(notices.shown(1, Some(Some(2)), &limits), None);
        assert!(notices.shown(1, None, &limits).is_some());
    }

    #[test]
    fn each_notice_is_later_than_the_one_before_though_the_clock_is_set_back() {
        let (mut notices, limits) = (Notices::default(), PodLimits::default());
        for (index, second) in [0, 0, -3_600, 5].into_iter().enumerate() {
            notices.occur(at(second), custom(&format!("a.b/k{index}"), None), &limits);
        }
        let listed = notices.listed(&NoticesQuery::default(), None, at(5), &limits);
        let keys: Vec<_> = listed.iter().map(|it| it["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["a.b/k0", "a.b/k1", "a.b/k2", "a.b/k3"]);
    }

    #[test]
    fn keys_are_checked() {
        for key in ["example.com/a", "a.b/c/d-e", "a-b.c1/0"] {
            assert!(is_key(key), "{key}");
        }
        for key in ["", "a", "a/b", "a.b", "a.b/", "a..b/c", "A.b/c", "a.b/c--d", "a.b/-c", "a.b/c d"] {
            assert!(!is_key(key), "{key}");
        }
    }

    proptest! {
        #[test]
        fn notices_stay_few(keys in proptest::collection::vec(0..50u8, 0..200)) {
            let (mut notices, limits) = (Notices::default(), PodLimits { notices: 7, ..PodLimits::default() });
            for (second, key) in keys.iter().enumerate() {
                notices.occur(at(second as i64), custom(&format!("a.b/{key}"), None), &limits);
                prop_assert!(notices.len() <= 7);
            }
        }
    }
}
