//! H8: an entry that is trimmed is durable on two disks, or, beyond the bound of the log, on that of the controller that leads.

use periapt_host_api::{Level, Revision};

use crate::simulation::witness::{Event, Trim};

/// The first level at which the state lists the controllers. Before, one that leads may know no other, and trims what is on
/// its own disk.
const LISTED_FROM: Level = Level(2);

/// Checks each trimming of a log that has room for so many bytes.
///
/// # Errors
/// H8
pub(super) fn leaves_what_is_durable(
    events: &[Event],
    level: impl Fn(Revision) -> Level,
    most: u64,
) -> Result<(), String> {
    let mut end = Revision(0);
    for event in events {
        let trim = match event {
            Event::Appended { position, .. } => {
                end = end.max(*position);
                continue;
            }
            Event::Trimmed(trim) => trim,
            _ => continue,
        };
        let Trim { host, through, own, elsewhere, bytes } = trim;
        if through > own {
            return Err(format!("H8: {host} trims through {through}, and its own disk has {own}"));
        }
        let fits = *bytes <= most;
        if fits && level(end) >= LISTED_FROM && through > elsewhere {
            return Err(format!(
                "H8: {host} trims through {through}, and no other disk has more than {elsewhere}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 1_000;

    fn check(own: u64, elsewhere: u64, bytes: u64, level: Level) -> Result<(), String> {
        let (own, elsewhere) = (Revision(own), Revision(elsewhere));
        let trim = Trim { host: "one", through: Revision(7), own, elsewhere, bytes };
        leaves_what_is_durable(&[Event::Trimmed(trim)], |_| level, MOST)
    }

    #[test]
    fn what_is_trimmed_is_on_two_disks_or_beyond_the_bound_on_one() {
        check(7, 7, MOST, Level(2)).unwrap();
        check(9, 0, MOST + 1, Level(2)).unwrap();
        check(9, 0, MOST, Level::FIRST).unwrap();
    }

    #[test]
    fn a_trimming_of_what_is_not_durable_is_found() {
        for (own, elsewhere, bytes, level) in [
            (6, 9, MOST, Level(2)),
            (9, 6, MOST, Level(2)),
            (6, 0, MOST + 1, Level(2)),
            (6, 9, MOST, Level::FIRST),
        ] {
            let found = check(own, elsewhere, bytes, level).unwrap_err();
            assert!(found.starts_with("H8: "), "{found}");
        }
    }
}
