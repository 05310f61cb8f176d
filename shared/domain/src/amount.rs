//! Parses amounts from decimal text, exactly (decisions D4, D61): `0.1`, `"12.50"`, `1e2`; never through floating
//! point.

use super::money::{NANOS_PER_USD, Nanos};

/// Why a text is not an amount. Completes the sentence "amount …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a decimal number.
    #[error("must be a decimal number of USD")]
    NotANumber,
    /// More than nine fraction digits.
    #[error("must have at most nine fraction digits")]
    TooFine,
    /// Below zero.
    #[error("must not be negative")]
    Negative,
    /// Zero where an amount must be positive.
    #[error("must be greater than zero")]
    Zero,
    /// Above 9,000,000 USD.
    #[error("must be at most 9000000 USD")]
    TooLarge,
}

/// Parses a JSON number, or a JSON string with one. Allows zero, as for a limit.
///
/// # Errors
/// [`AmountError`]
pub fn parse_limit(json: &str) -> Result<Nanos, AmountError> {
    let text = match json.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').ok_or(AmountError::NotANumber)?,
        None => json,
    };
    parse_decimal(text)
}

/// Like [`parse_limit`], but refuses zero.
///
/// # Errors
/// [`AmountError`]
pub fn parse_amount(json: &str) -> Result<Nanos, AmountError> {
    match parse_limit(json)? {
        Nanos::ZERO => Err(AmountError::Zero),
        amount => Ok(amount),
    }
}

/// Reads a decimal number in JSON's grammar: digits, an optional fraction, an optional exponent.
fn parse_decimal(text: &str) -> Result<Nanos, AmountError> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent).ok_or(AmountError::NotANumber)?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if !digits(whole) || leading_zero || !fraction.is_none_or(digits) {
        return Err(AmountError::NotANumber);
    }
    let nanos = scale(whole, fraction.unwrap_or(""), exponent)?;
    match (negative, nanos) {
        (true, _) => Err(AmountError::Negative),
        (false, nanos) => Nanos::new(nanos).ok_or(AmountError::TooLarge),
    }
}

/// Parses the exponent of an amount or a price, saturated: beyond ±10,000 none is valid.
pub(crate) fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let size = if digits.len() > 4 {
        10_000
    } else {
        digits.parse().unwrap_or(0)
    };
    Some(sign * size)
}

/// Returns `whole.fraction × 10^exponent` USD in nano-USD. Refuses more than nine fraction digits, even if they are
/// zeros.
fn scale(whole: &str, fraction: &str, exponent: i64) -> Result<u64, AmountError> {
    let fraction_len = i64::try_from(fraction.len()).map_err(|_| AmountError::TooFine)?;
    let shift = exponent + 9 - fraction_len;
    if shift < 0 {
        return Err(AmountError::TooFine);
    }
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    if significant.len() > 19 || shift > 19 {
        return Err(AmountError::TooLarge);
    }
    let value: u64 = significant.parse().map_err(|_| AmountError::TooLarge)?;
    let power = u32::try_from(shift)
        .ok()
        .and_then(|shift| 10_u64.checked_pow(shift));
    power
        .and_then(|power| value.checked_mul(power))
        .ok_or(AmountError::TooLarge)
}

const _: () = assert!(NANOS_PER_USD == 10_u64.pow(9), "`scale` shifts by nine digits");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_d4_allows() {
        for (text, nanos) in [
            ("1", 1_000_000_000),
            ("\"1\"", 1_000_000_000),
            ("\"1e3\"", 1_000_000_000_000),
            ("\"1E-7\"", 100),
            ("0.1", 100_000_000),
            ("0.30", 300_000_000),
            ("0.000000001", 1),
            ("1e-9", 1),
            ("1.000000000", 1_000_000_000),
            ("1.00000000000e2", 100_000_000_000),
            ("1E+2", 100_000_000_000),
            ("9000000", 9_000_000_000_000_000),
            ("9e6", 9_000_000_000_000_000),
        ] {
            assert_eq!(parse_amount(text).map(Nanos::get), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn refuses_what_d4_refuses() {
        use AmountError::*;
        for (text, error) in [
            ("", NotANumber),
            ("\"\"", NotANumber),
            ("\"1", NotANumber),
            ("NaN", NotANumber),
            ("+1", NotANumber),
            ("01", NotANumber),
            (".5", NotANumber),
            ("5.", NotANumber),
            ("1 ", NotANumber),
            ("0x10", NotANumber),
            ("1e", NotANumber),
            ("1e+", NotANumber),
            ("null", NotANumber),
            ("\u{0661}", NotANumber),
            ("1e-10", TooFine),
            ("0.0000000001", TooFine),
            ("1.0000000000", TooFine),
            ("0.0000000000", TooFine),
            ("10e-10", TooFine),
            ("1e-999999999999999999999", TooFine),
            ("-1", Negative),
            ("-0", Negative),
            ("0", Zero),
            ("0.000", Zero),
            ("0e5", Zero),
            ("1e400", TooLarge),
            ("1e99999999999999999999999", TooLarge),
            ("9000000.000000001", TooLarge),
            ("99999999999999999999999999", TooLarge),
        ] {
            assert_eq!(parse_amount(text), Err(error), "{text:?}");
        }
        assert_eq!(parse_limit("0"), Ok(Nanos::ZERO), "a limit may be 0");
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(nanos in 1..=Nanos::MAX.get()) {
            let amount = Nanos::new(nanos).unwrap();
            prop_assert_eq!(parse_amount(&amount.to_string()), Ok(amount));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9eE.\"]{0,40}") {
            let _ = parse_amount(&text);
        }
    }
}
