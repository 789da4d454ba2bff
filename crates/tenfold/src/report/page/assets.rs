//! What `make build` makes of `web/`. Both are empty in a program that was built without it.

/// An inline module opens from a file, and an external one does not.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/report.js"));
pub const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/report.css"));

/// Whether there is a page to show.
pub fn are_built() -> bool {
    !SCRIPT.is_empty()
}
