//! Instances that are units of a template which the user has written.

use crate::document::app::AppSettings;

/// Units of a template, as many as are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// What stands before the `@`.
    pub template: String,
    /// What stands after it, of each.
    pub names: Vec<String>,
    /// Where each listens. Nobody knows that of a unit which was not measured, unless its name is its port.
    pub ports: Vec<u16>,
}

impl Units {
    /// Those that were measured and further ones, or those of `ports` where the port is the name.
    pub fn of(app: &AppSettings, ports: &[u16]) -> Option<Units> {
        let template = app.unit.as_ref()?.trim_end_matches('@').to_owned();
        let name = |unit: &str| {
            let instance = unit.strip_prefix(&template)?.strip_prefix('@')?;
            instance.strip_suffix(".service").map(str::to_owned)
        };
        let seen = app.units.iter().filter_map(|seen| Some((name(&seen.unit)?, seen.port)));
        let seen: Vec<(String, u16)> = seen.collect();
        let is_port = |(name, port): &(String, u16)| name.parse() == Ok(*port);
        if !seen.is_empty() && seen.iter().all(is_port) {
            let names = ports.iter().map(u16::to_string).collect();
            return Some(Units { template, names, ports: ports.to_vec() });
        }
        let numbers = (1_usize..).map(|number| number.to_string());
        let new = numbers.filter(|number| seen.iter().all(|(name, _)| name != number));
        let names = seen.iter().map(|(name, _)| name.clone()).chain(new);
        let names = names.take(ports.len()).collect();
        let ports = seen.iter().map(|(_, port)| *port).take(ports.len()).collect();
        Some(Units { template, names, ports })
    }

    /// As in `fibscale@1`.
    pub fn units(&self) -> Vec<String> {
        self.names.iter().map(|name| format!("{}@{name}", self.template)).collect()
    }

    /// Whether it is known where each of them listens.
    pub fn have_ports(&self) -> bool {
        self.ports.len() == self.names.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::app::UnitPort;

    fn units(seen: &[(&str, u16)], count: u16) -> Units {
        let seen =
            seen.iter().map(|&(name, port)| UnitPort { unit: format!("fib@{name}.service"), port });
        let (unit, units) = (Some("fib@".to_owned()), seen.collect());
        let app = AppSettings { unit, units, ..AppSettings::default() };
        let ports: Vec<u16> = (4201..4201 + count).collect();
        Units::of(&app, &ports).unwrap()
    }

    #[test]
    fn units_keep_their_names_and_further_ones_have_unknown_ports() {
        let three = units(&[("2", 42002), ("blue", 42001)], 3);
        assert_eq!((three.names.join(" "), three.have_ports()), ("2 blue 1".to_owned(), false));
        let one = units(&[("2", 42002), ("blue", 42001)], 1);
        assert_eq!((one.ports, one.names), (vec![42002], vec!["2".to_owned()]));
    }

    #[test]
    fn a_name_that_is_the_port_goes_on() {
        let two = units(&[("35001", 35001)], 2);
        assert_eq!((two.names.join(" "), two.have_ports()), ("4201 4202".to_owned(), true));
    }
}
