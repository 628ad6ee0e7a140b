//! `sort` and `uniq`.

use std::cmp::Ordering;

use super::call::{Call, bare, lines};
use crate::interpreter::Step;

/// Runs `sort [-n] [-r] [-u] [FILE...]`, which compares bytes.
pub(super) fn sort(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("nru", "")? else { return Ok(2) };
        let (contents, all) = call.contents(&parsed.operands).await?;
        let mut sorted: Vec<&[u8]> = Vec::new();
        // Work for the comparisons of each line, and for its place in memory.
        for line in contents.iter().flat_map(|(_, content)| lines(content)).map(bare) {
            call.shell.pay((line.len() + 64).saturating_mul(20))?;
            sorted.push(line);
        }
        let numeric = parsed.has('n');
        let compare = |one: &&[u8], other: &&[u8]| match numeric {
            true => number(one).total_cmp(&number(other)),
            false => Ordering::Equal,
        };
        sorted.sort_by(|one, other| compare(one, other).then_with(|| one.cmp(other)));
        if parsed.has('u') {
            sorted.dedup_by(|one, other| match numeric {
                true => compare(&&**one, &&**other) == Ordering::Equal,
                false => one == other,
            });
        }
        if parsed.has('r') {
            sorted.reverse();
        }
        for line in sorted {
            call.shell.write(call.streams.stdout, line)?;
            call.say("\n")?;
        }
        Ok(if all { 0 } else { 2 })
    })
}

/// Parses the number at the beginning of a line; 0 if there is none.
fn number(line: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '.'))).unwrap_or(text.len());
    text.get(..end).and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Runs `uniq [-c] [FILE]`, which merges equal lines in a row.
pub(super) fn uniq(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(parsed) = call.options("c", "")? else { return Ok(1) };
        let (contents, all) = call.contents(&parsed.operands).await?;
        let mut rows: Vec<(usize, &[u8])> = Vec::new();
        for line in contents.iter().flat_map(|(_, content)| lines(content)).map(bare) {
            call.shell.pay(line.len() + 64)?;
            match rows.last_mut() {
                Some((count, last)) if *last == line => *count += 1,
                _ => rows.push((1, line)),
            }
        }
        for (count, line) in rows {
            if parsed.has('c') {
                call.say(&format!("{count:7} "))?;
            }
            call.shell.write(call.streams.stdout, line)?;
            call.say("\n")?;
        }
        Ok(u8::from(!all))
    })
}
