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

/// Needs a stack frame per level that the compiler cannot fold away.
pub(crate) fn recursion(_: &Unit) -> Result {
    #[expect(unconditional_recursion, reason = "this is the attack")]
    fn deeper(level: [u64; 16]) -> u64 {
        let next = std::hint::black_box(level.map(|word| word.wrapping_add(1)));
        deeper(next).wrapping_add(next.iter().sum::<u64>())
    }
    std::hint::black_box(deeper([0; 16]));
    Ok(())
}

/// Takes pages and dirties them until there are none.
pub(crate) fn memory_bomb(_: &Unit) -> Result {
    let mut taken = Vec::new();
    loop {
        taken.push(std::hint::black_box(vec![0xa5_u8; 1 << 20]));
    }
}
