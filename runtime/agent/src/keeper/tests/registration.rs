//! Tests of when a controller is told about the firewall of an agent's host.

use std::time::Duration;

use periapt_host_api::Refusal;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::fake::{FakeController, host};
use crate::keeper::{
    controller::ControllerError,
    registration::{AgentRegistration, REPORTED_EVERY},
};

/// A registration whose firewall the test plays.
struct Played {
    controller: FakeController,
    problem: watch::Sender<Option<String>>,
    reporting: JoinHandle<()>,
}

impl Played {
    /// Registers without a problem, and begins to report.
    async fn begin() -> Self {
        let (controller, problem) = (FakeController::without_models(), watch::Sender::default());
        let mut registration = AgentRegistration::new(controller.clone(), host(), Some(problem.subscribe()));
        registration.send().await.unwrap();
        let reporting = tokio::spawn(report(registration));
        Self { controller, problem, reporting }
    }

    fn has_problem(&self, problem: Option<&str>) {
        self.problem.send_replace(problem.map(str::to_owned));
    }

    /// Waits for so many registrations, and returns the problem in each.
    async fn registrations(&self, number: usize) -> Vec<Option<String>> {
        let arrive = async {
            while self.controller.firewall_problems().len() < number {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(100 * REPORTED_EVERY, arrive).await.unwrap();
        self.controller.firewall_problems()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.reporting.abort();
    }
}

async fn report(mut registration: AgentRegistration<FakeController>) {
    loop {
        registration.due().await;
        registration.report().await;
    }
}

fn problems(all: &[Option<&str>]) -> Vec<Option<String>> {
    all.iter().map(|problem| problem.map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_problem_that_comes_and_goes_is_reported_at_its_pace() {
    let played = Played::begin().await;
    let begun = Instant::now();
    played.has_problem(Some("one"));
    assert_eq!(played.registrations(2).await, problems(&[None, Some("one")]));
    assert!(begun.elapsed() < REPORTED_EVERY, "the first one is told at once");
    for _ in 0..100 {
        for problem in [None, Some("other"), None, Some("one")] {
            played.has_problem(problem);
            sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(played.controller.firewall_problems().len(), 2, "the controller knows the last state");
    sleep(2 * REPORTED_EVERY).await;
    assert_eq!(played.controller.firewall_problems().len(), 2, "it is as it was told");
    let begun = Instant::now();
    played.has_problem(None);
    assert_eq!(played.registrations(3).await.last(), Some(&None));
    played.has_problem(Some("other"));
    assert_eq!(played.registrations(4).await.last(), Some(&Some("other".to_owned())));
    assert!(begun.elapsed() >= REPORTED_EVERY);
}

#[tokio::test(start_paused = true)]
async fn what_a_controller_has_not_taken_is_sent_again_and_ends_no_agent() {
    let played = Played::begin().await;
    let failures = [
        ControllerError::Away("it is restarted".to_owned()),
        ControllerError::Refused(Refusal::bad_request("it knows better")),
    ];
    for (number, failure) in (2..).zip(failures) {
        *played.controller.registers.lock() = Err(failure);
        played.has_problem(Some("one"));
        let told = played.registrations(number).await;
        assert_eq!(told.last(), Some(&Some("one".to_owned())));
    }
    // The problem has ended, but a request without an answer may have had its effect.
    *played.controller.registers.lock() = Ok(());
    played.has_problem(None);
    assert_eq!(played.registrations(4).await, problems(&[None, Some("one"), Some("one"), None]));
    sleep(10 * REPORTED_EVERY).await;
    assert_eq!(played.controller.firewall_problems().len(), 4, "nothing is left to tell");
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_firewall_reports_nothing() {
    let controller = FakeController::without_models();
    let mut registration = AgentRegistration::new(controller.clone(), host(), None);
    registration.send().await.unwrap();
    assert!(timeout(10 * REPORTED_EVERY, report(registration)).await.is_err());
    assert_eq!(controller.firewall_problems(), problems(&[None]));
}
