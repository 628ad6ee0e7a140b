//! H2: an answer leaves once its entry is in the log, or its term was confirmed after it was evaluated.

use std::collections::BTreeMap;

use periapt_host_api::Revision;
use periapt_log::Term;

use crate::simulation::witness::Event;

/// A batch of commands that a host has evaluated.
struct Evaluated {
    term: Term,
    /// True once the log has its entry, or has confirmed its term.
    is_sure: bool,
}

/// Checks that no writer answers before the log has the batch or confirms the term, and that nothing is shown which the log
/// does not have.
///
/// # Errors
/// H2
pub(super) fn rest_on_the_log(events: &[Event]) -> Result<(), String> {
    let mut end = Revision(0);
    let mut batches: BTreeMap<&str, Evaluated> = BTreeMap::new();
    for event in events {
        match event {
            Event::Appended { host, term, position } => {
                end = end.max(*position);
                sure(&mut batches, host, *term);
            }
            Event::Confirmed { host, term } => sure(&mut batches, host, *term),
            Event::Evaluated { host, term } => {
                batches.insert(host, Evaluated { term: *term, is_sure: false });
            }
            Event::Answers { host, shown, .. } if *shown > end => {
                return Err(format!("H2: {host} answers with position {shown}, and the log ends at {end}"));
            }
            Event::Answers { host, term, .. } => {
                let batch = batches.remove(*host).filter(|batch| batch.term == *term);
                if !batch.is_some_and(|batch| batch.is_sure) {
                    return Err(format!(
                        "H2: {host} answers in term {term}, and the log has neither the entry nor confirmed the term \
                         since the commands were evaluated"
                    ));
                }
            }
            Event::Shown { to, position } if *position > end => {
                return Err(format!(
                    "H2: client {to} is shown position {position}, and the log ends at {end}"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn sure(batches: &mut BTreeMap<&str, Evaluated>, host: &str, term: Term) {
    if let Some(batch) = batches.get_mut(host).filter(|batch| batch.term == term) {
        batch.is_sure = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVALUATED: Event = Event::Evaluated { host: "one", term: Term(2) };
    const CONFIRMED: Event = Event::Confirmed { host: "one", term: Term(2) };
    const APPENDED: Event = Event::Appended { host: "one", term: Term(2), position: Revision(7) };

    fn answers(shown: u64) -> Event {
        Event::Answers { host: "one", term: Term(2), shown: Revision(shown) }
    }

    fn breaks(events: &[Event]) {
        assert!(rest_on_the_log(events).unwrap_err().starts_with("H2: "), "{events:?}");
    }

    #[test]
    fn answers_to_what_was_written_or_confirmed_hold() {
        rest_on_the_log(&[EVALUATED, APPENDED, answers(7)]).unwrap();
        rest_on_the_log(&[APPENDED, EVALUATED, CONFIRMED, answers(7)]).unwrap();
        rest_on_the_log(&[APPENDED, Event::Shown { to: 3, position: Revision(7) }]).unwrap();
    }

    #[test]
    fn an_answer_without_an_entry_or_a_confirmation_after_the_evaluation_is_found() {
        breaks(&[APPENDED, EVALUATED, answers(7)]);
        breaks(&[APPENDED, CONFIRMED, EVALUATED, answers(7)]);
        breaks(&[APPENDED, EVALUATED, Event::Confirmed { host: "two", term: Term(2) }, answers(7)]);
        breaks(&[APPENDED, EVALUATED, Event::Confirmed { host: "one", term: Term(1) }, answers(7)]);
        // One confirmation is for one batch.
        breaks(&[APPENDED, EVALUATED, CONFIRMED, answers(7), EVALUATED, answers(7)]);
    }

    #[test]
    fn an_answer_that_shows_what_the_log_does_not_have_is_found() {
        breaks(&[EVALUATED, CONFIRMED, answers(7), APPENDED]);
        breaks(&[APPENDED, Event::Shown { to: 3, position: Revision(8) }]);
    }
}
