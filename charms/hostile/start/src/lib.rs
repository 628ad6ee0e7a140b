//! A charm whose module loops in its constructors: it never gets as far as a hook.

use periapt_sdk::{Charm, Unit};

periapt_sdk::export!(Start);

#[derive(Default)]
struct Start;

impl Charm for Start {
    fn install(&mut self, unit: &Unit) -> periapt_sdk::Result {
        unit.set_version("escaped: the start function came back")
    }
}

/// Run by the module's `_initialize`, which is the component's start function.
#[cfg(target_arch = "wasm32")]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn spin() {
        loop {
            std::hint::spin_loop();
        }
    }
    spin
};
