//! The curve of a plan as a picture of its own, in SVG or PNG.
//!
//! - [`typeface`]: how wide words are, and the outlines of letters.
//! - [`drawing`]: what is drawn, as lines, shapes and words; [`svg`] and [`png`] write it.
//! - [`axis`]: where values stand, and the ticks beside them.
//! - [`curve`]: what is drawn of a plan; [`panels`], [`legend`] and [`page`] place it.
//!
//! The page of a report draws the same marks in the browser (`web/src/charts/CapacityChart.svelte`).

mod axis;
mod curve;
mod drawing;
mod legend;
mod page;
mod panels;
mod png;
mod svg;
mod typeface;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use curve::Curve;

use crate::document::plan::Plan;
use crate::process::exit_code::misuse;
use crate::store::file;

/// The file of a picture. Its ending says how the picture is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartFile {
    path: PathBuf,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Svg,
    Png,
}

impl ChartFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the curve, whole or not at all.
    pub fn write(&self, plan: &Plan) -> anyhow::Result<()> {
        let curve = Curve::of(plan).ok_or_else(|| {
            misuse(
                "the plan has no curve to draw: measure one for a workload, with --rate 400 or --users 10 --think 1s",
            )
        })?;
        let drawing = page::drawing(plan, &curve);
        match self.form {
            Form::Svg => file::save(svg::text(&drawing)?.as_bytes(), &self.path),
            Form::Png => file::save(&png::bytes(&drawing)?, &self.path),
        }
    }
}

impl FromStr for ChartFile {
    type Err = String;

    fn from_str(text: &str) -> Result<ChartFile, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        let form = match ending.as_deref().and_then(|ending| ending.to_str()) {
            Some("svg") => Form::Svg,
            Some("png") => Form::Png,
            _ => {
                return Err(
                    "a chart is a picture: name a file that ends in .svg or .png".to_owned()
                );
            }
        };
        Ok(ChartFile { path, form })
    }
}

#[cfg(test)]
mod tests;
