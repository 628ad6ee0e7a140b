//! A benchmark of the sandbox against its bare engine: an empty hook, and a host call.
//!
//! `make bench` runs it; docs/performance.md explains the rows.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what the tests share says so; a benchmark may fail as they do"
)]
#![expect(clippy::print_stdout, reason = "the figures are its output")]

mod bare;
#[path = "../../../../tests/benches/figures/figures.rs"]
mod figures;
#[path = "../../../../tests/benches/figures/wall.rs"]
mod wall;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/it/world.rs"]
mod world;

use std::{collections::BTreeMap, error::Error, sync::Arc};

use periapt_hook::{HookContext, HookInputs, HookLimits, LeaseState};
use periapt_host_api::{event::Event, view::View};
use periapt_sandbox::{Budgets, HandlerOutcome, Options, Prepared, RunInputs, Sandbox, Seed};
use tokio::runtime::Runtime;

use bare::BareEngine;
use figures::{Figure, Sample};
use wall::seconds;
use world::World;

const YAML: &str = include_str!("../../../../charms/bench/charmcraft.yaml");

/// The hooks of one sample, which is their mean.
const NOTHING: u32 = 500;
const ASKING: u32 = 10;

/// The number of host calls in the charm's `joined` hook.
const CALLS: f64 = 1_000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let component = world::component("bench");
    let ours = Ours::new(&component)?;
    let bare = BareEngine::new(&component)?;

    let hook = Figure { name: "a hook that does nothing", unit: "µs", rounds: 40 };
    hook.measure(
        || Ok(ours.hooks(&Event::UpdateStatus, NOTHING)? * 1e6),
        || Ok(bare.hooks(&bare::update_status(), NOTHING)? * 1e6),
    )?;

    // The cost of an empty hook is subtracted on both sides.
    let call = Figure { name: "a host call (relation-get)", unit: "ns", rounds: 40 };
    let joined = Event::RelationJoined { relation: world::peer(), remote_unit: world::unit("u/1") };
    let per_call = |asking: f64, nothing: f64| (asking - nothing) / CALLS * 1e9;
    call.measure(
        || Ok(per_call(ours.hooks(&joined, ASKING)?, ours.hooks(&Event::UpdateStatus, ASKING)?)),
        || Ok(per_call(bare.hooks(&bare::joined(), ASKING)?, bare.hooks(&bare::update_status(), ASKING)?)),
    )
}

/// The sandbox as in a runner.
struct Ours {
    sandbox: Sandbox,
    prepared: Prepared,
    view: View,
    world: Arc<World>,
    runtime: Runtime,
}

impl Ours {
    fn new(component: &[u8]) -> Result<Self, Box<dyn Error>> {
        let sandbox = Sandbox::new(Options::default())?;
        let prepared = sandbox.prepare(&sandbox.compile_in_process(component)?, None)?;
        let mut view = world::view(YAML, BTreeMap::new());
        for bag in view.bags.clone().values() {
            let mut bag = bag.clone();
            bag.settings.insert("address".to_owned(), bare::ADDRESS.to_owned());
            view.bags.insert(bag.key.clone(), bag);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(Self { sandbox, prepared, view, world: Arc::default(), runtime })
    }

    /// Runs this many hooks, each from its view to its effects. Returns the seconds per hook.
    fn hooks(&self, event: &Event, count: u32) -> Sample {
        let took = seconds(|| {
            self.runtime.block_on(async {
                for _ in 0..count {
                    self.hook(event.clone()).await?;
                }
                Ok::<_, Box<dyn Error>>(())
            })
        });
        Ok(took? / f64::from(count))
    }

    async fn hook(&self, event: Event) -> Result<(), Box<dyn Error>> {
        let context = HookContext::new(HookInputs {
            view: self.view.clone(),
            unit: world::unit("u/0"),
            event,
            attempt: 1,
            lease: LeaseState::default(),
            context_id: "0123456789abcdef0123456789abcdef".to_owned(),
            ids: periapt_hook::IdSeed([9; 32]),
            api_addresses: Vec::new(),
            limits: HookLimits::default(),
        })?;
        let services = Arc::clone(&self.world) as Arc<_>;
        let inputs = RunInputs {
            context,
            seed: Seed([7; 32]),
            budgets: Budgets::default(),
            storage: Vec::new(),
            services,
        };
        let report = self.sandbox.run_hook(&self.prepared, inputs).await?;
        match report.outcome {
            HandlerOutcome::Handled => Ok(()),
            outcome => Err(format!("the hook was not handled: {outcome:?}").into()),
        }
    }
}
