//! Attributes, of which messages consist: a length, a kind and a content, on boundaries of four bytes.

/// The mark of an attribute that consists of others.
const NESTED: u16 = 0x8000;

/// Returns an attribute. Its content has at most 64 KiB less its head.
pub(crate) fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 4).unwrap_or(u16::MAX);
    let mut attribute = [&length.to_ne_bytes()[..], &kind.to_ne_bytes()[..], content].concat();
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// Returns an attribute that consists of others.
pub(crate) fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

/// Returns an attribute with a number in the network's order, as nf_tables has it.
pub(crate) fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

/// Returns an attribute with a text.
pub(crate) fn text(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, &[text.as_bytes(), b"\0"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_state_their_length_without_what_fills_them_up() {
        assert_eq!(
            text(3, "gate"),
            [&9_u16.to_ne_bytes()[..], &3_u16.to_ne_bytes()[..], b"gate\0\0\0\0"].concat()
        );
        let inner = number(1, 7);
        assert_eq!(inner, [&8_u16.to_ne_bytes()[..], &1_u16.to_ne_bytes()[..], &[0, 0, 0, 7]].concat());
        let outer = nested(2, &[inner.clone(), inner]);
        assert_eq!(outer.len(), 20);
        assert_eq!(outer[..4], [&20_u16.to_ne_bytes()[..], &0x8002_u16.to_ne_bytes()[..]].concat());
    }
}
