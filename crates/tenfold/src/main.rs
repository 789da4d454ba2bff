//! Runs an app as several instances, measures it, and says how many it needs.

fn main() {}
