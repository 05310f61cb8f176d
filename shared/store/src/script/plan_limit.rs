//! A limit of the plan, as scripts that create agents and virtual keys receive it.

/// A limit with the name of its plan: the script refuses it if the account has another plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimit<'a> {
    /// Name of the plan.
    pub plan: &'a str,
    /// The limit; `None` means unlimited.
    pub most: Option<u64>,
}
