//! The laboratory's seal for secrets. It protects nothing, but sealed bytes never read like open ones, so a
//! test sees bytes that should have been sealed and were not.

use periapt_host_api::{
    Refusal, hash,
    secret::{Sealed, SealedFor},
};
use periapt_model::Sealer;

use crate::random::hex;

/// The one seal, without a key.
pub(crate) struct KeylessSealer;

impl Sealer for KeylessSealer {
    fn seal(&self, what: SealedFor, bytes: &[u8]) -> Result<Sealed, Refusal> {
        let turned: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        Ok(Sealed { checksum: hash::of_value(&(what.to_bytes(), bytes)), bytes: hex(&turned) })
    }

    fn open(&self, what: SealedFor, sealed: &Sealed) -> Option<Vec<u8>> {
        let digit = |place: usize| char::from(*sealed.bytes.as_bytes().get(place)?).to_digit(16);
        let bytes = (0..sealed.bytes.len() / 2)
            .map(|index| u8::try_from(digit(index * 2)? << 4 | digit(index * 2 + 1)?).ok().map(|byte| !byte))
            .collect::<Option<Vec<u8>>>()?;
        (hash::of_value(&(what.to_bytes(), &bytes)) == sealed.checksum).then_some(bytes)
    }
}
