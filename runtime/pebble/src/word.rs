//! Enums whose values are words of Pebble's.

/// Declares an enum of words, with its parser and its error, which names all words. An empty text means no value, as
/// in the API, so that fields are `Option`s read by `optional`.
macro_rules! words {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($(#[$of:meta])* $case:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $visibility enum $name { $($(#[$of])* $case,)+ }

        impl $name {
            /// Returns the word.
            #[must_use]
            $visibility fn as_str(self) -> &'static str {
                match self { $(Self::$case => $word,)+ }
            }

            /// Returns the value of a word.
            #[must_use]
            #[allow(dead_code, reason = "some enums are only read from documents")]
            $visibility fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$case),)+ _ => None }
            }

            /// Reads an optional word of a document.
            pub(crate) fn optional<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
                let word = <Option<String> as serde::Deserialize>::deserialize(from)?.unwrap_or_default();
                if word.is_empty() {
                    return Ok(None);
                }
                Self::from_word(&word).map(Some).ok_or_else(|| {
                    let words = [$($word),+].join(", ");
                    serde::de::Error::custom(format!("{word:?} is none of: {words}"))
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::optional(from)?.ok_or_else(|| serde::de::Error::custom("a word is missing"))
            }
        }
    };
}

pub(crate) use words;
