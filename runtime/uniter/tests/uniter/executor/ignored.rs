//! The inputs that have no effect, in each phase. Everything else has one effect, and none if it is repeated.

use periapt_host_api::ErrorCode;
use periapt_uniter::executor::{ExecutorInput, Returned, SendOutcome};

use super::{
    bench::{ACCEPTED, Bench, READY, UNREACHABLE, away, refused, unusable},
    phase::Phase,
};

/// An input, with an unchanged view and at an unchanged time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fed {
    Begin,
    Try,
    ChangedDependencies,
    StoreReplaced,
    Woken,
    CharmReady,
    CharmAway,
    CharmUnusable,
    Turn,
    Ended,
    CommitAccepted,
    CommitRefused,
    CommitUnreachable,
    EarlyAccepted,
    EarlyUnreachable,
}

use Fed::*;

impl Fed {
    const ALL: [Self; 15] = [
        Begin,
        Try,
        ChangedDependencies,
        StoreReplaced,
        Woken,
        CharmReady,
        CharmAway,
        CharmUnusable,
        Turn,
        Ended,
        CommitAccepted,
        CommitRefused,
        CommitUnreachable,
        EarlyAccepted,
        EarlyUnreachable,
    ];

    fn input(self, bench: &Bench) -> ExecutorInput {
        match self {
            Begin => ExecutorInput::Begin,
            Try => ExecutorInput::Try { operation: bench.operation(), deaths: 1 },
            ChangedDependencies => ExecutorInput::DependenciesChanged,
            StoreReplaced => ExecutorInput::StoreReplaced,
            Woken => ExecutorInput::Woken,
            CharmReady => READY,
            CharmAway => away(),
            CharmUnusable => unusable(),
            Turn => ExecutorInput::Turn,
            Ended => bench.end(Returned::Handled),
            CommitAccepted => ACCEPTED,
            CommitRefused => refused(ErrorCode::QuotaExceeded),
            CommitUnreachable => UNREACHABLE,
            EarlyAccepted => ExecutorInput::EarlyAnswered(SendOutcome::Accepted),
            EarlyUnreachable => ExecutorInput::EarlyAnswered(SendOutcome::Unreachable),
        }
    }
}

/// Returns the inputs that have an effect in a phase.
fn heard(phase: Phase) -> &'static [Fed] {
    match phase {
        Phase::New => &[Begin, Try],
        Phase::CharmAsked | Phase::TrialAsked => &[CharmReady, CharmAway, CharmUnusable],
        Phase::HookQueued | Phase::ActionQueued => &[Turn],
        Phase::HookRuns | Phase::ActionRuns | Phase::ActionStops => &[Ended],
        // The answer may come from the store before.
        Phase::CommitSent => &[CommitAccepted, CommitRefused, CommitUnreachable, StoreReplaced],
        Phase::CommitLost => &[StoreReplaced],
        // The commit is sent once the early effects before it are answered.
        Phase::CommitWaits => &[EarlyAccepted, EarlyUnreachable, StoreReplaced],
        Phase::Stopping => &[EarlyAccepted, EarlyUnreachable],
        // The view of another store need not show what these wait for.
        Phase::Accepted | Phase::Stale | Phase::Replaced | Phase::Terminated => &[StoreReplaced],
        // The cause of a refusal is unknown, so any change may remove it.
        Phase::Refused => &[ChangedDependencies, StoreReplaced],
        Phase::Resting | Phase::Retrying | Phase::CharmAway | Phase::Stopped => &[],
    }
}

/// Feeds an input, and returns its commands, and true if the executor changed.
fn fed(bench: &mut Bench, input: Fed) -> (Vec<String>, bool) {
    let before = format!("{:?}", bench.executor);
    let commands = bench.feed_one(input.input(bench));
    (bench.texts(&commands), before != format!("{:?}", bench.executor))
}

#[test]
fn an_input_has_an_effect_in_the_phases_that_wait_for_it_alone() {
    let mut breaches = Vec::new();
    for (phase, input) in Phase::ALL.into_iter().flat_map(|phase| Fed::ALL.map(|input| (phase, input))) {
        let (commands, changed) = fed(&mut phase.bench(), input);
        let heard = heard(phase).contains(&input);
        if changed != heard || !(heard || commands.is_empty()) {
            breaches.push(format!("{phase:?}, {input:?}: {commands:?}"));
        }
    }
    assert_eq!(breaches, [] as [String; 0]);
}

#[test]
fn an_input_that_comes_twice_has_one_effect() {
    let mut breaches = Vec::new();
    for (phase, input) in
        Phase::ALL.into_iter().flat_map(|phase| heard(phase).iter().map(move |input| (phase, *input)))
    {
        // The second one is about the commit that the first one made.
        if [(Phase::CommitSent, CommitRefused), (Phase::Terminated, StoreReplaced)].contains(&(phase, input))
        {
            continue;
        }
        let mut bench = phase.bench();
        fed(&mut bench, input);
        let (commands, changed) = fed(&mut bench, input);
        if changed || !commands.is_empty() {
            breaches.push(format!("{phase:?}, {input:?}: {commands:?}"));
        }
    }
    assert_eq!(breaches, [] as [String; 0]);
}
