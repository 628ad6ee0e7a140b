//! A charm of each released version of the contract. Each must run for ever.

use periapt_archive::{Archive, COMPONENT};
use periapt_host_api::{commit::EarlyEffect, event::Event};
use periapt_sandbox::HandlerOutcome;

use crate::world::{Hook, SANDBOX};

/// `charms/hello-c`, packed when 0.1.0 was the contract. The file is never packed again.
const HELLO_0_1_0: &[u8] = include_bytes!("../fixtures/hello-0.1.0.charm");

#[tokio::test]
async fn a_charm_of_contract_0_1_0_still_runs() {
    let archive = Archive::read(HELLO_0_1_0).unwrap();
    let loaded = SANDBOX.compile_in_process(archive.file(COMPONENT).unwrap()).unwrap();
    let prepared = SANDBOX.prepare(&loaded, None).unwrap();
    let yaml = std::str::from_utf8(archive.file("charmcraft.yaml").unwrap()).unwrap();
    let ran = Hook::new(Event::ConfigChanged).run_in(&SANDBOX, &prepared, yaml).await.unwrap();
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled, "{:?}", ran.log());
    assert!(!ran.report.gathered.effects.ports.open.is_empty());
    assert!(ran.early.iter().any(|(_, effect)| matches!(effect, EarlyEffect::UnitStatus { .. })));
}
