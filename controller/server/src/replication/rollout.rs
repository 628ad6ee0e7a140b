//! The order in which controllers replace their programs: one after the other, followers first, the leader last.

use periapt_host_api::{
    command::{MemberInfo, MemberRole},
    program::{ProgramTarget, RunningProgram},
};

/// The next step of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The controller of this name replaces its program.
    Replace(String),
    /// A controller is away, not up to date, or on trial.
    Wait,
    /// A controller has not taken the program.
    Stopped,
    /// All controllers run the program.
    Done,
}

/// Returns the next step. `is_running` tells if a controller has reported a moment ago.
pub(crate) fn next_step(
    target: &ProgramTarget,
    members: &[MemberInfo],
    is_running: impl Fn(&str) -> bool,
) -> Step {
    let programs = || members.iter().filter_map(|member| member.program.as_ref());
    if programs().any(|program| program.failure_of(target).is_some()) {
        return Step::Stopped;
    }
    let is_ready = |member: &MemberInfo| {
        let is_on_trial = |program: &RunningProgram| program.trial;
        is_running(&member.name)
            && !member.stale
            && member.program.as_ref().is_some_and(|program| !is_on_trial(program))
    };
    if !members.iter().all(is_ready) {
        return Step::Wait;
    }
    let lacks = |member: &&MemberInfo| member.program.as_ref().is_some_and(|program| !program.is(target));
    let followers = members.iter().filter(|member| member.role == MemberRole::Follower);
    let leader = members.iter().filter(|member| member.role == MemberRole::Leader);
    let next = followers.chain(leader).find(lacks);
    next.map_or(Step::Done, |member| Step::Replace(member.name.clone()))
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        Digest, LEVEL, Revision,
        program::{FailedProgram, ProgramOffer},
    };

    use super::*;

    fn target() -> ProgramTarget {
        let offer = ProgramOffer {
            digest: Digest::of(b"new"),
            version: "2".into(),
            architecture: "x86_64".into(),
            level: LEVEL,
        };
        ProgramTarget { offer, size: 3, number: 4, released: false }
    }

    /// Returns three controllers with these programs. The first one leads.
    fn members(programs: [&str; 3]) -> Vec<MemberInfo> {
        let member = |(name, program): (&str, &str)| MemberInfo {
            name: name.to_owned(),
            url: format!("https://{name}:1"),
            role: if name == "one" { MemberRole::Leader } else { MemberRole::Follower },
            stale: false,
            cut_off: false,
            away: false,
            revision: Revision(7),
            level: LEVEL,
            program: Some(RunningProgram {
                version: "2".into(),
                digest: Digest::of(program.as_bytes()),
                trial: false,
                failed: None,
            }),
            failing_workers: Vec::new(),
        };
        ["one", "three", "two"].into_iter().zip(programs).map(member).collect()
    }

    fn step(members: &[MemberInfo]) -> Step {
        next_step(&target(), members, |_| true)
    }

    #[test]
    fn followers_go_one_after_the_other_and_the_leader_last() {
        let replace = |name: &str| Step::Replace(name.to_owned());
        for (programs, expected) in [
            (["old", "old", "old"], replace("three")),
            (["old", "new", "old"], replace("two")),
            (["old", "new", "new"], replace("one")),
            (["new", "old", "new"], replace("three")),
            (["new", "new", "new"], Step::Done),
        ] {
            assert_eq!(step(&members(programs)), expected, "{programs:?}");
        }
    }

    #[test]
    fn none_goes_while_another_one_is_away_behind_on_trial_or_of_an_earlier_release() {
        let change = |change: &dyn Fn(&mut MemberInfo)| {
            let mut members = members(["old", "new", "old"]);
            change(&mut members[1]);
            step(&members)
        };
        assert_eq!(change(&|member| member.stale = true), Step::Wait);
        assert_eq!(change(&|member| member.program = None), Step::Wait);
        assert_eq!(change(&|member| member.program.as_mut().unwrap().trial = true), Step::Wait);
        assert_eq!(next_step(&target(), &members(["old", "new", "old"]), |name| name != "three"), Step::Wait);
        assert_eq!(next_step(&target(), &members(["old", "new", "old"]), |name| name != "two"), Step::Wait);
    }

    #[test]
    fn a_rollout_stops_where_a_controller_went_back_and_goes_on_with_the_next_target() {
        let mut members = members(["old", "old", "old"]);
        let failed = FailedProgram { digest: Digest::of(b"new"), number: 4, reason: "it hung".into() };
        members[1].program.as_mut().unwrap().failed = Some(failed);
        assert_eq!(step(&members), Step::Stopped);
        let again = ProgramTarget { number: 5, ..target() };
        assert_eq!(next_step(&again, &members, |_| true), Step::Replace("three".into()));
    }
}
