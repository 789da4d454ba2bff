//! Numbers with a unit, as people write them.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use balancer::Slots;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use fleet::Cpus;
use fleet::limits::NotCpus;
use jiff::SignedDuration;

/// `200ms`, `1.5s`, `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is not a time: write a number and a unit, as in 200ms, 1.5s or 2m");
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    let signed: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    bounded(text, Duration::try_from(signed).map_err(|_| wrong())?)
}

/// A year is far from where sums of times overflow.
fn bounded(text: &str, time: Duration) -> Result<Duration, String> {
    match time > Duration::from_secs(365 * 86_400) {
        true => Err(format!("`{text}` is more than a year: write less")),
        false => Ok(time),
    }
}

/// A time of more than nothing.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| more_than_nothing(text, time))
}

/// Parses a duration, or a bare number of seconds as load tools do: `0.5`, `30`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.trim().parse().ok();
    let time = number.and_then(|n| Duration::try_from_secs_f64(n).ok());
    time.map_or_else(|| duration(text), |time| bounded(text, time))
}

/// Parses seconds that are more than 0.
pub fn positive_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| more_than_nothing(text, time))
}

/// Requests or users a second, more than 0.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        Ok(_) => Err(format!("a rate of {text} sends nothing: write more than 0 a second")),
        Err(_) => {
            Err(format!("`{text}` is not a rate: write a number of requests a second, as in 400"))
        }
    }
}

/// More than anybody has, and far from where sums of it overflow.
const MOST: usize = 1_000_000_000_000;

/// A number of at least 1.
pub fn count(text: &str) -> Result<usize, String> {
    match text.trim().parse::<usize>() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a count: write a whole number from 1")),
        Ok(count) if count > MOST => {
            Err(format!("`{text}` is too large: write at most 1000000000000"))
        }
        Ok(count) => Ok(count),
    }
}

/// A number that may be 0.
pub fn number<N: FromStr>(text: &str) -> Result<N, String> {
    let wrong = |_| format!("`{text}` is not a number that fits: write a whole number from 0");
    text.trim().parse().map_err(wrong)
}

/// A number of at least 1, or `auto`.
pub fn slots(text: &str) -> Result<Slots, String> {
    match text.trim().parse() {
        Ok(Slots::Fixed(0)) | Err(_) => Err(format!(
            "`{text}` is not a number of slots: write a whole number from 1, or auto to have it found"
        )),
        Ok(slots) => Ok(slots),
    }
}

/// `0.1%` or `0.001`: a share between 0 and 1.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        // Artillery's maxErrorRate of 1 is 1 %.
        Ok(1.0) if unit == 1.0 => Err(format!("`{text}` may be 1 % or all: write 1% or 100%")),
        Ok(value) if (0.0..=1.0).contains(&(value / unit)) => Ok(value / unit),
        _ => Err(format!("`{text}` is not a share: write 0.1% or a number from 0 to 1")),
    }
}

/// `16384`, `16KiB`, `1MiB`, `2GiB`; `k`, `M` and `G` without `i` are powers of 1000.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim().strip_suffix('B').unwrap_or(unit.trim()) {
        "" => Some(1_u64),
        "k" | "K" => Some(1000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let value =
        number.parse::<u64>().ok().zip(factor).and_then(|(n, factor)| n.checked_mul(factor));
    value.ok_or_else(|| {
        format!("`{text}` is not a size: write a number and a unit, as in 16KiB or 1MiB")
    })
}

/// An instance's share of the CPU, in cores.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    text.parse().map_err(|error: NotCpus| error.to_string())
}

/// An instance's memory. Below a page nothing runs.
pub fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0..4096 => Err(format!("`{text}` is below the minimum of 4 KiB: write more, as in 20MB")),
        bytes => Ok(bytes),
    }
}

/// An amount of money, in whatever currency the prices are.
pub fn amount(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        _ => Err(format!("`{text}` is not an amount: write a number, as in 16.50")),
    }
}

/// A server to send requests to: `127.0.0.1:8080`, `localhost:8080` or `unix:/run/app.sock`.
pub fn server(text: &str) -> Result<balancer::Address, String> {
    match text.starts_with("unix:") {
        true => text.parse().map_err(|error: balancer::UnknownAddress| error.to_string()),
        false => address(text).map(balancer::Address::Tcp),
    }
}

/// `127.0.0.1:8080` or `localhost:8080`.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|found| meant(&found.collect::<Vec<_>>()));
    found.ok_or_else(|| match text.rsplit_once(':') {
        Some((host, port)) if is_name(host) && port.parse::<u16>().is_ok() => {
            format!("`{host}` has no address: check the name, or write an IP address in its place")
        }
        _ => format!("`{text}` is not an address: write HOST:PORT, as in 127.0.0.1:8080"),
    })
}

/// A host's name without a port: `box.lan`.
pub fn host_name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "`{text}` is no host name: write it without scheme and port, as in box.lan"
        )),
    }
}

/// An address of this machine: `127.0.0.2`.
pub fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not an IP address: write one of this machine, as in 127.0.0.1")
    })
}

/// `4201-4210` or a single port.
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => Ok(first..=last),
        _ => Err(format!("`{text}` is not a range of ports: write FIRST-LAST, as in 4201-4210")),
    }
}

/// A directory that exists.
pub fn directory(path: PathBuf) -> Result<PathBuf, String> {
    match path.is_dir() {
        true => Ok(path),
        false => {
            Err(format!("`{}` is not a directory: create it or correct the path", path.display()))
        }
    }
}

