//! A run that was kept: in the history, or in a file of JSON or a report.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use load::bounded_read;

use crate::document::comparison::Named;
use crate::process::exit_code::misuse;
use crate::store::history::{History, RunName};
use crate::store::report_file;

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    History(RunName),
    File(PathBuf),
}

/// What was kept.
pub struct SavedRun {
    /// As its user names it.
    pub name: String,
    /// `plan`, `cost`, `load` or `compare`.
    pub kind: String,
    /// As JSON.
    pub document: String,
}

impl Place {
    /// Reads the run; the latest one is that of a kind, or of all.
    pub fn read(&self, kind: Option<&str>) -> anyhow::Result<SavedRun> {
        match self {
            Place::History(run) => {
                let history = History::read()?;
                let id = history.number(*run, kind)?;
                let (kind, document) = history.document(id)?;
                Ok(SavedRun { name: id.to_string(), kind, document })
            }
            Place::File(path) => {
                let name = path.display().to_string();
                let text = bounded_read::read_text(path).with_context(|| {
                    format!("cannot read {name}: name a file that you may read")
                })?;
                let document =
                    report_file::document(&text).map_or(text.as_str(), |within| within).to_owned();
                let kind = kind_of(&document).ok_or_else(|| {
                    misuse(format!("{name} holds no run: name a file of --json or --report"))
                })?;
                Ok(SavedRun { name, kind, document })
            }
        }
    }
}

/// A run to compare, which must be a load.
pub fn load_run(place: &Place) -> anyhow::Result<Named> {
    let SavedRun { name, kind, document } = place.read(Some("load"))?;
    if kind != "load" {
        let run = match place {
            Place::History(_) => format!("run {name}"),
            Place::File(_) => name,
        };
        return Err(misuse(format!("{run} is a {kind}: only load runs can be compared")));
    }
    let document = serde_json::from_str(&document).map_err(|error| match place {
        Place::History(_) => anyhow!("run {name} cannot be read: compare another"),
        Place::File(_) => misuse(format!(
            "{name} is not a load report ({error}): write one with tenfold load --json or --report"
        )),
    })?;
    Ok(Named { name, document })
}

/// `tenfold/load/1` is a load.
fn kind_of(document: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(document).ok()?;
    let schema = value.get("schema")?.as_str()?;
    let kind = schema.strip_prefix("tenfold/")?.split('/').next()?;
    ["plan", "cost", "load", "compare"].contains(&kind).then(|| kind.to_owned())
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        match text.parse() {
            Ok(run) => Ok(Place::History(run)),
            Err(_) if std::path::Path::new(text).exists() => Ok(Place::File(text.into())),
            Err(_) => Err(format!(
                "`{text}` is neither a run nor a file: write a number of `tenfold runs`, last, last~1 or a file of \
                 --json or --report"
            )),
        }
    }
}
