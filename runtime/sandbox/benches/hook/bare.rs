//! The baseline: the same component in the bare engine, with an empty store, without budgets or WASI. All imports
//! trap, except the measured host call.

use std::error::Error;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    component::{Component, Linker},
};

use crate::{figures::Sample, wall::seconds};
use bindings::{
    CharmPre,
    periapt::charm::{
        relations::Bag,
        types::{Error as CallError, Event, Invocation, Outcome, RelationJoinedEvent},
    },
};

mod bindings {
    wasmtime::component::bindgen!({ path: "../../host-api/wit", world: "charm" });
}

/// The result of the host call, in both engines.
pub(crate) const ADDRESS: &str = "10.152.183.41";

/// The engine with the component.
pub(crate) struct BareEngine {
    engine: Engine,
    charm: CharmPre<()>,
}

impl BareEngine {
    pub(crate) fn new(component: &[u8]) -> Result<Self, Box<dyn Error>> {
        let mut config = Config::new();
        // The pool has the engine's defaults, which are fast.
        let pool = InstanceAllocationStrategy::Pooling(PoolingAllocationConfig::new());
        config.allocation_strategy(pool).concurrency_support(false);
        let engine = Engine::new(&config)?;
        let component = Component::from_binary(&engine, component)?;
        let mut linker = Linker::new(&engine);
        linker.instance("periapt:charm/relations@0.1.0")?.func_wrap(
            "get-value",
            |_, (_relation, _bag, _key): (u32, Bag, String)| {
                Ok((Ok::<_, CallError>(Some(ADDRESS.to_owned())),))
            },
        )?;
        linker.define_unknown_imports_as_traps(&component)?;
        let charm = CharmPre::new(linker.instantiate_pre(&component)?)?;
        Ok(Self { engine, charm })
    }

    /// Runs this many hooks. Returns the seconds per hook.
    pub(crate) fn hooks(&self, event: &Event, count: u32) -> Sample {
        let invocation = Invocation { event: event.clone(), attempt: 1 };
        let took = seconds(|| (0..count).try_for_each(|_| self.hook(&invocation)));
        Ok(took? / f64::from(count))
    }

    fn hook(&self, invocation: &Invocation) -> Result<(), Box<dyn Error>> {
        let mut store = Store::new(&self.engine, ());
        let charm = self.charm.instantiate(&mut store)?;
        match charm.periapt_charm_handler().call_handle(&mut store, invocation)? {
            Ok(Outcome::Handled) => Ok(()),
            other => Err(format!("the hook was not handled: {other:?}").into()),
        }
    }
}

/// Returns the event of the timer.
pub(crate) fn update_status() -> Event {
    Event::UpdateStatus
}

/// Returns the event of a unit that joins.
pub(crate) fn joined() -> Event {
    Event::RelationJoined(RelationJoinedEvent {
        endpoint: "peer".to_owned(),
        relation: 1,
        remote_application: "u".to_owned(),
        remote_unit: "u/1".to_owned(),
    })
}
