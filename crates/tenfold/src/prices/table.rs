//! The columns of price lists, read and checked. `data/README.md` says what they mean.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use capacity::cost::price::{self, CpuKind, Machine};
use jiff::civil::Date;
use serde::{Deserialize, Deserializer};

use super::Dated;
use crate::process::exit_code::misuse;

/// A machine for rent.
#[derive(Clone, Debug, Deserialize)]
pub struct MachineRow {
    pub vendor: String,
    pub region: String,
    #[serde(rename = "type")]
    pub name: String,
    #[serde(deserialize_with = "positive")]
    pub vcpu: f64,
    #[serde(deserialize_with = "positive")]
    pub memory_gib: f64,
    pub cpu_kind: CpuKind,
    /// Architecture as the kernel names it: x86_64, arm64.
    pub arch: String,
    #[serde(deserialize_with = "positive")]
    price: f64,
    #[serde(deserialize_with = "currency")]
    currency: String,
    per: Per,
    #[serde(default, deserialize_with = "cap")]
    month_cap: Option<f64>,
    #[serde(default, deserialize_with = "date")]
    as_of: Option<Date>,
    #[serde(default)]
    source: String,
}

/// An hour of a core and of a GiB.
#[derive(Clone, Debug, Deserialize)]
pub struct RateRow {
    pub name: String,
    #[serde(default)]
    region: String,
    #[serde(deserialize_with = "positive")]
    pub vcpu_hour: f64,
    #[serde(deserialize_with = "positive")]
    pub gib_hour: f64,
    #[serde(deserialize_with = "currency")]
    currency: String,
    #[serde(default, deserialize_with = "date")]
    as_of: Option<Date>,
    #[serde(default)]
    source: String,
}

/// An hour of a load balancer.
#[derive(Clone, Debug, Deserialize)]
pub struct BalancerRow {
    vendor: String,
    region: String,
    #[serde(deserialize_with = "positive")]
    price_hour: f64,
    #[serde(default, deserialize_with = "cap")]
    month_cap: Option<f64>,
    #[serde(deserialize_with = "currency")]
    currency: String,
    #[serde(default, deserialize_with = "date")]
    as_of: Option<Date>,
    #[serde(default)]
    source: String,
}

/// What a price is for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Per {
    Hour,
    Month,
}

impl MachineRow {
    /// The list that it is in.
    pub fn list(&self) -> String {
        format!("{}:{}", self.vendor, self.region)
    }

    pub fn machine(&self) -> Machine {
        let month = match self.per {
            Per::Hour => price::month(self.price, self.month_cap),
            Per::Month => self.price,
        };
        Machine { cores: self.vcpu, memory: self.memory_gib * f64::from(1 << 30), month }
    }

    pub fn dated(&self) -> Dated<'_> {
        Dated { currency: &self.currency, as_of: self.as_of, source: &self.source }
    }
}

impl RateRow {
    /// Its name among all; several regions may have one of the same name.
    pub fn list(&self) -> String {
        match self.region.as_str() {
            "" | "default" => self.name.clone(),
            region => format!("{}:{region}", self.name),
        }
    }

    pub fn dated(&self) -> Dated<'_> {
        Dated { currency: &self.currency, as_of: self.as_of, source: &self.source }
    }
}

impl BalancerRow {
    /// The list of machines that it is beside.
    pub fn list(&self) -> String {
        format!("{}:{}", self.vendor, self.region)
    }

    pub fn month(&self) -> f64 {
        price::month(self.price_hour, self.month_cap)
    }

    pub fn dated(&self) -> Dated<'_> {
        Dated { currency: &self.currency, as_of: self.as_of, source: &self.source }
    }
}

/// All rows of a file.
pub fn read_file<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|error| misuse(format!("cannot read {name} ({error}): name another file")))?;
    let rows = read(file, &name)?;
    if rows.is_empty() {
        return Err(misuse(format!("{name} has no prices: write a row below its head")));
    }
    Ok(rows)
}

/// All rows; an error names file, line and what is wrong there.
pub fn read<T: for<'de> Deserialize<'de>>(text: impl Read, name: &str) -> anyhow::Result<Vec<T>> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text);
    let row = |row: Result<T, csv::Error>| {
        row.map_err(|error| {
            let line = error.position().map_or_else(String::new, |at| format!(":{}", at.line()));
            let what = match error.kind() {
                csv::ErrorKind::Deserialize { err, .. } => err.kind().to_string(),
                _ => error.to_string(),
            };
            misuse(format!("{name}{line}: {what}; docs/cost.md shows the columns"))
        })
    };
    reader.deserialize().map(row).collect()
}

fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    checked(f64::deserialize(from)?)
}

/// Prices without one could be any.
fn currency<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let currency = String::deserialize(from)?;
    let missing = || serde::de::Error::custom("a price needs a currency, as in EUR");
    (!currency.is_empty()).then_some(currency).ok_or_else(missing)
}

/// Empty is without one.
fn cap<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(from)?.map(checked).transpose()
}

fn checked<E: serde::de::Error>(value: f64) -> Result<f64, E> {
    match value.is_finite() && value > 0.0 {
        true => Ok(value),
        false => Err(E::custom(format!("{value} must be more than 0"))),
    }
}

/// Empty is undated.
fn date<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Date>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || serde::de::Error::custom(format!("`{text}` is not a day: write 2026-07-20"));
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "vendor,region,type,vcpu,memory_gib,cpu_kind,arch,price,currency,per,as_of";

    #[test]
    fn a_price_file_needs_only_the_required_columns() {
        let text = format!(
            "# ours\n{HEAD}\nus,cellar,small, 4, 8,dedicated,x86_64,21.5,EUR,month,2026-11-01\n"
        );
        let rows: Vec<MachineRow> = read(text.as_bytes(), "own.csv").unwrap();
        assert_eq!(rows[0].machine().month, 21.5);
        assert_eq!(rows[0].list(), "us:cellar");
        let rate = "name,vcpu_hour,gib_hour,currency\nours,0.02,0.003,EUR\n";
        let rows: Vec<RateRow> = read(rate.as_bytes(), "own.csv").unwrap();
        assert_eq!(rows[0].list(), "ours");
    }

    #[test]
    fn a_price_file_error_names_file_and_line() {
        let error = |row: &str| {
            let text = format!("{HEAD}\n{row}\n");
            read::<MachineRow>(text.as_bytes(), "own.csv").unwrap_err().to_string()
        };
        let free = error("us,cellar,small,4,8,dedicated,x86_64,0,EUR,month,");
        assert!(free.starts_with("own.csv:2: 0 must be more than 0"), "{free}");
        let text =
            format!("{HEAD},month_cap\nus,cellar,small,4,8,dedicated,x86_64,1,EUR,hour,,-5\n");
        let refund = read::<MachineRow>(text.as_bytes(), "own.csv").unwrap_err().to_string();
        assert!(refund.starts_with("own.csv:2: -5 must be more than 0"), "{refund}");
        let none = error("us,cellar,small,4,8,dedicated,x86_64,1,,month,");
        assert!(none.starts_with("own.csv:2: a price needs a currency"), "{none}");
        let kind = error("us,cellar,small,4,8,mine,x86_64,1,EUR,month,");
        assert!(kind.contains("dedicated"), "{kind}");
        let day = error("us,cellar,small,4,8,shared,x86_64,1,EUR,month,yesterday");
        assert!(day.contains("`yesterday` is not a day"), "{day}");
    }
}
