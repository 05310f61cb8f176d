//! Limits of the account's plan in scripts. Plans are a file, and the store has only the name of the account's plan: a
//! script that received the limits of another plan changes nothing, and replies with that name.

/// Maximum executions for one request. Each except the last may find that the account has another plan.
pub const EXECUTIONS_MAX: usize = 3;

/// A limit with the name of its plan, for scripts that create agents and virtual keys.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimit<'a> {
    /// Name of the plan.
    pub plan: &'a str,
    /// The limit; `None` means unlimited.
    pub most: Option<u64>,
}
