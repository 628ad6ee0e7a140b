//! Custom events that the charm under test scheduled.

use super::harness::{Harness, Outcome};
use crate::{Charm, CustomEvent, Event, Pending};

impl<C: Charm> Harness<C> {
    /// Returns the pending events, by number.
    pub fn pending(&self) -> Vec<Pending> {
        let events = self.state().durable.events.iter();
        events
            .map(|(id, later)| {
                let json = later.json.clone().unwrap_or_else(|| "null".to_owned());
                Pending::new(*id, later.name.clone(), json, later.after)
            })
            .collect()
    }

    /// Runs the first pending event of a name, with or without its conditions. If its hook fails, the event stays
    /// pending, as for another attempt.
    ///
    /// # Errors
    ///
    /// The hook's failure.
    ///
    /// # Panics
    ///
    /// When no event of the name is pending.
    #[expect(clippy::panic, reason = "only tests come here, and this one expects what does not happen")]
    pub fn fire(&mut self, name: &str) -> Outcome {
        let Some(event) = self.pending().into_iter().find(|event| event.name == name) else {
            panic!("the charm waits for no event {name}")
        };
        let waited_for = self.state_mut().durable.events.remove(&event.id);
        let outcome = self.run(Event::Custom(CustomEvent { name: event.name, json: event.json }));
        if let (Err(_), Some(later)) = (&outcome, waited_for) {
            self.state_mut().durable.events.insert(event.id, later);
        }
        outcome
    }
}
