//! Texts and values with holes. They are compiled once, and filled in for each request.

use std::borrow::Cow;
use std::io::{self, Write};

use rand::RngExt;
use rand::rngs::SmallRng;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

use super::scope::{Reference, Scope};

/// A text whose parts follow each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Fixed(Box<str>),
    Variable(Reference),
    /// A whole number, both ends included.
    RandomNumber {
        from: i64,
        to: i64,
    },
    /// This many letters and digits.
    RandomString {
        length: usize,
    },
}

/// JSON with holes.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonTemplate {
    pub(crate) parts: Vec<JsonPart>,
}

#[derive(Debug, Clone)]
pub(crate) enum JsonPart {
    /// Serialized already.
    Raw(Vec<u8>),
    /// A whole value. A single variable keeps its type, and anything else is a string.
    Value(Text),
    /// A key of an object.
    Key(Text),
}

/// What fills the holes: the variables of a session, and the source of its random choices.
pub(crate) struct TemplateContext<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) random: &'a mut SmallRng,
}

impl Text {
    pub(crate) fn new(parts: Vec<Part>) -> Text {
        Text { parts }
    }

    pub(crate) fn fixed(text: &str) -> Text {
        Text { parts: vec![Part::Fixed(text.into())] }
    }

    /// The text, if it has no holes.
    pub(crate) fn as_fixed(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [Part::Fixed(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether `scope` knows all its variables.
    pub(crate) fn is_known(&self, scope: &Scope) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Variable(reference) => scope.get(reference).is_some(),
            Part::Fixed(_) | Part::RandomNumber { .. } | Part::RandomString { .. } => true,
        })
    }

    /// Appends the text, filled in.
    pub(crate) fn write(&self, scope: &Scope, random: &mut SmallRng, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Fixed(text) => out.extend_from_slice(text.as_bytes()),
                Part::Variable(reference) => write_plain(scope.get(reference).as_deref(), out),
                Part::RandomNumber { from, to } => {
                    let number = random.random_range(*from..=*to);
                    write_display(number, out);
                }
                Part::RandomString { length } => write_random_string(*length, random, out),
            }
        }
    }

    pub(crate) fn to_string(&self, scope: &Scope, random: &mut SmallRng) -> String {
        let mut out = Vec::new();
        self.write(scope, random, &mut out);
        into_string(out)
    }

    /// The value of the text. A single variable keeps its type, and may be undefined.
    pub(crate) fn value(&self, scope: &Scope, random: &mut SmallRng) -> Option<Value> {
        match &self.parts[..] {
            [Part::Variable(reference)] => scope.get(reference).map(Cow::into_owned),
            _ => Some(Value::String(self.to_string(scope, random))),
        }
    }

    fn write_json(&self, scope: &Scope, random: &mut SmallRng, out: &mut Vec<u8>) {
        if let [Part::Variable(reference)] = &self.parts[..] {
            return match scope.get(reference) {
                Some(value) => write_serialized(&*value, out),
                None => out.extend_from_slice(b"null"),
            };
        }
        let text = self.to_string(scope, random);
        write_serialized(&text, out);
    }
}

impl JsonTemplate {
    pub(crate) fn write(&self, scope: &Scope, random: &mut SmallRng, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                JsonPart::Raw(bytes) => out.extend_from_slice(bytes),
                JsonPart::Value(text) => text.write_json(scope, random, out),
                JsonPart::Key(text) => write_serialized(&text.to_string(scope, random), out),
            }
        }
    }

    /// Appends a fixed value.
    pub(crate) fn value(&mut self, value: &Value) {
        let mut bytes = Vec::new();
        write_serialized(value, &mut bytes);
        self.raw(&bytes);
    }

    /// Appends serialized fixed text.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(JsonPart::Raw(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(JsonPart::Raw(bytes.to_vec())),
        }
    }
}

/// A value as JavaScript would put it into a text, except that objects and lists are JSON.
pub(crate) fn write_plain(value: Option<&Value>, out: &mut Vec<u8>) {
    match value {
        None => out.extend_from_slice(b"undefined"),
        Some(Value::String(text)) => out.extend_from_slice(text.as_bytes()),
        Some(value) => write_serialized(value, out),
    }
}

pub(crate) fn plain(value: Option<&Value>) -> String {
    let mut out = Vec::new();
    write_plain(value, &mut out);
    into_string(out)
}

fn write_serialized(value: &impl Serialize, out: &mut Vec<u8>) {
    let mut serializer = serde_json::Serializer::with_formatter(out, JavaScript);
    value.serialize(&mut serializer).expect("values and texts serialize, and memory takes them");
}

/// JavaScript has one kind of number: 1.0 is written 1, and few have an exponent.
struct JavaScript;

