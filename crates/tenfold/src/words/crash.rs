//! Instances that died while something was measured.

use capacity::Crashes;
use fleet::Past;

/// How often one died, and how last.
pub fn describe(crashes: &Crashes) -> String {
    let Crashes { name, times, cause } = crashes;
    let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
    let cause = cause.as_deref().unwrap_or("nobody knows how");
    format!("{name} died {times} while it was measured ({cause})")
}

/// What the last of them left behind, if it wrote anything.
pub fn last_words(name: &str, past: &Past) -> Option<String> {
    let output = &past.last_output;
    (!output.0.is_empty()).then(|| format!("{name} died{output}"))
}
