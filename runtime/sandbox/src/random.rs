//! The random numbers of a hook: independent ChaCha20 streams from one seed, so that draws by one consumer
//! never change another's (`docs/design/sandbox.md`).

use std::{convert::Infallible, sync::Arc};

use periapt_hook::IdSeed;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng as _, TryCryptoRng, TryRng};

use crate::meter::Meter;

/// The seed of all random numbers of one attempt, in 32 bytes. The operating system draws it; tests use
/// known ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

/// Hides the value: a hook's passwords can be computed from its seed.
impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// The consumers of random numbers. A number keeps its meaning for ever, or replays would differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// `wasi:random/random`.
    Secure = 1,
    /// `wasi:random/insecure`.
    Insecure = 2,
    /// `wasi:random/insecure-seed`.
    InsecureSeed = 3,
    /// The ids of secrets, which the host creates.
    Ids = 4,
}

impl Seed {
    pub(crate) fn stream(&self, stream: Stream) -> ChaCha20Rng {
        let mut source = ChaCha20Rng::from_seed(self.0);
        source.set_stream(stream as u64);
        source
    }

    /// Returns the seed for the ids of this hook's secrets.
    pub fn ids(&self) -> IdSeed {
        let mut seed = [0; 32];
        self.stream(Stream::Ids).fill_bytes(&mut seed);
        IdSeed(seed)
    }

    /// Returns a hash seed for a guest's maps.
    pub(crate) fn insecure_seed(&self) -> u128 {
        let mut source = self.stream(Stream::InsecureSeed);
        u128::from(source.next_u64()) << 64 | u128::from(source.next_u64())
    }
}

/// A source of random bytes that cost fuel.
pub(crate) struct Metered {
    pub(crate) source: ChaCha20Rng,
    pub(crate) meter: Arc<Meter>,
}

impl TryRng for Metered {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.meter.bytes(4);
        Ok(self.source.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.meter.bytes(8);
        Ok(self.source.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.meter.bytes(bytes.len() as u64);
        self.source.fill_bytes(bytes);
        Ok(())
    }
}

impl TryCryptoRng for Metered {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let seed = Seed([7; 32]);
        let draw = |stream| seed.stream(stream).next_u64();
        assert_eq!(draw(Stream::Secure), draw(Stream::Secure));
        assert_ne!(draw(Stream::Secure), draw(Stream::Insecure));
        assert_ne!(draw(Stream::Secure), draw(Stream::InsecureSeed));
        assert_ne!(seed.insecure_seed(), Seed([8; 32]).insecure_seed());
    }

    #[test]
    fn a_seed_is_not_printed() {
        assert_eq!(format!("{:?}", Seed([7; 32])), "Seed(..)");
    }
}
