//! What machines cost: from the catalogue that comes with the program, or from the user's own file
//! in the same columns.
//!
//! - `table`: the columns, read and checked.
//! - `catalogue`: what comes along, and names that are almost right.
//! - `offers`: the machines that hold a plan.

mod catalogue;
mod offers;
mod table;

use std::path::Path;

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::config::quantity;
use crate::document::cost::Origin;
use crate::process::exit_code::misuse;
pub use table::{BalancerRow, MachineRow, RateRow};

/// Where prices come from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Prices")]
pub struct PriceArguments {
    /// Price it by this list, as in aws:us-east-1, or by a CSV file of the same columns
    #[arg(long, value_name = "LIST|FILE", env = "TENFOLD_PRICES")]
    pub prices: Option<String>,
    /// What the balancer in front of several costs a month, in the currency of the prices [default: as listed, else nothing]
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::amount, env = "TENFOLD_BALANCER_PRICE")]
    pub balancer_price: Option<f64>,
}

/// Machines of one list, in one currency.
#[derive(Clone, Debug)]
pub struct Machines {
    pub rows: Vec<MachineRow>,
    pub origin: Origin,
    /// A month of the list's own balancer, or of the one that was given.
    pub balancer: Option<f64>,
}

/// The price of shares of a machine.
#[derive(Clone, Debug)]
pub struct Rate {
    pub row: RateRow,
    pub origin: Origin,
}

/// Prices that are older may have changed.
const OLD_DAYS: i32 = 180;

// === impl Machines ===

impl Machines {
    /// The list of this name, or the file.
    pub fn named(arguments: &PriceArguments, name: &str) -> anyhow::Result<Machines> {
        let listed = catalogue::machines()?;
        let is_named = |row: &MachineRow| row.list() == name;
        let rows: Vec<MachineRow> = listed.iter().filter(|row| is_named(row)).cloned().collect();
        let given = arguments.balancer_price;
        let (rows, balancer) = match (rows.is_empty(), Path::new(name).is_file()) {
            // A price that is not used has no part in the day and the warnings.
            (false, _) if given.is_some() => (rows, None),
            (false, _) => (rows, catalogue::balancer(name)?),
            (true, true) => (table::read_file(Path::new(name))?, None),
            (true, false) if catalogue::rates()?.iter().any(|row| row.list() == name) => {
                return Err(misuse(format!(
                    "{name} prices shares of a machine, and a plan rents whole ones: name a list, one of {}",
                    catalogue::sorted(listed.iter().map(MachineRow::list))
                )));
            }
            (true, false) => {
                return Err(catalogue::unknown(name, listed.iter().map(MachineRow::list)));
            }
        };
        let dated = rows.iter().map(MachineRow::dated);
        let origin = Origin::of(name, dated.chain(balancer.iter().map(BalancerRow::dated)))?;
        let balancer = given.or(balancer.map(|row| row.month()));
        Ok(Machines { rows, origin, balancer })
    }
}

// === impl Rate ===

impl Rate {
    /// What shares of a machine are priced with unless told otherwise: recent, and of no size.
    pub const DEFAULT: &'static str = "gcp-n2:us-central1";

    /// The rate of this name, or of the file.
    pub fn named(name: &str) -> anyhow::Result<Rate> {
        let listed = catalogue::rates()?;
        let is_named = |row: &&RateRow| row.list() == name || row.name == name;
        let mut rows: Vec<RateRow> = listed.iter().filter(is_named).cloned().collect();
        let is_own = rows.is_empty() && Path::new(name).is_file();
        if is_own {
            rows = table::read_file(Path::new(name))?;
        }
        match rows.as_slice() {
            [row] => Ok(Rate { origin: Origin::of(name, [row.dated()])?, row: row.clone() }),
            [] if catalogue::machines()?.iter().any(|row| row.list() == name) => {
                Err(misuse(format!(
                    "{name} lists whole machines, and sizes are shares of one: name a rate, one of {}",
                    catalogue::sorted(listed.iter().map(RateRow::list))
                )))
            }
            [] => Err(catalogue::unknown(name, listed.iter().map(RateRow::list))),
            several if is_own => {
                Err(misuse(format!("{name} holds {} rates: keep one in a file", several.len())))
            }
            several => Err(misuse(format!(
                "{name} holds {} rates: name one of {}",
                several.len(),
                catalogue::sorted(several.iter().map(RateRow::list))
            ))),
        }
    }

