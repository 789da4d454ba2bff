//! YAML, and JSON as a part of it, with the line of each value.

use saphyr::{MarkedYaml, Scalar, YamlData, YamlLoader};
use saphyr_parser::{Parser, ScanError};
use serde_json::Value;

use super::refusal::Refusal;
use super::{nesting, yaml_scalar};

/// A part of a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Counted from 1; 0 if it does not come from the file.
    pub(super) line: u32,
    pub(super) item: Item,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The line of the key.
    pub(super) line: u32,
    pub(super) value: Node,
}

/// How the lists of two documents are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// Element by element.
    Merged,
    Replaced,
}

impl Node {
    pub(super) fn parse(text: &str) -> Result<Node, Refusal> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        nesting::check(text)?;
        let documents = documents_of(text).map_err(|error| {
            let line = error.marker().line() as u32;
            let what =
                format!("this is not YAML: {}; check the indentation above it", error.info());
            Refusal::at(line, what)
        })?;
        match documents.first() {
            Some(document) => Node::of(document),
            None => Err(Refusal::whole("it is empty; give it config and scenarios")),
        }
    }

    /// A value that does not come from the script.
    pub(super) fn of_json(value: &Value) -> Node {
        let item = match value {
            Value::Null => Item::Null,
            Value::Bool(truth) => Item::Bool(*truth),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Item::Integer(whole),
                None => Item::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Item::Text(text.clone()),
            Value::Array(list) => Item::List(list.iter().map(Node::of_json).collect()),
            Value::Object(map) => Item::Map(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        line: 0,
                        value: Node::of_json(value),
                    })
                    .collect(),
            ),
        };
        Node { line: 0, item }
    }

    /// The entries of a map; `what` names it for the refusal.
    pub(super) fn entries(&self, what: &str) -> Result<&[Entry], Refusal> {
        match &self.item {
            Item::Map(entries) => Ok(entries),
            Item::Null => Ok(&[]),
            _ => Err(self.refuse(format!("{what} has to be a map of keys and values"))),
        }
    }

    /// The elements of a list.
    pub(super) fn list(&self, what: &str) -> Result<&[Node], Refusal> {
        match &self.item {
            Item::List(nodes) => Ok(nodes),
            _ => Err(self.refuse(format!("{what} has to be a list; begin its lines with '- '"))),
        }
    }

    /// The elements of a list, or a single value as a list of one.
    pub(super) fn one_or_more(&self) -> &[Node] {
        match &self.item {
            Item::List(nodes) => nodes,
            Item::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match &self.item {
            Item::Map(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
            }
            _ => None,
        }
    }

    /// A scalar as text; `None` for lists and maps.
    pub(super) fn scalar(&self) -> Option<String> {
        Some(match &self.item {
            Item::Null => String::new(),
            Item::Bool(truth) => truth.to_string(),
            Item::Integer(number) => number.to_string(),
            Item::Float(number) => number.to_string(),
            Item::Text(text) => text.clone(),
            Item::List(_) | Item::Map(_) => return None,
        })
    }

    pub(super) fn refuse(&self, what: impl Into<String>) -> Refusal {
        Refusal { line: (self.line > 0).then_some(self.line), what: what.into() }
    }

    /// Merges `other` into this document, whose values it replaces.
    pub(super) fn merge(&mut self, other: Node, lists: Lists) {
        match (&mut self.item, other.item) {
            (Item::Map(mine), Item::Map(others)) => {
                for entry in others {
                    match mine.iter_mut().find(|known| known.key == entry.key) {
                        Some(known) => known.value.merge(entry.value, lists),
                        None => mine.push(entry),
                    }
                }
            }
            (Item::List(mine), Item::List(others)) if lists == Lists::Merged => {
                let mut others = others.into_iter();
                for (node, other) in mine.iter_mut().zip(others.by_ref()) {
                    node.merge(other, lists);
                }
                mine.extend(others);
            }
            (_, item) => *self = Node { line: other.line, item },
        }
    }

    fn of(yaml: &MarkedYaml<'_>) -> Result<Node, Refusal> {
        let line = yaml.span.start.line() as u32;
        let item = match &yaml.data {
            YamlData::Value(scalar) => match scalar {
                Scalar::Null => Item::Null,
                Scalar::Boolean(truth) => Item::Bool(*truth),
                Scalar::Integer(number) => Item::Integer(*number),
                Scalar::FloatingPoint(number) => Item::Float(number.into_inner()),
                Scalar::String(text) => Item::Text(text.to_string()),
            },
            YamlData::Sequence(nodes) => {
                Item::List(nodes.iter().map(Node::of).collect::<Result<_, _>>()?)
            }
            YamlData::Mapping(map) => Item::Map(entries_of(map.iter())?),
            YamlData::Tagged(_, inner) => return Node::of(inner),
            YamlData::Representation(text, style, tag) => {
                yaml_scalar::value(text, *style, tag.as_deref())
                    .map_err(|why| Refusal::at(line, why))?
            }
            YamlData::Alias(_) | YamlData::BadValue => {
                let what = "this value cannot be read; check anchors, aliases and tags";
                return Err(Refusal::at(line, what));
            }
        };
        Ok(Node { line, item })
    }
}

