//! Durations as charms write them.

/// `1h30m`, `1.5h`, `90s`, `500ms`: numbers with units, as Go writes durations; at most a century.
pub fn milliseconds(text: &str) -> Option<i64> {
    let (mut rest, mut total) = (text, 0.0_f64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let factor = match unit {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    // A century in milliseconds: more is meant by nobody, and this fits into the number with room to spare.
    (!text.is_empty() && total <= 3.2e12).then_some(total as i64)
}
