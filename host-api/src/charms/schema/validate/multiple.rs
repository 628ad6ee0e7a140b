//! Multiples of decimal numbers, as both are written: 0.3 is three times 0.1, though their binary forms are not.

use serde_json::Value;

/// Returns true if `number` is a whole multiple of `of`, exactly, for numbers of any size.
pub(super) fn is_multiple(number: &Value, of: &Value) -> bool {
    let (Some(number), Some(of)) = (Decimal::of(number), Decimal::of(of)) else { return false };
    let power = number.exponent - of.exponent;
    let (digits, divisor) = (u128::from(number.digits), u128::from(of.digits));
    let rest = match u32::try_from(power) {
        Ok(power) => {
            digits.checked_rem(divisor).zip(power_of_ten(power, divisor)).map(|(a, b)| a * b % divisor)
        }
        // A divisor beyond 128 bits divides nothing but zero.
        Err(_) => match 10_u128.checked_pow(power.unsigned_abs()).and_then(|by| by.checked_mul(divisor)) {
            Some(divisor) => digits.checked_rem(divisor),
            None => Some(digits),
        },
    };
    rest == Some(0)
}

/// Returns `10^power` modulo a number of 64 bits, in as many steps as `power` has binary digits: `power` may be 700.
fn power_of_ten(power: u32, modulus: u128) -> Option<u128> {
    let (mut result, mut square, mut power) = (1, 10_u128.checked_rem(modulus)?, power);
    while power > 0 {
        if power % 2 == 1 {
            result = result * square % modulus;
        }
        square = square * square % modulus;
        power /= 2;
    }
    Some(result)
}

/// The absolute value of a number, as the shortest decimal that parses to it: `digits * 10^exponent`.
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    fn of(number: &Value) -> Option<Self> {
        let text = match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => format!("{number:e}"),
            (None, Some(number)) => format!("{:e}", number.unsigned_abs()),
            (None, None) => format!("{:e}", number.as_f64()?.abs()),
        };
        let (mantissa, exponent) = text.split_once('e')?;
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some(Self {
            digits: mantissa.replace('.', "").parse().ok()?,
            exponent: exponent.parse::<i32>().ok()? - i32::try_from(decimals).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_multiple;

    #[test]
    fn multiples_are_told_as_they_are_written() {
        let check = |number: &str, of: &str, is: bool| {
            let [a, b] = [number, of].map(|it| serde_json::from_str(it).unwrap());
            assert_eq!(is_multiple(&a, &b), is, "{number} of {of}");
        };
        for (number, of) in [
            ("0.3", "0.1"),
            ("-0.3", "0.1"),
            ("0", "0.1"),
            ("-0.0", "7"),
            ("19.99", "0.01"),
            ("4.5", "1.5"),
            ("7", "3.5"),
            ("12391239123", "1e-8"),
            ("1e308", "1e-308"),
            ("1e308", "0.5"),
            ("1e308", "1e308"),
            ("18446744073709551615", "5"),
            ("-9223372036854775808", "2"),
            ("9007199254740994", "9007199254740994"),
            ("1e22", "10000000000000000000"),
        ] {
            check(number, of, true);
        }
        for (number, of) in [
            ("0.35", "0.1"),
            ("0.30000000000000004", "0.1"),
            ("7", "2"),
            ("0.5", "1"),
            ("1e-308", "1e308"),
            ("1e308", "0.123456789"),
            ("18446744073709551614", "5"),
            ("9007199254740993", "9007199254740992"),
            ("9223372036854775807", "2"),
            ("5", "18446744073709551615"),
        ] {
            check(number, of, false);
        }
    }
}
