//! The limit of open files of this process.

/// Raises it to what the system allows this process, and returns it.
pub fn raise() -> usize {
    let limit = rlimit::increase_nofile_limit(u64::MAX).or_else(|error| {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        rlimit::Resource::NOFILE.get_soft()
    });
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
