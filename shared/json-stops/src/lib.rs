//! Finds the bytes that end or escape a JSON string: quotes, backslashes, control characters.

use wide::u8x16;

/// Bytes examined by one instruction.
pub const LANE: usize = 16;

/// Returns the offset of the first one.
pub fn first_stop(text: &[u8]) -> Option<usize> {
    (0..text.len())
        .step_by(LANE)
        .map(|start| (start, stops_in::<LANE>(text, start)))
        .find_map(|(start, stops)| (stops != 0).then(|| start + stops.trailing_zeros() as usize))
        .filter(|at| *at < text.len())
}

/// Returns a bit mask, from the low end, of the `N` bytes from `start` on that are a quote, a backslash, a control
/// character, or beyond the end.
pub fn stops_in<const N: usize>(bytes: &[u8], start: usize) -> u64 {
    let rest = bytes.get(start..).unwrap_or_default();
    let mut padded = [0; N];
    let block = rest.first_chunk().unwrap_or_else(|| {
        padded[..rest.len()].copy_from_slice(rest);
        &padded
    });
    let (lanes, _) = block.as_chunks();
    lanes.iter().rfold(0, |stops, lane| {
        stops << LANE | u64::from(stops_of(u8x16::from(*lane)))
    })
}

/// Implements [`stops_in`] for one lane.
fn stops_of(lane: u8x16) -> u32 {
    let is_control = lane.min(u8x16::splat(0x1f)).simd_eq(lane);
    let is_quote = lane.simd_eq(u8x16::splat(b'"'));
    let is_backslash = lane.simd_eq(u8x16::splat(b'\\'));
    (is_control | is_quote | is_backslash).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_found_wherever_it_stands() {
        for length in 0..=2 * LANE + 3 {
            for around in [b'a', 0x80, 0xff] {
                let mut text = vec![around; length];
                assert_eq!(first_stop(&text), None, "{text:?}");
                for (at, byte) in (0..length).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
                    text[at] = byte;
                    let is_stop = byte < b' ' || byte == b'"' || byte == b'\\';
                    assert_eq!(first_stop(&text), is_stop.then_some(at), "{text:?}");
                    text[at] = around;
                }
            }
        }
    }
}
