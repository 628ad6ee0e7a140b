//! Guests that end abnormally.

use periapt_sdk::{Result, Unit};

/// Executes an unreachable instruction, without a message.
#[cfg(target_arch = "wasm32")]
pub(crate) fn trap(_: &Unit) -> Result {
    std::arch::wasm32::unreachable()
}

/// Returns at once: native code has no trap to show.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn trap(_: &Unit) -> Result {
    Ok(())
}

/// Panics with a message, which must reach the charm's author.
#[expect(clippy::panic, reason = "this is the attack")]
pub(crate) fn panics(_: &Unit) -> Result {
    panic!("the author should read this");
}

/// Exits through WASI. That is a failure, even with code 0.
pub(crate) fn exit(_: &Unit) -> Result {
    std::process::exit(0)
}

/// Recurses with small frames: the engine's stack overflows first.
pub(crate) fn recursion(_: &Unit) -> Result {
    #[expect(unconditional_recursion, reason = "this is the attack")]
    fn deeper(level: u64) -> u64 {
        std::hint::black_box(deeper(level.wrapping_add(1))) ^ level
    }
    std::hint::black_box(deeper(0));
    Ok(())
}

/// Recurses with large frames: the compiler's stack in the guest's memory overflows first.
pub(crate) fn large_frames(_: &Unit) -> Result {
    #[expect(unconditional_recursion, reason = "this is the attack")]
    fn deeper(level: [u64; 512]) -> u64 {
        let next = std::hint::black_box(level.map(|word| word.wrapping_add(1)));
        deeper(next).wrapping_add(next.iter().sum::<u64>())
    }
    std::hint::black_box(deeper([0; 512]));
    Ok(())
}

/// Allocates and writes pages until the allocation fails.
pub(crate) fn memory_bomb(_: &Unit) -> Result {
    let mut taken = Vec::new();
    loop {
        taken.push(std::hint::black_box(vec![0xa5_u8; 1 << 20]));
    }
}