/// A directory with what an image is built from.
pub fn build_folder(path: PathBuf) -> Result<PathBuf, String> {
    let path = directory(path)?;
    match ["Dockerfile", "Containerfile"].iter().any(|file| path.join(file).is_file()) {
        true => Ok(path),
        false => Err(format!(
            "there is no Dockerfile in `{}`: name the folder that has one",
            path.display()
        )),
    }
}

/// A port that something can listen on.
pub fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is no port: write 1 to 65535")),
    }
}

/// `NAME=VALUE`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it has no name and `=`: write NAME=VALUE".to_owned()),
    }
}

/// `Name: value`.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("it has no name and colon: write \"Name: value\"".to_owned()),
    }
}

/// Reads an argument that may hold a secret: what is wrong with it is said without repeating it.
#[derive(Clone)]
pub struct SecretValue<T>(pub fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for SecretValue<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        text.and_then(self.0).map_err(|why| {
            let argument = argument.map_or_else(String::new, ToString::to_string);
            let message = format!("a value for '{argument}' is wrong: {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

/// The address that a name stands for. On many machines `localhost` is ::1 first, where most servers
/// that listen on 127.0.0.1 are not; who listens on all of IPv6 is on IPv4, too.
fn meant(found: &[SocketAddr]) -> Option<SocketAddr> {
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
}

/// Whether it can be the name of a machine.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn more_than_nothing(text: &str, time: Duration) -> Result<Duration, String> {
    match time {
        Duration::ZERO => Err(format!("`{text}` must be greater than 0")),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_repeat_secrets() {
        let env = Arg::new("env").long("env").value_parser(SecretValue(assignment));
        let header = Arg::new("header").long("header").value_parser(SecretValue(header));
        for argument in [env, header] {
            let flag = format!("--{}", argument.get_id());
            let command = Command::new("x").arg(argument);
            let error = command.try_get_matches_from(["x", &flag, "s3cret"]).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(&flag) && message.contains("write "), "{message}");
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for bad in ["200", "", "fast", "-1s"] {
            assert!(duration(bad).unwrap_err().contains("is not a time"), "{bad:?}");
        }
        assert!(positive_duration("0s").is_err());
    }

    #[test]
    fn a_bare_number_is_seconds_where_allowed() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(
            (seconds("90"), seconds("0")),
            (Ok(Duration::from_secs(90)), Ok(Duration::ZERO))
        );
        assert_eq!(seconds("200ms"), duration("200ms"));
        for bad in ["-1", "NaN", "inf", "1e99", "fast"] {
            assert!(seconds(bad).unwrap_err().contains("is not a time"), "{bad}");
        }
        assert!(positive_seconds("0.0").unwrap_err().contains("must be greater than 0"));
    }

    #[test]
    fn rates_are_positive_numbers() {
        assert_eq!(rate("0.5"), Ok(0.5));
        assert!(rate("0").unwrap_err().contains("sends nothing"));
        for bad in ["", "many", "NaN", "inf", "-3"] {
            assert!(rate(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn counts_are_whole_numbers_below_a_maximum() {
        assert_eq!((count("1"), count(" 20 ")), (Ok(1), Ok(20)));
        for bad in ["", "0", "-1", "1.5", "18446744073709551615", "18446744073709551616"] {
            assert!(count(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn shares_with_and_without_percent() {
        assert_eq!(share("0.1%"), Ok(0.001));
        assert_eq!((share("0.5"), share("100%")), (Ok(0.5), Ok(1.0)));
        assert!(share("1").unwrap_err().contains("write 1% or 100%"));
        assert!(share("120%").is_err() && share("-1").is_err() && share("%").is_err());
    }

    #[test]
    fn sizes_in_bytes_and_their_multiples() {
        assert_eq!(bytes("16384"), Ok(16384));
        assert_eq!((bytes("16KiB"), bytes("2 MB")), (Ok(16384), Ok(2_000_000)));
        for bad in ["", "KiB", "1.5MiB", "-1", "99999999999GiB", "1XB"] {
            assert!(bytes(bad).unwrap_err().contains("is not a size"), "{bad}");
        }
    }

    #[test]
    fn cpu_limits_are_parsed() {
        assert_eq!(cpus("0.1").map(Cpus::cores), Ok(0.1));
        assert_eq!((memory("20M"), memory("20MiB")), (Ok(20_000_000), Ok(20 << 20)));
        assert!(memory("20").unwrap_err().contains("below the minimum of 4 KiB"));
    }

    #[test]
    fn addresses_are_parsed() {
        assert_eq!(address("127.0.0.1:80"), Ok(([127, 0, 0, 1], 80).into()));
        for bad in ["8080", ":80", "127.0.0.1", "http://127.0.0.1:80", "127.0.0.1:99999"] {
            assert!(address(bad).unwrap_err().contains("write HOST:PORT"), "{bad}");
        }
        assert!(ip("127.0.0").unwrap_err().contains("of this machine"));
    }

    #[test]
    fn a_name_stands_for_its_ipv4_address_if_it_has_one() {
        let [v6, v4, other] =
            ["[::1]:80", "127.0.0.1:80", "127.0.0.2:80"].map(|a| a.parse().unwrap());
        assert_eq!(meant(&[v6, v4, other]), Some(v4));
        assert_eq!((meant(&[v6]), meant(&[])), (Some(v6), None));
    }

    #[test]
    fn port_ranges_are_parsed() {
        assert_eq!(ports("4201-4210"), Ok(4201..=4210));
        assert_eq!(ports("80"), Ok(80..=80));
        assert!(ports("9-1").is_err() && ports("0-5").is_err() && ports("70000").is_err());
    }
}
