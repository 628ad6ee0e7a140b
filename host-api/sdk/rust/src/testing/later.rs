//! Events that the charm under test asked to be told later.

use super::harness::{Harness, Outcome};
use crate::{Charm, CustomEvent, Event, Pending};

impl<C: Charm> Harness<C> {
    /// What the charm waits for, by number.
    pub fn pending(&self) -> Vec<Pending> {
        let events = self.state().durable.events.iter();
        events
            .map(|(id, later)| {
                let json = later.json.clone().unwrap_or_else(|| "null".to_owned());
                Pending::new(*id, later.name.clone(), json, later.after)
            })
            .collect()
    }

    /// The first event of a name that the charm waits for is told, whatever makes it due. If its hook fails, the charm
    /// still waits for it, as for another attempt.
    ///
    /// # Errors
    ///
    /// The hook's failure.
    ///
    /// # Panics
    ///
    /// If the charm waits for no event of the name.
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
