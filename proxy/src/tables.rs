//! Plans and prices.

pub mod prices;