impl Formatter for JavaScript {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        match value {
            0.0 => out.write_all(b"0"),
            _ if (1e-6..1e21).contains(&value.abs()) => write!(out, "{value}"),
            _ => CompactFormatter.write_f64(out, value),
        }
    }
}

pub(crate) fn write_display(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    write!(out, "{value}").expect("memory takes it");
}

fn write_random_string(length: usize, random: &mut SmallRng, out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    out.extend((0..length).map(|_| ALPHABET[random.random_range(0..ALPHABET.len())]));
}

/// A version 4 UUID (RFC 9562, 5.4).
pub(crate) fn identifier(random: &mut SmallRng) -> String {
    let bits: u128 = random.random();
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn into_string(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use serde_json::json;

    use super::super::scope::{Key, property_path};
    use super::*;

    fn variable(variable: u32, keys: Vec<Key>) -> Part {
        Part::Variable(Reference { variable, keys })
    }

    fn scope() -> Scope {
        let mut scope = Scope::default();
        scope.set(0, json!({"list": [{"id": 7}], "name": "a\"b"}));
        scope.set(1, json!(1.0));
        scope
    }

    fn inner() -> Part {
        variable(0, vec![Key::Name("list".into()), Key::Index(0), Key::Name("id".into())])
    }

    #[test]
    fn texts_are_filled_in_as_javascript_would() {
        let mut random = SmallRng::seed_from_u64(1);
        let parts = vec![
            Part::Fixed("/x/".into()),
            inner(),
            Part::Fixed("/".into()),
            variable(1, vec![]),
            Part::Fixed("/".into()),
            variable(2, vec![]),
        ];
        let text = Text::new(parts).to_string(&scope(), &mut random);
        assert_eq!(text, "/x/7/1/undefined");
        let lengths = ["list", "name"].map(|name| {
            let part = variable(0, vec![Key::Name(name.into()), Key::Name("length".into())]);
            Text::new(vec![part]).value(&scope(), &mut random)
        });
        assert_eq!(lengths, [Some(json!(1)), Some(json!(3))]);
        let list = variable(0, vec![Key::Name("list".into())]);
        assert_eq!(Text::new(vec![list]).to_string(&scope(), &mut random), r#"[{"id":7}]"#);
    }

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        for (number, wanted) in [
            (json!(0.00001), "0.00001"),
            (json!(12345678901234567890.0), "12345678901234567000"),
            (json!(1e20), "100000000000000000000"),
            (json!(-0.0), "0"),
            (json!(2.5), "2.5"),
            (json!(1e-7), "1e-7"),
            (json!(u64::MAX), "18446744073709551615"),
        ] {
            assert_eq!(plain(Some(&number)), wanted);
            assert_eq!(plain(Some(&json!([number]))), format!("[{wanted}]"));
        }
    }

    #[test]
    fn a_lone_variable_keeps_its_type() {
        let mut random = SmallRng::seed_from_u64(1);
        assert_eq!(Text::new(vec![inner()]).value(&scope(), &mut random), Some(json!(7)));
        let two = Text::new(vec![inner(), inner()]);
        assert_eq!(two.value(&scope(), &mut random), Some(json!("77")));
        let mut template = JsonTemplate::default();
        template.raw(b"{\"a\":");
        template.parts.push(JsonPart::Value(Text::new(vec![inner()])));
        template.raw(b",\"b\":");
        let name = vec![Part::Fixed("-".into()), variable(0, vec![Key::Name("name".into())])];
        template.parts.push(JsonPart::Value(Text::new(name)));
        template.raw(b"}");
        let mut out = Vec::new();
        template.write(&scope(), &mut random, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":7,"b":"-a\"b"}"#);
    }

    #[test]
    fn random_parts_stay_in_their_bounds() {
        let mut random = SmallRng::seed_from_u64(1);
        let text = Text::new(vec![
            Part::RandomNumber { from: 5, to: 6 },
            Part::Fixed("-".into()),
            Part::RandomString { length: 8 },
        ]);
        let mut firsts = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let filled = text.to_string(&Scope::default(), &mut random);
            assert_eq!(filled.len(), 10);
            firsts.insert(filled.as_bytes()[0]);
        }
        assert_eq!(firsts.into_iter().collect::<Vec<_>>(), *b"56");
    }

    #[test]
    fn paths_are_read_as_javascript_reads_them() {
        let shown = |path| format!("{:?}", property_path(path));
        assert_eq!(
            shown("a.b[0]['c d'].e"),
            r#"Some([Name("a"), Name("b"), Index(0), Name("c d"), Name("e")])"#
        );
        for wrong in ["", "a..b", "a[", "a[x]"] {
            assert!(property_path(wrong).is_none(), "{wrong}");
        }
    }
}