    pub fn rate(&self) -> capacity::cost::price::Rate {
        capacity::cost::price::Rate { core_hour: self.row.vcpu_hour, gib_hour: self.row.gib_hour }
    }
}

// === impl Origin ===

/// What a row says of itself.
pub struct Dated<'a> {
    pub currency: &'a str,
    pub as_of: Option<Date>,
    pub source: &'a str,
}

impl Origin {
    fn of<'a>(name: &str, rows: impl IntoIterator<Item = Dated<'a>>) -> anyhow::Result<Origin> {
        Origin::on(name, rows, Timestamp::now().to_zoned(TimeZone::UTC).date())
    }

    fn on<'a>(
        name: &str,
        rows: impl IntoIterator<Item = Dated<'a>>,
        today: Date,
    ) -> anyhow::Result<Origin> {
        let (mut currencies, mut sources, mut dates, mut undated) = (vec![], vec![], vec![], 0);
        for row in rows {
            currencies.push(row.currency.to_owned());
            sources.push(row.source.to_owned());
            dates.extend(row.as_of);
            undated += usize::from(row.as_of.is_none());
        }
        for list in [&mut currencies, &mut sources] {
            list.sort();
            list.dedup();
        }
        sources.retain(|source| !source.is_empty());
        let [currency] = currencies.as_slice() else {
            return Err(misuse(format!(
                "{name} has prices in {}, and currencies are not mixed: keep one in a file",
                currencies.join(" and ")
            )));
        };
        let oldest = dates.iter().min();
        let mut warnings = Vec::new();
        if let Some(date) = oldest {
            let days = today.since(*date).map_or(0, |span| span.get_days());
            if days > OLD_DAYS {
                warnings.push(format!(
                    "prices of {date} are {days} days old and may have changed: give newer ones with --prices FILE"
                ));
            }
        }
        if undated > 0 {
            let prices = if undated == 1 { "one price has" } else { "some prices have" };
            warnings.push(format!("{prices} no date: nobody can say how old that is"));
        }
        Ok(Origin {
            prices: name.to_owned(),
            currency: currency.clone(),
            as_of: oldest.map(ToString::to_string),
            sources,
            warnings,
        })
    }

    /// The words for it, as in `aws:us-east-1 as of 2026-07-20, in USD`.
    pub fn describe(&self) -> String {
        let as_of =
            self.as_of.as_deref().map_or("undated".to_owned(), |day| format!("as of {day}"));
        format!("{} {as_of}, in {}, list prices before tax", self.prices, self.currency)
    }
}

