//! Scalars of YAML.

use serde_json::json;

/// A text in double quotes, which are those of JSON in YAML 1.2.
pub fn text(text: &str) -> String {
    json!(text).to_string()
}

/// A list in brackets.
pub fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| text(word)).collect();
    format!("[{}]", words.join(", "))
}
