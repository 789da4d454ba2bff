//! The lists that come with the program; see `data/README.md` for their sources.

use super::embedded;
use super::table::{BalancerRow, MachineRow, RateRow};
use crate::process::exit_code::misuse;

const MACHINES: &str = include_str!("../../data/machines.csv");
const RATES: &str = include_str!("../../data/rates.csv");
const BALANCERS: &str = include_str!("../../data/balancers.csv");

/// How many names are offered instead of a wrong one.
const OFFERED: usize = 3;

pub fn machines() -> anyhow::Result<Vec<MachineRow>> {
    embedded(MACHINES, "machines.csv")
}

pub fn rates() -> anyhow::Result<Vec<RateRow>> {
    embedded(RATES, "rates.csv")
}

/// The first balancer that is listed for the machines of this name.
pub fn balancer(list: &str) -> anyhow::Result<Option<BalancerRow>> {
    let rows: Vec<BalancerRow> = embedded(BALANCERS, "balancers.csv")?;
    Ok(rows.into_iter().find(|row| row.list() == list))
}

/// Names in order, each once.
pub fn sorted(names: impl Iterator<Item = String>) -> String {
    distinct(names).join(", ")
}

/// The refusal of a name, with the nearest that exist.
pub fn unknown(name: &str, known: impl Iterator<Item = String>) -> anyhow::Error {
    let mut known = distinct(known);
    known.sort_by(|a, b| strsim::jaro_winkler(b, name).total_cmp(&strsim::jaro_winkler(a, name)));
    known.truncate(OFFERED);
    misuse(format!(
        "there is no price list {name}, nor a file of that name; did you mean {}?",
        known.join(", or ")
    ))
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}
