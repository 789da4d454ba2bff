//! What goes to standard output and standard error.
//!
//! - [`output`]: text for people, which never blocks on a reader.
//! - [`progress`]: the line that says what is being measured.
//! - [`live`]: a load run while it lasts.
//! - [`chart`]: lines over two axes, on a screen or as text.

pub mod chart;
pub mod live;
pub mod output;
pub mod progress;
