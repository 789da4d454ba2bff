//! Certificates that an authority issues by itself (ACME, RFC 8555), proved by HTTP-01: the
//! authority asks the host itself, over plain HTTP, for a token.
//!
//! - `challenges`: the tokens that it may ask for.
//! - `store`: what is kept between runs, and certificates until the first one is issued.
//! - `external`: accounts that an authority has given out.
//! - `order`: how one certificate is got.
//! - `agent`: the thread that gets each in time.

pub(crate) mod agent;
pub(crate) mod challenges;
pub(crate) mod external_account;
pub(crate) mod order;
pub(crate) mod store;