/// Its scalars stay text, since their meaning is not that of YAML 1.2.
fn documents_of(text: &str) -> Result<Vec<MarkedYaml<'_>>, ScanError> {
    let mut loader = YamlLoader::default();
    loader.early_parse(false);
    Parser::new_from_str(text).load(&mut loader, true)?;
    match loader.error() {
        Some(error) => Err(error.clone()),
        None => Ok(loader.into_documents()),
    }
}

/// The entries of a map. Those of `<<` come last, and only if the map has no such key.
fn entries_of<'y, 'i: 'y>(
    pairs: impl Iterator<Item = (&'y MarkedYaml<'i>, &'y MarkedYaml<'i>)>,
) -> Result<Vec<Entry>, Refusal> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut merged = Vec::new();
    for (key, value) in pairs {
        let key = Node::of(key)?;
        let value = Node::of(value)?;
        let Some(name) = key.scalar() else {
            return Err(key.refuse("a key has to be a single word"));
        };
        match name.as_str() {
            "<<" => merged.extend(value.one_or_more().to_vec()),
            _ => entries.push(Entry { key: name, line: key.line, value }),
        }
    }
    for node in merged {
        for entry in node.entries("what << brings in")? {
            if entries.iter().all(|known| known.key != entry.key) {
                entries.push(entry.clone());
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_line() {
        let node = Node::parse("a: 1\nb:\n  - x\n  - c: yes\n    d: 1.5\n").unwrap();
        assert_eq!(node.get("a").unwrap().item, Item::Integer(1));
        let list = node.get("b").unwrap().list("b").unwrap();
        assert_eq!((list[0].line, list[1].line), (3, 4));
        let entries = list[1].entries("it").unwrap();
        assert_eq!((entries[1].key.as_str(), entries[1].line), ("d", 5));
        assert_eq!(entries[1].value.item, Item::Float(1.5));
    }

    #[test]
    fn json_is_yaml_too() {
        let node = Node::parse("{\n \"a\": [1, null, \"x\"]\n}").unwrap();
        let list = node.get("a").unwrap().list("a").unwrap();
        assert_eq!(list[1].item, Item::Null);
        assert_eq!(list[2].item, Item::Text("x".into()));
    }

    #[test]
    fn anchors_and_merge_keys_are_filled_in() {
        let node = Node::parse("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n").unwrap();
        let y = node.get("y").unwrap();
        assert_eq!(y.get("a").unwrap().item, Item::Integer(1));
        assert_eq!(y.get("b").unwrap().item, Item::Integer(3));
    }

    #[test]
    fn documents_become_one() {
        let mut node = Node::parse("a: {x: 1, l: [1, 2]}").unwrap();
        node.merge(Node::parse("a: {y: 2, l: [3]}").unwrap(), Lists::Merged);
        assert_eq!(node.get("a").unwrap().get("l").unwrap().list("l").unwrap().len(), 2);
        node.merge(Node::parse("a: {l: [4]}").unwrap(), Lists::Replaced);
        assert_eq!(node.get("a").unwrap().get("l").unwrap().list("l").unwrap().len(), 1);
        assert!(node.get("a").unwrap().get("x").is_some());
    }

    #[test]
    fn invalid_yaml_is_refused_with_its_line() {
        let refusal = Node::parse("a:\n  - b\n c: [").unwrap_err();
        assert_eq!(refusal.line, Some(3), "{refusal:?}");
        assert!(Node::parse("").is_err());
    }
}
