//! Specifiers in a unit, such as `%i`: systemd.unit(5).

use std::path::Path;
use std::sync::LazyLock;

use fancy_regex::Regex;

/// Stands for `%i` until it is clear whether that is a port or an index.
pub const INSTANCE: char = '\u{1}';

/// What precedes a port, in `NAME=value` and in a command, and the digits before `%i`, as in `4200%i`.
static PORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:port[= ]|:|(?<!\S)-[pbl] ?|--(?:bind|listen)[= ])([0-9]*)\x01(?![0-9])")
        .expect("a pattern of this file, which its tests use")
});

/// The unit's name, for specifiers.
pub struct UnitName {
    /// Before the `@`, or before `.service`.
    prefix: String,
    is_template: bool,
}

impl UnitName {
    pub fn of(path: &Path) -> UnitName {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let prefix = name.split('@').next().unwrap_or_default().to_owned();
        UnitName { prefix, is_template: name.contains('@') }
    }

    /// Replaces specifiers; systemd.unit(5).
    pub fn expand(&self, text: &str) -> Result<String, String> {
        let instance = if self.is_template { INSTANCE.to_string() } else { String::new() };
        let name = match self.is_template {
            true => format!("{}@{INSTANCE}", self.prefix),
            false => self.prefix.clone(),
        };
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let mut expanded = String::new();
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            if c != '%' {
                expanded.push(c);
                continue;
            }
            match characters.next() {
                Some('%') => expanded.push('%'),
                Some('i' | 'I') => expanded += &instance,
                Some('n') => expanded += &format!("{name}.service"),
                Some('N') => expanded += &name,
                Some('p' | 'P') => expanded += &self.prefix,
                Some('h') => expanded += &variable("HOME"),
                Some('u') => expanded += &variable("USER"),
                Some('t') => expanded += &variable("XDG_RUNTIME_DIR"),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "`%{other}` is known to systemd alone: put the command after --, with its value"
                    ));
                }
            }
        }
        Ok(expanded)
    }
}

/// What `%i` stands for.
pub enum Instance {
    Index,
    Port,
    /// The port is these digits and the index, as in `4200%i`.
    PortOf(String),
}

impl Instance {
    /// By where it stands: in a variable or after a flag for a port.
    pub fn of(env: &[(String, String)], words: &[String]) -> Instance {
        let variables = env.iter().map(|(name, value)| format!("{name}={value}"));
        for text in variables.chain([words.join(" ")]) {
            if let Ok(Some(found)) = PORT.captures(&text) {
                return match found.get(1).map_or("", |digits| digits.as_str()) {
                    "" => Instance::Port,
                    digits => Instance::PortOf(digits.to_owned()),
                };
            }
        }
        Instance::Index
    }

    pub fn fill(&self, text: &str) -> String {
        match self {
            Instance::Index => text.replace(INSTANCE, "{i}"),
            Instance::Port => text.replace(INSTANCE, "{port}"),
            Instance::PortOf(digits) => {
                let port = text.replace(&format!("{digits}{INSTANCE}"), "{port}");
                port.replace(INSTANCE, "{i}")
            }
        }
    }
}
