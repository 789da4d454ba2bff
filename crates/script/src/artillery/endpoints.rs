//! The plugin metrics-by-endpoint: the names that it gives to requests.

use super::compiler::Compiler;
use super::document::Node;
use super::fields::Fields;
use super::refusal::Refusal;
use crate::scenario::goal::Goal;
use crate::template::expression::ENDPOINTS;

/// How requests are called in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestNames {
    Url,
    Name,
}

/// Names of requests in metrics.
#[derive(Debug)]
pub(super) struct Endpoints {
    /// The prefix of all names.
    pub(super) namespace: String,
    names: RequestNames,
    query: QueryPart,
    unnamed: Unnamed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryPart {
    Kept,
    Stripped,
}

/// Requests without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unnamed {
    ByUrl,
    Ignored,
}

impl Endpoints {
    pub(super) fn read(compiler: &mut Compiler, node: &Node) -> Result<Endpoints, Refusal> {
        let mut fields = Fields::of(node, "the plugin metrics-by-endpoint")?;
        fields.allow(&["suppressOutput"]);
        let mut truth = |key, otherwise| match fields.take(key) {
            Some(node) => compiler.truth(node, key),
            None => Ok(otherwise),
        };
        let only_names = truth("useOnlyRequestNames", false)?;
        let strips = truth("stripQueryString", false)?;
        let ignores = truth("ignoreUnnamedRequests", false)?;
        if !truth("groupDynamicURLs", true)? {
            let what = "groupDynamicURLs: false is not supported: URLs are told apart as they are written; take it out";
            return Err(node.refuse(what));
        }
        let namespace = fields.take("metricsNamespace");
        let namespace = namespace.map(|node| compiler.fixed(node, "metricsNamespace"));
        fields.finish()?;
        Ok(Endpoints {
            namespace: namespace.transpose()?.unwrap_or_else(|| ENDPOINTS.to_owned()),
            names: if only_names { RequestNames::Name } else { RequestNames::Url },
            query: if strips { QueryPart::Stripped } else { QueryPart::Kept },
            unnamed: if ignores { Unnamed::Ignored } else { Unnamed::ByUrl },
        })
    }

    /// Artillery always loads the plugin. Here it is active if a condition needs it.
    pub(super) fn unasked(goals: &[Goal]) -> Option<Endpoints> {
        let mut names = goals.iter().flat_map(|goal| goal.expression.names());
        names.any(|name| name.starts_with(ENDPOINTS)).then(|| Endpoints {
            namespace: ENDPOINTS.to_owned(),
            names: RequestNames::Url,
            query: QueryPart::Stripped,
            unnamed: Unnamed::ByUrl,
        })
    }

    /// The name of a request with this URL, as written, if it counts.
    pub(super) fn name(&self, url: &str, name: Option<&str>) -> Option<String> {
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => url,
        };
        let path = match self.query {
            QueryPart::Kept => path,
            QueryPart::Stripped => path.split('?').next().unwrap_or_default(),
        };
        match (name, self.names) {
            (None, _) => (self.unnamed == Unnamed::ByUrl).then(|| path.to_owned()),
            (Some(name), RequestNames::Name) => Some(name.to_owned()),
            (Some(name), RequestNames::Url) => Some(format!("{path} ({name})")),
        }
    }
}