/// Reads rows that come with the program.
fn embedded<T: for<'de> Deserialize<'de>>(text: &str, name: &str) -> anyhow::Result<Vec<T>> {
    table::read(text.as_bytes(), name).context("the program's own price list is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dated(currency: &str, as_of: Option<Date>) -> Dated<'_> {
        Dated { currency, as_of, source: "s" }
    }

    #[test]
    fn every_bundled_price_list_is_readable_in_one_currency() {
        let machines = catalogue::machines().unwrap();
        assert_eq!(machines.len(), 352);
        for name in machines.iter().map(MachineRow::list) {
            let list = Machines::named(&PriceArguments::default(), &name).unwrap();
            assert!(!list.rows.is_empty() && list.origin.currency.len() == 3, "{name}");
        }
        for rate in catalogue::rates().unwrap() {
            assert!(Rate::named(&rate.list()).is_ok(), "{}", rate.list());
        }
        assert!(Rate::named(Rate::DEFAULT).is_ok());
        let aws = Machines::named(&PriceArguments::default(), "aws:us-east-1").unwrap();
        assert!((aws.balancer.unwrap() - 16.425).abs() < 1e-9);
    }

    // Google's balancer was last seen in 2022, Amazon's on no day at all.
    #[test]
    fn a_given_balancer_price_has_no_age() {
        let ours = PriceArguments { balancer_price: Some(20.0), ..PriceArguments::default() };
        for name in ["gcp:europe-west4", "aws:us-east-1"] {
            let theirs = Machines::named(&PriceArguments::default(), name).unwrap().origin;
            let Machines { rows, origin, balancer } = Machines::named(&ours, name).unwrap();
            let oldest = rows.iter().filter_map(|row| row.dated().as_of).min().unwrap();
            assert_eq!((balancer, origin.as_of), (Some(20.0), Some(oldest.to_string())));
            assert!(!origin.sources.is_empty() && origin.sources.len() < theirs.sources.len());
        }
    }

    #[test]
    fn an_unknown_price_list_suggests_near_names() {
        let error =
            |name: &str| Machines::named(&PriceArguments::default(), name).unwrap_err().to_string();
        assert!(
            error("aws:us-east1").contains("did you mean aws:us-east-1"),
            "{}",
            error("aws:us-east1")
        );
        assert!(error("gcp:europe").contains("gcp:europe-west4"));
        let shares = error("gcp-n2:us-central1");
        assert!(shares.contains("prices shares of a machine") && shares.contains("aws:us-east-1"));
        let error = Rate::named("aws:us-east-1").unwrap_err().to_string();
        assert!(error.contains("lists whole machines") && error.contains("gcp-n2:us-central1"));
        let error = Rate::named("gcp-n2").unwrap_err().to_string();
        assert!(error.ends_with("name one of gcp-n2:europe-west4, gcp-n2:us-central1"), "{error}");
    }

    // Names within a file cannot be given.
    #[test]
    fn a_rate_file_holds_one_rate() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own.csv");
        let head = "name,vcpu_hour,gib_hour,currency\nday,0.02,0.003,EUR\n";
        let named = |text: String| {
            std::fs::write(&path, text).unwrap();
            Rate::named(path.to_str().unwrap())
        };
        assert_eq!(named(head.to_owned()).unwrap().row.vcpu_hour, 0.02);
        let error = named(format!("{head}night,0.01,0.003,EUR\n")).unwrap_err().to_string();
        assert!(error.ends_with("holds 2 rates: keep one in a file"), "{error}");
    }

    #[test]
    fn old_prices_warn_and_currencies_are_not_mixed() {
        let day = |text: &str| text.parse::<Date>().ok();
        let on = |rows: Vec<Dated<'static>>| Origin::on("x", rows, "2026-11-21".parse().unwrap());
        let fresh = on(vec![dated("USD", day("2026-07-20"))]).unwrap();
        assert!(fresh.warnings.is_empty());
        assert_eq!(fresh.describe(), "x as of 2026-07-20, in USD, list prices before tax");
        let warnings = |text| on(vec![dated("USD", day(text))]).unwrap().warnings.len();
        assert_eq!((warnings("2026-05-25"), warnings("2026-05-24")), (0, 1), "180 and 181 days");
        let old =
            on(vec![dated("USD", day("2026-07-20")), dated("USD", day("2023-04-01"))]).unwrap();
        assert_eq!(old.as_of.as_deref(), Some("2023-04-01"));
        assert!(old.warnings[0].contains("are 1330 days old"), "{:?}", old.warnings);
        let undated = on(vec![dated("EUR", None)]).unwrap();
        assert!(undated.describe().starts_with("x undated") && undated.warnings.len() == 1);
        let mixed = on(vec![dated("USD", None), dated("EUR", None)]).unwrap_err();
        assert!(mixed.to_string().contains("EUR and USD, and currencies are not mixed"));
    }
}
