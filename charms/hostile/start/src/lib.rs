//! A charm whose module loops in its constructors, so that no hook ever begins.

use periapt_sdk::{Charm, Unit};

periapt_sdk::export!(Start);

#[derive(Default)]
struct Start;

impl Charm for Start {
    fn install(&mut self, unit: &Unit) -> periapt_sdk::Result {
        unit.set_version("escaped: the start function came back")
    }
}

#[cfg(target_arch = "wasm32")]
extern "C" fn spin() {
    loop {
        std::hint::spin_loop();
    }
}

/// A constructor that the reactor object's `_initialize` runs.
#[cfg(all(target_arch = "wasm32", reactor_object))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = spin;

/// Runs as the start function, if there is no reactor object.
#[cfg(all(target_arch = "wasm32", not(reactor_object)))]
#[unsafe(export_name = "_initialize")]
extern "C" fn initialize() {
    spin();
}
