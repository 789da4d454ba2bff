//! Reads a map key by key, so that no key is ignored silently.

use super::document::{Entry, Node};
use super::refusal::Refusal;

/// The keys of a map. The reader must ask for each of them.
#[derive(Debug)]
pub(super) struct Fields<'n> {
    what: &'static str,
    entries: &'n [Entry],
    asked: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// `what` names the map for refusals, as in "a request".
    pub(super) fn of(node: &'n Node, what: &'static str) -> Result<Fields<'n>, Refusal> {
        Ok(Fields { what, entries: node.entries(what)?, asked: Vec::new() })
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Accepts keys that change nothing here.
    pub(super) fn allow(&mut self, keys: &[&'static str]) {
        self.asked.extend(keys);
    }

    /// Refuses keys that are not supported. `why` gives the reason and the remedy.
    pub(super) fn refuse(&mut self, keys: &[&'static str], why: &str) -> Result<(), Refusal> {
        self.asked.extend(keys);
        match self.entries.iter().find(|entry| keys.contains(&entry.key.as_str())) {
            Some(entry) => Err(Refusal::at(entry.line, format!("'{}' {why}", entry.key))),
            None => Ok(()),
        }
    }

    /// Refuses keys that nobody asked for. Keys that begin with `x-` are the author's own, for
    /// anchors.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        let known = |key: &str| key.starts_with("x-") || self.asked.contains(&key);
        let unknown = self.entries.iter().find(|entry| !known(&entry.key));
        let Some(entry) = unknown else {
            return Ok(());
        };
        let close = |known: &&&str| strsim::jaro_winkler(known, &entry.key);
        let nearest = self.asked.iter().max_by(|a, b| close(a).total_cmp(&close(b)));
        let remedy = match nearest.filter(|known| close(known) > 0.8) {
            Some(known) => format!("did you mean '{known}'?"),
            None => "take it out".to_owned(),
        };
        let what = format!("'{}' is not known in {}; {remedy}", entry.key, self.what);
        Err(Refusal::at(entry.line, what))
    }
}
