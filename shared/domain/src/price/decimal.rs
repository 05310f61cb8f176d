//! Decimal text to scaled integers and back, exactly: `"2.50"` USD per million tokens, `5e-07` USD per token.

use crate::amount::parse_exponent;

/// The largest price: 10¹⁵ pico-USD, which is 1,000 USD for one token or one call. It keeps every product of a
/// price and a 64-bit count within 128 bits.
pub(super) const MAX_PICOS: u64 = 1_000_000_000_000_000;

/// Why a text is not a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecimalError {
    #[error("is no decimal number")]
    NotANumber,
    #[error("is negative")]
    Negative,
    #[error("is finer than a pico-USD")]
    TooFine,
    #[error("is implausibly large")]
    TooLarge,
}

/// Parses `text` times 10^`digits`. Refuses a result that is not an integer.
pub(super) fn parse_scaled(text: &str, digits: u32) -> Result<u64, DecimalError> {
    let (significant, power) = parse_decimal(text)?;
    if significant.is_empty() {
        return Ok(0);
    }
    let power = u32::try_from(power + i64::from(digits)).map_err(|_| DecimalError::TooFine)?;
    let scaled = scale(&significant, power)?;
    Some(scaled)
        .filter(|scaled| *scaled <= MAX_PICOS)
        .ok_or(DecimalError::TooLarge)
}

/// Parses `text` times 10^`digits`, rounded up.
pub(super) fn parse_scaled_up(text: &str, digits: u32) -> Result<u64, DecimalError> {
    let (significant, power) = parse_decimal(text)?;
    let power = power + i64::from(digits);
    if significant.is_empty() || power >= 0 {
        let power = u32::try_from(power).unwrap_or(0);
        return scale(&significant, power);
    }
    // The last digit is not zero, so the cut always removes something.
    let cut = usize::try_from(power.unsigned_abs()).map_err(|_| DecimalError::TooLarge)?;
    let kept = significant.len().saturating_sub(cut);
    scale(&significant[..kept], 0)?
        .checked_add(1)
        .ok_or(DecimalError::TooLarge)
}

/// Returns `digits` times 10^`power`; 0 without digits.
fn scale(digits: &str, power: u32) -> Result<u64, DecimalError> {
    if digits.is_empty() {
        return Ok(0);
    }
    let value: u64 = digits.parse().map_err(|_| DecimalError::TooLarge)?;
    let scaled = 10_u64
        .checked_pow(power)
        .and_then(|power| value.checked_mul(power));
    scaled.ok_or(DecimalError::TooLarge)
}

/// Parses a decimal number with optional fraction and exponent. Returns its digits without leading and trailing zeros,
/// and the power of ten to multiply them by.
fn parse_decimal(text: &str) -> Result<(String, i64), DecimalError> {
    if text.starts_with('-') {
        return Err(DecimalError::Negative);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            parse_exponent(exponent).ok_or(DecimalError::NotANumber)?,
        ),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
        Some(_) => return Err(DecimalError::NotANumber),
        None => (mantissa, ""),
    };
    if !is_digits(whole) {
        return Err(DecimalError::NotANumber);
    }
    let all = [whole, fraction].concat();
    let significant = all.trim_matches('0').to_owned();
    let zeros = all.len() - all.trim_end_matches('0').len();
    let power = length(zeros)? - length(fraction.len())? + exponent;
    Ok((significant, power))
}

/// Formats `scaled` ÷ 10^`digits` without trailing zeros, the inverse of [`parse_scaled`].
pub(super) fn print_scaled(scaled: u64, digits: u32) -> String {
    let width = digits as usize;
    let padded = format!("{scaled:0>min$}", min = width + 1);
    let (whole, fraction) = padded.split_at(padded.len() - width);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Converts a length to the signed type of the shifts.
fn length(len: usize) -> Result<i64, DecimalError> {
    i64::try_from(len).map_err(|_| DecimalError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_exactly() {
        for (text, digits, scaled) in [
            ("2.50", 6, 2_500_000),
            ("2.5", 6, 2_500_000),
            ("0.005", 6, 5_000),
            ("0.000001", 6, 1),
            ("150", 6, 150_000_000),
            ("0", 6, 0),
            ("0.00", 6, 0),
            ("0e99999999", 6, 0),
            ("5e-07", 12, 500_000),
            ("1.5625e-05", 12, 15_625_000),
            ("0.0001125", 12, 112_500_000),
            ("2.5E-9", 12, 2_500),
            ("1e-12", 12, 1),
            ("1000", 12, MAX_PICOS),
            ("0.01", 12, 10_000_000_000),
        ] {
            assert_eq!(parse_scaled(text, digits), Ok(scaled), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_price() {
        use DecimalError::*;
        for (text, error) in [
            ("", NotANumber),
            (".5", NotANumber),
            ("5.", NotANumber),
            ("1,5", NotANumber),
            ("1 ", NotANumber),
            ("+1", NotANumber),
            ("NaN", NotANumber),
            ("1e", NotANumber),
            ("1e+", NotANumber),
            ("\u{0661}", NotANumber),
            ("-1", Negative),
            ("-0", Negative),
            ("0.0000001", TooFine),
            ("1e-99999", TooFine),
            ("1e400", TooLarge),
            ("1000000000.000001", TooLarge),
            ("99999999999999999999999", TooLarge),
        ] {
            assert_eq!(parse_scaled(text, 6), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(scaled in 0..=MAX_PICOS, digits in prop::sample::select(vec![6_u32, 12])) {
            prop_assert_eq!(parse_scaled(&print_scaled(scaled, digits), digits), Ok(scaled));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9eE.]{0,40}") {
            let _ = parse_scaled(&text, 12);
        }
    }
}
