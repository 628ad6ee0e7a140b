//! Generation of passwords.

use periapt_sdk::{Context, Result};

/// The 64 characters of passwords, so that six random bits choose one without bias.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Generates a random password: 32 characters of 6 bits each.
pub(crate) fn generate() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("no random bytes for a password")?;
    let letters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(byte % 64)));
    Ok(letters.map(|letter| char::from(*letter)).collect())
}

#[cfg(test)]
mod tests {
    use super::generate;

    #[test]
    fn passwords_are_long_and_never_the_same() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
    }
}
