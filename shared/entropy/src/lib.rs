//! The only source of randomness: the operating system.

use std::cell::RefCell;

/// The operating system has no randomness; every operation that needs it must fail.
#[derive(Debug, thiserror::Error)]
#[error("the operating system's random number generator failed")]
pub struct NoEntropy(#[source] getrandom::Error);

/// Returns `N` random bytes, suitable for keys.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoEntropy> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(NoEntropy)?;
    Ok(bytes)
}

/// Bytes drawn at once for ids.
const POOL_BYTES: usize = 1024;

/// Random bits drawn ahead for ids, so that not every id costs a system call. Never used for secrets.
struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

/// Returns random bits for an id.
pub fn id_bits() -> Result<u128, NoEntropy> {
    const BYTES: usize = size_of::<u128>();
    POOL.with_borrow_mut(|pool| {
        if pool.used + BYTES > POOL_BYTES {
            pool.bytes = random_bytes()?;
            pool.used = 0;
        }
        let mut bits = [0; BYTES];
        bits.copy_from_slice(&pool.bytes[pool.used..pool.used + BYTES]);
        pool.used += BYTES;
        Ok(u128::from_ne_bytes(bits))
    })
}
