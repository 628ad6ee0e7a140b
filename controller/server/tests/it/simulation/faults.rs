//! The faults of a simulation. Each hits one host or line, lasts a while, and is mended.

use std::{ops::Range, sync::Arc, time::Duration};

use periapt_transport::Line;

use super::{
    chance::Chance,
    log::LogWeather,
    world::{End, NAMES, World},
};

/// The numbers of faults of controllers, and of faults of the network beside them.
pub(super) const OF_CONTROLLERS: usize = 9;
pub(super) const OF_THE_NETWORK: usize = 14;

/// The kinds of faults of controllers, and those of their lines to the log alone. Two of these may meet.
pub(super) const ALL: Range<usize> = 0..13;
pub(super) const OF_LOGS: Range<usize> = 5..11;

/// A fault of a host's controller.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// It ends, and starts again later.
    Ends(End),
    /// Its line to the log.
    Log(LogWeather),
    /// Its line to the log is cut.
    LogCut,
    /// Its clock is set, by less than clocks may differ.
    ClockAhead(i64),
    /// Its clock is set an hour ahead or back, and later set right.
    ClockFarOff(i64),
}

/// Makes faults of controllers, of these kinds, one after the other.
pub(super) async fn of_controllers(
    world: Arc<World>,
    kinds: Range<usize>,
    faults: usize,
    mut chance: Chance,
) {
    for _ in 0..faults {
        tokio::time::sleep(chance.millis(200..3_000)).await;
        let host = chance.pick(&world.hosts);
        let fault = fault(kinds.start + chance.below(kinds.len()), &mut chance);
        // A leadership lasts two seconds, and what is shown is old after five.
        let lasts = chance.millis(300..9_000);
        world.note(format_args!("{}: {fault:?} for {} ms", host.name, lasts.as_millis()));
        match fault {
            Fault::Ends(end) => {
                world.end(host, end).await;
                tokio::time::sleep(lasts).await;
                if chance.one_in(2) {
                    world.upgrade(host);
                }
                world.start(host).await;
            }
            Fault::Log(weather) => {
                host.set_log(weather);
                tokio::time::sleep(lasts).await;
                host.set_log(LogWeather::default());
            }
            Fault::LogCut => {
                host.cut_log();
                tokio::time::sleep(lasts).await;
                host.set_log(LogWeather::default());
            }
            Fault::ClockAhead(by_ms) => host.clock.set_ahead(by_ms),
            Fault::ClockFarOff(by_ms) => {
                host.clock.set_ahead(by_ms);
                tokio::time::sleep(lasts).await;
                host.clock.set_ahead(0);
            }
        }
        world.note(format_args!("{} is mended", host.name));
    }
}

fn fault(kind: usize, chance: &mut Chance) -> Fault {
    let usual = LogWeather::default();
    match kind {
        0 | 1 => Fault::Ends(End::Stop),
        2 => Fault::Ends(End::Kill),
        3 | 4 => Fault::Ends(End::PowerLoss),
        5 | 6 => Fault::LogCut,
        7 => Fault::Log(LogWeather { is_paused: true, ..usual }),
        8 => Fault::Log(LogWeather { late_ms: 800, lag_ms: 3_000, ..usual }),
        9 => Fault::Log(LogWeather { late_ms: 20, lost_calls: 30, ..usual }),
        10 => Fault::Log(LogWeather { late_ms: 20, lost_answers: 50, ..usual }),
        11 => Fault::ClockFarOff(if chance.one_in(2) { 3_600_000 } else { -3_600_000 }),
        // Two clocks must not differ by a minute.
        _ => Fault::ClockAhead(chance.below(50_000) as i64 - 25_000),
    }
}

/// Makes faults of the lines between hosts, one after the other.
pub(super) async fn of_the_network(world: Arc<World>, faults: usize, mut chance: Chance) {
    for _ in 0..faults {
        tokio::time::sleep(chance.millis(100..2_500)).await;
        let callers: Vec<_> = NAMES.into_iter().chain(world.callers.iter().copied()).collect();
        let (caller, host) = (*chance.pick(&callers), chance.pick(&world.hosts));
        let line = match chance.below(5) {
            0 => Line::Cut,
            1 => Line::Silent,
            2 | 3 => Line::NoAnswers,
            _ => Line::Slow(Duration::from_millis(400)),
        };
        let lasts = chance.millis(100..6_000);
        world.note(format_args!("{caller} to {}: {line:?} for {} ms", host.name, lasts.as_millis()));
        world.network.set(caller, host.address, line);
        tokio::time::sleep(lasts).await;
        // What was held breaks off, too: an answer is lost whose request was carried out.
        if chance.one_in(2) {
            world.network.set(caller, host.address, Line::Cut);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        world.network.set(caller, host.address, Line::Up);
    }
}
