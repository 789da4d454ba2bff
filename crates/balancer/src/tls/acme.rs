//! Certificates from an authority (ACME, RFC 8555), proved by HTTP-01: the authority asks each host for
//! a token over plain HTTP.
//!
//! - `challenges`: the tokens that the authority may ask for.
//! - `store`: what is kept between runs, and self-signed certificates until the first real one.
//! - `external_account`: accounts that an authority has given out.
//! - `order`: how one certificate is issued.
//! - `agent`: the thread that gets each certificate in time.

pub(crate) mod agent;
pub(crate) mod challenges;
pub(crate) mod external_account;
pub(crate) mod order;
pub(crate) mod store;
