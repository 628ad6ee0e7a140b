//! The wait for all controllers to take a program.

use std::{collections::BTreeMap, time::Duration};

use periapt_host_api::{
    command::ControllerInfo,
    program::{ProgramOffer, ProgramTarget, RunningProgram},
};
use tokio::time::{Instant, sleep};

use crate::{
    context::{Context, Controller},
    error::{Failure, Result},
};

/// The pause between two looks.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// Returns what each controller runs, by its name; one that is alone has that of the whole.
pub(super) fn controllers(info: &ControllerInfo) -> BTreeMap<String, Option<RunningProgram>> {
    match info.members.as_slice() {
        [] => [(info.name.clone(), info.program.clone())].into(),
        members => members.iter().map(|member| (member.name.clone(), member.program.clone())).collect(),
    }
}

/// Waits until all controllers run the program, and tells each step.
///
/// # Errors
/// A controller has not taken it, another program was set meanwhile, or it takes too long.
pub(super) async fn finished(
    context: &Context,
    controller: &Controller,
    offer: &ProgramOffer,
    within: Duration,
) -> Result<ControllerInfo> {
    let deadline = Instant::now() + within;
    let (mut told, mut number) = (BTreeMap::new(), None);
    loop {
        // A controller that replaces itself is away for a moment.
        if let Ok(info) = controller.client.controller().await
            && let Some(target) = &info.target
        {
            let expected = *number.get_or_insert(target.number);
            if target.number > expected || target.offer.digest != offer.digest {
                return Err(Failure::new("another program was set meanwhile"));
            }
            tell(context, &info, target, &mut told);
            if let Some(failure) = failure(&info, target) {
                return Err(failure);
            }
            if target.released && target.number == expected {
                return Ok(info);
            }
        }
        if Instant::now() > deadline {
            let text = format!("not all controllers run the program after {} s", within.as_secs());
            return Err(Failure::new(text).with_hint(
                "they go on by themselves once each is there and up to date: `periapt show-controller` shows which is not",
            ));
        }
        sleep(LOOKS_EVERY).await;
    }
}

fn tell(
    context: &Context,
    info: &ControllerInfo,
    target: &ProgramTarget,
    told: &mut BTreeMap<String, &'static str>,
) {
    for (name, program) in controllers(info) {
        let Some(program) = program.filter(|program| program.digest == target.offer.digest) else { continue };
        let step = if program.trial { "tries" } else { "runs" };
        if told.insert(name.clone(), step) != Some(step) {
            context.say(format_args!("Controller \"{name}\" {step} {program}"));
        }
    }
}

/// Returns the failure of the first controller that has not taken the program.
fn failure(info: &ControllerInfo, target: &ProgramTarget) -> Option<Failure> {
    controllers(info).into_iter().find_map(|(name, program)| {
        let program = program?;
        let reason = &program.failure_of(target)?.reason;
        let text = format!("controller \"{name}\" goes on with {program}, and did not take the new program: {reason}");
        Some(Failure::new(text).with_hint(
            "the rollout has stopped, and no other controller takes it: run this command again with a better program, or \
             with the same one for another try",
        ))
    })
}
