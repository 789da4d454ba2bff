//! The live page's server, over raw sockets: what it answers, and whom.

mod access;
mod asking;
mod clients;
mod instances;
mod loads;
mod measuring;
mod streams;
