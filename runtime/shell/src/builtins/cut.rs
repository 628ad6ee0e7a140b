//! `cut`

use super::call::{Call, bare, lines};
use crate::interpreter::Step;

/// Bytes of a range in memory. Each range is at least a byte of the list.
const RANGE: usize = size_of::<(usize, usize)>();

/// Runs `cut -d CHARACTER -f LIST [-s]` and `cut -c LIST`, on files or standard input.
pub(super) fn cut(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("s", "dfc")? else { return Ok(1) };
        let (by_field, list) = match (parsed.value('f'), parsed.value('c')) {
            (Some(fields), None) => (true, fields),
            (None, Some(characters)) => (false, characters),
            _ => return call.fail(1, "you must specify a list of characters or fields"),
        };
        call.shell.pay(list.len().saturating_mul(RANGE))?;
        let Some(ranges) = ranges(list) else {
            return call.fail(1, &format!("invalid field range: {list}"));
        };
        let mut delimiter = parsed.value('d').unwrap_or("\t").chars();
        let (Some(delimiter), None) = (delimiter.next(), delimiter.next()) else {
            return call.fail(1, "the delimiter must be a single character");
        };
        let (contents, all) = call.contents(&parsed.operands).await?;
        let wanted =
            |index: usize| ranges.iter().any(|(first, last)| (*first..=*last).contains(&(index + 1)));
        for line in contents.iter().flat_map(|(_, content)| lines(content)).map(bare) {
            call.shell.pay((line.len() + 64).saturating_mul(ranges.len() + 1))?;
            let line = String::from_utf8_lossy(line);
            let cut: String = match by_field {
                true if !line.contains(delimiter) && parsed.has('s') => continue,
                true if !line.contains(delimiter) => line.into_owned(),
                true => {
                    let parts = line.split(delimiter).enumerate().filter(|(index, _)| wanted(*index));
                    let parts: Vec<&str> = parts.map(|(_, part)| part).collect();
                    parts.join(delimiter.encode_utf8(&mut [0; 4]))
                }
                false => {
                    let characters = line.chars().enumerate().filter(|(index, _)| wanted(*index));
                    characters.map(|(_, character)| character).collect()
                }
            };
            call.say(&format!("{cut}\n"))?;
        }
        Ok(u8::from(!all))
    })
}

/// Parses a list such as `1,3-5,7-`.
fn ranges(list: &str) -> Option<Vec<(usize, usize)>> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    let range = |part: &str| match part.split_once('-') {
        Some(("", "")) => None,
        Some(("", last)) => Some((1, number(last)?)),
        Some((first, "")) => Some((number(first)?, usize::MAX)),
        Some((first, last)) => Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last),
        None => number(part).map(|one| (one, one)),
    };
    list.split(',').map(range).collect()
}
