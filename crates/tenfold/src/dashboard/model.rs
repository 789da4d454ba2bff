//! What the live page shows. [`state`] is a snapshot, and [`event`] is what goes on from it, so that a page that
//! was away gets what it missed. Values that change every second are columns of integers: their series and
//! instances are defined once.
//!
//! - [`inventory`]: apps, their instances, and what can be asked for.
//! - [`state`]: all of it at a moment.
//! - [`event`]: what changes.
//! - [`load`]: the load that runs, and how it is steered.
//! - [`measurement`]: the plan or cost that runs.
//! - [`history`]: what was before the page came, and earlier runs.

pub mod event;
pub mod history;
pub mod inventory;
pub mod load;
pub mod measurement;
pub mod state;

/// The schema's name and version.
pub const SCHEMA: &str = "tenfold/live/1";
