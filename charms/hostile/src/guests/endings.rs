//! Guests that end badly.

use periapt_sdk::{Result, Unit};

/// An unreachable instruction, without a word.
#[cfg(target_arch = "wasm32")]
pub(crate) fn trap(_: &Unit) -> Result {
    std::arch::wasm32::unreachable()
}

/// Natively there is no trap to show.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn trap(_: &Unit) -> Result {
    Ok(())
}

/// The message must reach the charm's author.
#[expect(clippy::panic, reason = "this is the attack")]
pub(crate) fn panics(_: &Unit) -> Result {
    panic!("the author should read this");
}

/// Leaving through WASI's door is no success, even with code 0.
pub(crate) fn exit(_: &Unit) -> Result {
    std::process::exit(0)
}

/// Small frames: the engine's stack ends first.
pub(crate) fn recursion(_: &Unit) -> Result {
    #[expect(unconditional_recursion, reason = "this is the attack")]
    fn deeper(level: u64) -> u64 {
        std::hint::black_box(deeper(level.wrapping_add(1))) ^ level
    }
    std::hint::black_box(deeper(0));
    Ok(())
}

/// Large frames: the stack that the compiler keeps in the guest's memory ends first.
pub(crate) fn large_frames(_: &Unit) -> Result {
    #[expect(unconditional_recursion, reason = "this is the attack")]
    fn deeper(level: [u64; 512]) -> u64 {
        let next = std::hint::black_box(level.map(|word| word.wrapping_add(1)));
        deeper(next).wrapping_add(next.iter().sum::<u64>())
    }
    std::hint::black_box(deeper([0; 512]));
    Ok(())
}

/// Takes pages and dirties them until there are none.
pub(crate) fn memory_bomb(_: &Unit) -> Result {
    let mut taken = Vec::new();
    loop {
        taken.push(std::hint::black_box(vec![0xa5_u8; 1 << 20]));
    }
}
