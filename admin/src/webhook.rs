//! Webhooks: from a body and a URL to what came of it (decisions D41, D43, D44 and D66).
//!
//! [`dispatch`] makes the deliveries of what happened, [`turn`] attempts those of one webhook, and [`payload`] writes their
//! bodies.
//!
//! A URL is read by [`target`], its name looked up by [`resolve`], each address judged by [`vet`]; only then does
//! [`send`] connect, to these addresses and no other, with the headers of [`sign`].

pub mod behind;
pub mod dispatch;
pub mod payload;
pub mod resolve;
pub mod send;
pub mod sign;
pub mod target;
pub mod text;
pub mod turn;
pub mod vet;
pub mod wake;
