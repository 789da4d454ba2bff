//! The variables of a session, and the ways into their values.

use std::borrow::Cow;

use serde_json::Value;

/// The variables of a session, by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    values: Vec<Option<Value>>,
}

/// A variable, or something inside it.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) variable: u32,
    pub(crate) keys: Vec<Key>,
}

#[derive(Debug, Clone)]
pub(crate) enum Key {
    Name(Box<str>),
    Index(usize),
}

impl Scope {
    pub(crate) fn get(&self, reference: &Reference) -> Option<Cow<'_, Value>> {
        inside(self.values.get(reference.variable as usize)?.as_ref()?, &reference.keys)
    }

    #[cfg(test)]
    pub(crate) fn variable(&self, variable: u32) -> Option<&Value> {
        self.values.get(variable as usize)?.as_ref()
    }

    pub(crate) fn set(&mut self, variable: u32, value: Value) {
        let index = variable as usize;
        if self.values.len() <= index {
            self.values.resize(index + 1, None);
        }
        self.values[index] = Some(value);
    }

    /// Becomes a copy of `other`, in the same memory.
    pub(crate) fn reset(&mut self, other: &Scope) {
        self.values.clone_from(&other.values);
    }
}

impl Key {
    /// The value under this key.
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match (self, value) {
            (Key::Name(name), _) => value.get(&**name),
            (Key::Index(index), Value::Object(map)) => map.get(&index.to_string()),
            (Key::Index(index), _) => value.get(*index),
        }
    }
}

/// The value at the end of these keys, including the length of a list or a text, as in JavaScript.
pub(crate) fn inside<'v>(value: &'v Value, keys: &[Key]) -> Option<Cow<'v, Value>> {
    match keys {
        [] => Some(Cow::Borrowed(value)),
        [key, rest @ ..] => match (key.of(value), key, rest) {
            (Some(inner), ..) => inside(inner, rest),
            (None, Key::Name(name), []) if &**name == "length" => length(value).map(Cow::Owned),
            _ => None,
        },
    }
}

/// The length of a list or a text. JavaScript counts in units of UTF-16.
pub(crate) fn length(value: &Value) -> Option<Value> {
    match value {
        Value::Array(list) => Some(list.len().into()),
        Value::String(text) => Some(text.encode_utf16().count().into()),
        _ => None,
    }
}

/// The keys of `a.b[0]['c d']`; `None` if it is not of that form.
pub(crate) fn property_path(path: &str) -> Option<Vec<Key>> {
    let mut keys = Vec::new();
    let mut rest = path.trim();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, after) = inner.split_once(']')?;
            let quoted = ['"', '\'']
                .iter()
                .find_map(|quote| key.trim().strip_prefix(*quote)?.strip_suffix(*quote));
            keys.push(match (quoted, key.trim().parse()) {
                (Some(name), _) => Key::Name(name.into()),
                (None, Ok(index)) => Key::Index(index),
                (None, Err(_)) => return None,
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                return None;
            }
            keys.push(match name.parse() {
                Ok(index) => Key::Index(index),
                Err(_) => Key::Name(name.into()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    (!keys.is_empty()).then_some(keys)
}
