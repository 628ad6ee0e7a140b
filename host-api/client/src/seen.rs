//! The newest state that a client has seen, which goes with its requests from one controller to the next.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use periapt_host_api::{agent, api::WatchPosition};
use tokio::time::Instant;

/// The time for which the position of an earlier client counts, unless this client sees as much. Controllers show nothing
/// that is older; one that no controller reaches, because their log was put back, must not keep calls waiting for ever.
const EARLIER_COUNTS_FOR: Duration = Duration::from_secs(60);

/// The newest state that a client has seen or was answered. Clones are the same.
///
/// Each of several controllers says with each answer how new the state is that it shows. With the next request the client
/// says how new a state it has seen, and a controller that is behind waits until it has applied as much. A controller
/// that is alone says nothing, as its state never goes back.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Known>>);

/// The newest position.
#[derive(Debug, Default)]
struct Known {
    position: Option<WatchPosition>,
    /// The time until which that of an earlier client counts; none if this client has seen it.
    until: Option<Instant>,
}

impl Known {
    fn position(&mut self) -> Option<WatchPosition> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            *self = Self::default();
        }
        self.position
    }
}

impl Seen {
    /// Creates a record that begins with the position of an earlier client; none if there was none.
    pub fn starting_with(position: Option<WatchPosition>) -> Self {
        let until = position.map(|_| Instant::now() + EARLIER_COUNTS_FOR);
        Self(Arc::new(Mutex::new(Known { position, until })))
    }

    /// Returns the position of the newest state; none if nothing was seen yet.
    pub fn position(&self) -> Option<WatchPosition> {
        self.0.lock().position()
    }

    /// Takes the position of an answer. One of another store takes the place of what was seen before.
    pub(crate) fn note(&self, answer: &HeaderMap) {
        let Some(told) = told(answer) else { return };
        let mut seen = self.0.lock();
        match seen.position() {
            Some(known) if known.store == told.store && known.revision > told.revision => {}
            _ => *seen = Known { position: Some(told), until: None },
        }
    }

    /// Takes the position of a later item of a stream. It counts for its own store alone: a stream may outlive the answers
    /// of that store.
    pub(crate) fn raise(&self, shown: WatchPosition) {
        let mut seen = self.0.lock();
        if let Some(known) = seen.position()
            && known.store == shown.store
            && known.revision <= shown.revision
        {
            *seen = Known { position: Some(shown), until: None };
        }
    }

    /// Adds the position to a request.
    pub(crate) fn tell(&self, request: &mut HeaderMap) {
        let text = self.position().map(|position| position.to_string());
        if let Some(value) = text.and_then(|text| HeaderValue::try_from(text).ok()) {
            request.insert(agent::header::SEEN, value);
        }
    }
}

/// Returns the position that an answer tells.
pub(crate) fn told(answer: &HeaderMap) -> Option<WatchPosition> {
    answer.get(agent::header::SEEN).and_then(|told| told.to_str().ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = "00000000-0000-0000-0000-000000000007";

    #[test]
    fn what_was_seen_never_goes_back_unless_the_store_is_another() {
        let seen = Seen::default();
        let mut request = HeaderMap::new();
        seen.tell(&mut request);
        assert!(request.is_empty());
        let note = |text: &str| {
            let value = HeaderValue::from_str(text).unwrap();
            seen.clone().note(&HeaderMap::from_iter([(agent::header::SEEN.parse().unwrap(), value)]));
        };
        note(&format!("{STORE}/7"));
        note(&format!("{STORE}/5"));
        for other in ["", "/", "7", &format!("{STORE}/"), &format!("{STORE}/-1"), &format!("{STORE}/7/8")] {
            note(other);
        }
        seen.tell(&mut request);
        assert_eq!(request[agent::header::SEEN], format!("{STORE}/7"));
        let raise = |text: &str| seen.raise(text.parse().unwrap());
        raise(&format!("{STORE}/9"));
        raise(&format!("{STORE}/8"));
        assert_eq!(seen.position().unwrap().to_string(), format!("{STORE}/9"));
        let other = STORE.replace('7', "8");
        note(&format!("{other}/2"));
        raise(&format!("{STORE}/10"));
        assert_eq!(seen.position().unwrap().to_string(), format!("{other}/2"));
        let later = Seen::starting_with(seen.position());
        assert_eq!(later.position(), seen.position());
        let mut request = HeaderMap::new();
        later.tell(&mut request);
        assert_eq!(request[agent::header::SEEN], format!("{other}/2"));
        let nothing = Seen::starting_with(None);
        nothing.raise(format!("{STORE}/7").parse().unwrap());
        assert!(nothing.position().is_none(), "a controller that is alone tells no position");
    }

    #[tokio::test(start_paused = true)]
    async fn the_position_of_an_earlier_client_counts_for_a_minute_unless_it_is_seen() {
        let position = format!("{STORE}/7").parse().ok();
        let (kept, seen) = (Seen::starting_with(position), Seen::starting_with(position));
        seen.raise(format!("{STORE}/7").parse().unwrap());
        tokio::time::advance(EARLIER_COUNTS_FOR).await;
        assert_eq!((kept.position(), seen.position()), (None, position));
    }
}
