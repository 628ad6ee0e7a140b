//! Shell patterns: `*`, `?`, `[a-z]`, and `\` before a literal character.

use crate::syntax::MatchLength;

/// A parsed pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    units: Vec<Unit>,
}

#[derive(Debug, Clone)]
enum Unit {
    /// Any characters, or none.
    Star,
    Any,
    One(char),
    /// One character within these ranges, or outside all of them.
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Unit {
    fn has(&self, character: char) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::One(expected) => *expected == character,
            Self::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }

    /// Returns the comparisons that a character takes.
    fn price(&self) -> usize {
        match self {
            Self::Set { ranges, .. } => ranges.len() + 1,
            _ => 1,
        }
    }
}

impl Pattern {
    /// Work for each byte of a pattern: its parsed form takes so much memory.
    pub(crate) const PRICE: usize = 64;

    pub(crate) fn new(text: &str) -> Self {
        let mut units = Vec::new();
        let mut rest = text.chars();
        // Without a closing `]`, this `[` and each later one is text. The rest is not searched again for each.
        let mut closes = true;
        while let Some(character) = rest.next() {
            let unit = match character {
                '*' if matches!(units.last(), Some(Unit::Star)) => continue,
                '*' => Unit::Star,
                '?' => Unit::Any,
                '\\' => Unit::One(rest.next().unwrap_or('\\')),
                '[' => match closes.then(|| set(rest.as_str())).flatten() {
                    Some((unit, behind)) => {
                        rest = behind.chars();
                        unit
                    }
                    None => {
                        closes = false;
                        Unit::One('[')
                    }
                },
                other => Unit::One(other),
            };
            units.push(unit);
        }
        Self { units }
    }

    /// Reverses the pattern, for texts that are read from their end.
    pub(crate) fn reversed(mut self) -> Self {
        self.units.reverse();
        self
    }

    /// Returns true if the whole text matches.
    pub(crate) fn matches<E>(
        &self,
        text: &str,
        pay: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        let longest = self.begins(text.chars(), MatchLength::Longest, pay)?;
        Ok(longest == Some(text.chars().count()))
    }

    /// Returns the number of characters of the shortest or longest matching prefix. None without one. It reads each
    /// character once, keeps all positions of the pattern that it may be at, and pays for each.
    pub(crate) fn begins<E>(
        &self,
        mut text: impl Iterator<Item = char>,
        length: MatchLength,
        pay: &mut impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let (mut positions, mut next) = (Vec::new(), Vec::new());
        self.enter(0, &mut positions);
        let (mut found, mut count) = (None, 0);
        loop {
            if positions.last() == Some(&self.units.len()) {
                found = Some(count);
                if length == MatchLength::Shortest {
                    break;
                }
            }
            let Some(character) = text.next().filter(|_| !positions.is_empty()) else { break };
            next.clear();
            for place in &positions {
                let Some(unit) = self.units.get(*place) else { continue };
                pay(unit.price())?;
                if unit.has(character) {
                    let step = usize::from(!matches!(unit, Unit::Star));
                    self.enter(place + step, &mut next);
                }
            }
            std::mem::swap(&mut positions, &mut next);
            count += 1;
        }
        Ok(found)
    }

    /// Adds a place, and the next one if the place holds a `*`, which may match nothing. Places are added in ascending
    /// order.
    fn enter(&self, place: usize, positions: &mut Vec<usize>) {
        let behind = matches!(self.units.get(place), Some(Unit::Star)).then_some(place + 1);
        for place in std::iter::once(place).chain(behind) {
            if positions.last().is_none_or(|last| *last < place) {
                positions.push(place);
            }
        }
    }
}

/// Parses the set after a `[`, and returns it with the rest. None if no `]` closes it.
fn set(text: &str) -> Option<(Unit, &str)> {
    let negated = text.starts_with(['!', '^']);
    let inside = text.get(usize::from(negated)..)?;
    let mut rest = inside;
    let mut ranges = Vec::new();
    loop {
        let mut characters = rest.chars();
        let low = match characters.next()? {
            ']' if rest.len() < inside.len() => {
                return Some((Unit::Set { negated, ranges }, characters.as_str()));
            }
            '\\' => characters.next()?,
            other => other,
        };
        rest = characters.as_str();
        let high = rest.strip_prefix('-').and_then(|behind| behind.chars().next());
        match high.filter(|high| *high != ']') {
            Some(high) => {
                rest = rest.get(1 + high.len_utf8()..)?;
                ranges.push((low, high));
            }
            None => ranges.push((low, low)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> (bool, usize) {
        let mut steps = 0;
        let pay = &mut |price| {
            steps += price;
            Ok::<(), ()>(())
        };
        (Pattern::new(pattern).matches(text, pay).unwrap(), steps)
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("?", "", false),
            ("[a-c]?", "bz", true),
            ("[!a-c]", "b", false),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*.charm", "mysql.charm", true),
            ("a*b*c", "a-b-b-c", true),
            ("a**", "a", true),
            ("**a*", "ba", true),
        ] {
            assert_eq!(matches(pattern, text).0, expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let text = "a".repeat(10_000);
        let (matched, steps) = matches(&format!("{}b", "a*".repeat(100)), &text);
        assert!(!matched && steps < 10_000 * 202, "{steps}");
    }

    #[test]
    fn a_text_that_differs_at_once_costs_one_comparison() {
        assert_eq!(matches("99", &"a".repeat(10_000)), (false, 1));
    }
}
