//! Attributes, of which messages consist: a length, a kind and a content, on boundaries of four bytes.

/// The mark of an attribute that consists of others.
const NESTED: u16 = 0x8000;

/// The bits of a kind that are no marks.
const KIND: u16 = 0x3fff;

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

/// Returns the kinds and the contents of the attributes in some bytes, up to the first that is cut short.
pub(crate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let content = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & KIND, content))
    })
}

/// Returns the content of the first attribute of a kind.
pub(crate) fn find(among: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(among).find(|(of, _)| *of == kind).map(|(_, content)| content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_back_and_none_behind_one_that_is_cut_short() {
        let bytes = [text(3, "gate"), nested(2, &[number(1, 7)])].concat();
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(3, b"gate\0".as_slice()), (2, number(1, 7).as_slice())]);
        assert_eq!(find(find(&bytes, 2).unwrap(), 1), Some([0, 0, 0, 7].as_slice()));
        assert_eq!(find(&bytes, 1), None);
        for length in 0..bytes.len() {
            assert!(attributes(&bytes[..length]).count() < 2, "of {length} bytes");
        }
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own head");
        assert_eq!(attributes(&[0; 64]).count(), 0);
    }

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
