//! What is printed and written. `load` and `export` share it: both render the same value.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::document::load::Document;
use crate::process::exit_code::misuse;
use crate::report::load::{self as report, CSV_NAMES, CsvHistory, Latency};
use crate::report::page::{self, Detail};
use crate::store::file;
use crate::terminal::output;

#[derive(Args, Debug)]
#[command(next_help_heading = "Output (FILE - is standard output, instead of the text)")]
pub struct OutputArguments {
    /// Format of the summary: Tenfold's own, or that of another tool
    #[arg(long, value_name = "TOOL", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// With --format wrk: print the latency distribution
    #[arg(long)]
    latency: bool,
    /// Write the complete report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as one HTML file with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write Locust's files PREFIX_stats.csv, _stats_history.csv, _failures.csv, _exceptions.csv
    #[arg(long, value_name = "PREFIX")]
    csv: Option<PathBuf>,
    /// With --csv: add rows of each request to the history, like Locust
    #[arg(long, requires = "csv")]
    csv_full_history: bool,
    /// Write a line of JSON a second
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,
    /// Write the response times as HdrHistogram's percentile output, for its plotters
    #[arg(long, value_name = "FILE")]
    hgrm: Option<PathBuf>,
    /// Write the thresholds as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Whose fields the summary has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Ab,
    Wrk,
}

impl OutputArguments {
    /// Refuses what cannot be written before anything is measured for it.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.latency && self.format != Format::Wrk {
            return Err(misuse(
                "--latency adds wrk's distribution: give --format wrk with it, or leave it out, for Tenfold's \
                 summary always has percentiles",
            ));
        }
        if self.csv.as_deref().is_some_and(file::is_standard_output) {
            return Err(misuse(
                "--csv writes four files, which standard output cannot take: give the beginning of their names, \
                 as in --csv results",
            ));
        }
        let places = self.places();
        places.iter().try_for_each(|place| file::check(place))?;
        for (index, place) in places.iter().enumerate() {
            if places[..index].contains(place) {
                return Err(misuse(format!(
                    "two outputs go to {}: give each a file of its own",
                    place.display()
                )));
            }
        }
        Ok(())
    }

    /// Prints and writes everything. One that fails does not keep the others back.
    pub fn write(&self, document: &Document) -> anyhow::Result<()> {
        let taken = self.places().iter().any(|place| file::is_standard_output(place));
        let mut outcome = match taken {
            true => Ok(()),
            false => file::show(&self.summary(document)),
        };
        if taken || self.format != Format::Text {
            // Forms without a place for it.
            for complaint in
                report::overload(document).into_iter().chain(report::complaints(document))
            {
                output::tell(format_args!("tenfold: {complaint}"));
            }
        }
        for (place, text) in self.files(document)? {
            outcome = outcome.and(file::write(&text, &place));
        }
        outcome
    }

    fn summary(&self, document: &Document) -> String {
        let latency = if self.latency { Latency::Distribution } else { Latency::Summary };
        match self.format {
            Format::Text => report::text(document),
            Format::Ab => report::ab(document),
            Format::Wrk => report::wrk(document, latency),
        }
    }

    fn files(&self, document: &Document) -> anyhow::Result<Vec<(PathBuf, String)>> {
        let mut files = Vec::new();
        let mut add = |place: &Option<PathBuf>, render: &dyn Fn() -> anyhow::Result<String>| {
            if let Some(place) = place {
                files.push((place.clone(), render()?));
            }
            anyhow::Ok(())
        };
        add(&self.json, &|| crate::store::json::text(document))?;
        add(&self.ndjson, &|| report::ndjson(document))?;
        add(&self.hgrm, &|| Ok(report::hgrm(document)))?;
        add(&self.junit, &|| report::junit(document))?;
        add(&self.markdown, &|| Ok(report::markdown(document)))?;
        add(&self.report, &|| page::load(document, Detail::Compact))?;
        if self.csv.is_some() {
            let history = if self.csv_full_history { CsvHistory::Full } else { CsvHistory::Sum };
            files.extend(self.csv_places().into_iter().zip(report::locust(document, history)?));
        }
        Ok(files)
    }

    fn places(&self) -> Vec<PathBuf> {
        let files =
            [&self.json, &self.ndjson, &self.hgrm, &self.junit, &self.markdown, &self.report];
        files.into_iter().flatten().cloned().chain(self.csv_places()).collect()
    }

    fn csv_places(&self) -> Vec<PathBuf> {
        let of = |prefix: &PathBuf| CSV_NAMES.map(|name| with_suffix(prefix, name)).to_vec();
        self.csv.as_ref().map(of).unwrap_or_default()
    }
}

fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(suffix);
    name.into()
}
