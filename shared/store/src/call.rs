//! A proxied call in the store: it is authorized with a hold, which may be extended, and then settled, voided or reaped
//! (specification §4.4).

pub mod authorize;
pub mod denial_windows;
pub mod extend;
pub mod hold;
pub mod kept_holds;
pub mod reap;
pub mod settle;
pub mod snapshot;
pub mod unsettled_holds;
pub mod void;
