//! Instances that died while something was measured, in words.

use fleet::Past;

/// How often, and how last.
pub fn told(name: &str, times: u32, past: &Past) -> String {
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let cause = past.last_crash.as_deref().unwrap_or("nobody knows how");
    format!("{name} died {times} while it was measured ({cause})")
}

/// What the last of them left behind, if it wrote anything.
pub fn last_words(name: &str, past: &Past) -> Option<String> {
    let output = &past.last_output;
    (!output.0.is_empty()).then(|| format!("{name} died{output}"))
}
