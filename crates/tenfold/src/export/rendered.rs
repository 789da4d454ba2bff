//! A file that is ready to be written.

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub name: String,
    pub text: String,
}

impl Rendered {
    pub fn new(name: impl Into<String>, text: String) -> Rendered {
        Rendered { name: name.into(), text }
    }
}
