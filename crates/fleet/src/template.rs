//! A template unit of systemd that the user has written.

use std::fmt;
use std::str::FromStr;

use crate::program::Ports;

/// The name of a template unit, as in `fibscale@`, whose instances are units such as `fibscale@1.service`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateName(String);

/// A template unit whose instances are an app's.
#[derive(Debug, Clone)]
pub struct Template {
    /// Which one.
    pub name: TemplateName,
    /// Where instances listen; a range also picks one of several ports.
    pub ports: Ports,
}

/// Why a text names no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTemplate {
    /// A single unit.
    #[error(
        "`{0}` is a single unit, and Tenfold runs several of one kind: make it a template, `{1}@.service`, with %i \
         where instances differ, and name that"
    )]
    Single(String, String),
    /// An instance of a template.
    #[error("`{0}` is one instance: name its template, as in `{1}@`")]
    Instance(String, String),
    /// Something else.
    #[error("`{0}` is no name of a template unit: write one as in `fibscale@`")]
    Invalid(String),
}

// === impl TemplateName ===

impl TemplateName {
    /// The unit of an instance.
    pub(crate) fn unit(&self, instance: &str) -> String {
        format!("{self}{instance}.service")
    }

    /// The name of an instance, if the unit is one of the template.
    pub(crate) fn instance<'a>(&self, unit: &'a str) -> Option<&'a str> {
        unit.strip_prefix(&self.0)?.strip_prefix('@')?.strip_suffix(".service")
    }

    /// What stands before the `@`.
    pub fn prefix(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TemplateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.0)
    }
}

impl FromStr for TemplateName {
    type Err = NotTemplate;

    fn from_str(text: &str) -> Result<TemplateName, NotTemplate> {
        let name = text.strip_suffix(".service").unwrap_or(text);
        let (prefix, instance) = match name.split_once('@') {
            Some((prefix, instance)) => (prefix, Some(instance)),
            None => (name, None),
        };
        // systemd.unit(5).
        let is_valid = |c: char| c.is_ascii_alphanumeric() || ":-_.\\".contains(c);
        let suffix = prefix.rsplit('.').next().filter(|_| prefix.contains('.'));
        let is_other_kind =
            suffix.is_some_and(|kind| ["target", "socket", "timer"].contains(&kind));
        if prefix.is_empty() || !prefix.chars().all(is_valid) || is_other_kind {
            return Err(NotTemplate::Invalid(text.to_owned()));
        }
        match instance {
            Some("") => Ok(TemplateName(prefix.to_owned())),
            Some(_) => Err(NotTemplate::Instance(text.to_owned(), prefix.to_owned())),
            None => Err(NotTemplate::Single(text.to_owned(), prefix.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_named_with_or_without_its_suffix() {
        for text in ["fibscale@", "fibscale@.service"] {
            let name: TemplateName = text.parse().unwrap();
            assert_eq!(
                (name.to_string(), name.unit("2")),
                ("fibscale@".into(), "fibscale@2.service".into())
            );
            assert_eq!(name.instance("fibscale@2.service"), Some("2"));
            assert_eq!(name.instance("fibscale2@2.service"), None);
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_what_to_write() {
        let refused = |text: &str| text.parse::<TemplateName>().unwrap_err().to_string();
        assert!(refused("fibscale.service").contains("make it a template, `fibscale@.service`"));
        assert_eq!(
            refused("fibscale@3"),
            "`fibscale@3` is one instance: name its template, as in `fibscale@`"
        );
        for bad in ["", "@", "a b@", "../x@", "app.target"] {
            assert!(refused(bad).contains("is no name of a template unit"), "{bad}");
        }
    }
}
