//! The one place that draws randomness from the operating system.

/// The operating system gave no randomness; nothing that needs any may go on.
#[derive(Debug, thiserror::Error)]
#[error("the operating system's random number generator failed")]
pub struct NoEntropy(#[source] getrandom::Error);

/// `N` random bytes, fit for keys.
///
/// # Errors
/// [`NoEntropy`] when the operating system has none to give.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoEntropy> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(NoEntropy)?;
    Ok(bytes)
}
