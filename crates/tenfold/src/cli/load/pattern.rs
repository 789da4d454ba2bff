//! When requests are due, and until when.

use std::time::Duration;

use clap::Args;
use load::{End, Phase, Spacing, Trim, Workload};

use super::shape::{self, ShapeArguments};
use crate::config::{environment, quantity};
use crate::process::exit_code::misuse;

#[derive(Args, Debug)]
#[command(next_help_heading = "Workload")]
pub struct PatternArguments {
    /// Users who wait for each answer [default: 1] [env: TENFOLD_USERS]
    #[arg(short, long, value_name = "N", value_parser = quantity::count)]
    users: Option<usize>,
    /// Number of users, like connections of ab and wrk
    #[arg(short = 'c', long, visible_alias = "connections", value_name = "N", value_parser = quantity::count, conflicts_with = "users")]
    concurrency: Option<usize>,
    /// Users started a second [default: all at once]
    #[arg(long, visible_alias = "spawn-rate", value_name = "R", value_parser = quantity::rate)]
    ramp: Option<f64>,
    /// New requests a second, sent even when earlier ones are unanswered [env: TENFOLD_RATE]
    #[arg(short = 'R', long, value_name = "R", value_parser = quantity::rate)]
    rate: Option<f64>,
    /// With -u the same as --ramp, alone the same as --rate
    #[arg(short = 'r', value_name = "R", value_parser = quantity::rate)]
    r: Option<f64>,
    /// Change the rate to R2 over the whole duration
    #[arg(long, value_name = "R2", value_parser = quantity::rate)]
    ramp_to: Option<f64>,
    /// Space arrivals at random (Poisson) instead of evenly
    #[arg(long)]
    poisson: bool,
    /// Space arrivals at random, with exactly as many in each step or run as its rate says
    #[arg(long, conflicts_with_all = ["poisson", "requests"])]
    stratified: bool,
    /// Random seed: the same number gives the same arrivals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::number::<u64>)]
    pub seed: u64,
    /// Duration of the load [default: 10s]
    #[arg(long, visible_alias = "run-time", value_name = "TIME", value_parser = quantity::positive_seconds)]
    duration: Option<Duration>,
    /// Duration as in wrk: -d 30s, -d 30
    #[arg(short = 'd', value_name = "TIME", value_parser = d)]
    d: Option<Duration>,
    /// Duration, as in -t 20s; with -d a bare number is threads, else seconds
    #[arg(short = 't', value_name = "TIME|N", value_parser = t)]
    t: Option<TimeOrNumber>,
    /// Stop after N requests
    #[arg(short = 'n', long, value_name = "N", value_parser = quantity::count)]
    requests: Option<usize>,
    #[command(flatten)]
    shape: ShapeArguments,
}

/// How long, by how many threads.
#[derive(Debug, PartialEq)]
pub struct Timing {
    pub end: End,
    /// The length, if it is known before the run.
    pub length: Option<Duration>,
    /// Threads, if -t gave them.
    pub threads: Option<usize>,
    /// Rates that change as planned.
    phases: Option<Vec<Phase>>,
}

/// The unit of `-t` tells a duration from a number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TimeOrNumber {
    Time(Duration),
    Number(usize),
}

/// Users or arrivals, from whichever of the flags.
#[derive(Debug, PartialEq)]
enum Load {
    Users {
        users: usize,
        ramp: Option<f64>,
    },
    Rate(f64),
    /// Rates as the shape plans them.
    Planned,
}

const DURATION: Duration = Duration::from_secs(10);

impl PatternArguments {
    /// Users or a rate from the environment, where no flag says how much is asked for: any that does,
    /// of whichever kind, goes before it. And how users pause, where no flag says it.
    pub fn ask_environment(&mut self) -> anyhow::Result<()> {
        let users = self.users.or(self.concurrency).is_some();
        let rate = self.rate.or(self.r).is_some();
        if !users && !rate && self.shape.planning().is_none() {
            self.users = environment::users()?;
            self.rate = environment::rate()?;
        }
        let rate = self.rate.or(self.r.filter(|_| self.users.or(self.concurrency).is_none()));
        if rate.is_none() && self.shape.planning().or(self.shape.pausing()).is_none() {
            self.shape.think = environment::think(shape::think)?;
        }
        Ok(())
    }

    /// Whether anything says when requests are due, or until when.
    pub fn is_given(&self) -> bool {
        let counts = [self.users, self.concurrency, self.requests];
        let rates = [self.ramp, self.rate, self.r, self.ramp_to];
        let counted = counts.iter().any(Option::is_some) || rates.iter().any(Option::is_some);
        let timed = self.duration.or(self.d).is_some() || self.t.is_some();
        let shaped = self.shape.pausing().or(self.shape.planning()).is_some();
        let spaced = self.poisson || self.stratified;
        counted || timed || shaped || spaced || self.shape.max_in_system.is_some()
    }

    pub fn timing(&self) -> anyhow::Result<Timing> {
        let mut threads = None;
        let of_t = match self.t {
            Some(TimeOrNumber::Time(time)) => Some(time),
            Some(TimeOrNumber::Number(number)) if self.d.is_some() => {
                threads = Some(number);
                None
            }
            Some(TimeOrNumber::Number(seconds)) => Some(Duration::from_secs(seconds as u64)),
            None => None,
        };
        let length = match [self.duration, self.d, of_t].into_iter().flatten().collect::<Vec<_>>()[..]
        {
            [] => None,
            [length] => Some(length),
            _ => {
                return Err(misuse(
                    "the duration is given twice: keep one of --duration, -d TIME and -t TIME",
                ));
            }
        };
        match (self.requests, length) {
            (Some(_), Some(_)) => Err(misuse(
                "a number of requests and a duration are two ends: keep one of -n and the duration",
            )),
            (Some(n), None) => {
                let end = End::Requests(n as u64);
                Ok(Timing { end, length: None, threads, phases: self.shape.phases()? })
            }
            (None, length) => {
                let phases = self.shape.phases()?;
                let planned = phases.iter().flatten().filter_map(Phase::length).sum();
                let length = match (length, &phases) {
                    (Some(length), Some(_)) => length.min(planned),
                    (None, Some(_)) => planned,
                    (length, None) => length.unwrap_or(DURATION),
                };
                Ok(Timing { end: End::Duration(length), length: Some(length), threads, phases })
            }
        }
    }

    pub fn workload(&self, timing: &Timing) -> anyhow::Result<Workload> {
        let phases = match self.load()? {
            Load::Users { users, ramp } => {
                return Ok(Workload::Closed { users, ramp, rhythm: self.shape.rhythm() });
            }
            Load::Rate(rate) => {
                let over = timing.length.unwrap_or(DURATION);
                let during = match self.ramp_to {
                    Some(to) => Some(Phase::ramp(rate, to, over)),
                    None => self.stratified.then(|| Phase::constant(rate, Some(over))),
                };
                let after = Phase::constant(self.ramp_to.unwrap_or(rate), None);
                during.into_iter().chain([after]).collect()
            }
            Load::Planned => timing.phases.clone().unwrap_or_default(),
        };
        let limit = self.shape.max_in_system;
        let phases = phases.into_iter().map(|phase| Phase { limit, ..phase });
        Ok(Workload::phases(phases, self.spacing()))
    }

    fn spacing(&self) -> Spacing {
        match (self.poisson, self.stratified) {
            (true, _) => Spacing::Poisson,
            (_, true) => Spacing::Stratified,
            (false, false) => Spacing::Even,
        }
    }

    /// The part of the run that figures leave out.
    pub fn trim(&self) -> Trim {
        // A run of 1000 requests must report all 1000.
        if self.requests.is_some() { Trim::Nothing } else { self.shape.trim() }
    }

    /// In words, for reports.
    pub fn described(&self) -> String {
        let mut words = match self.load() {
            Ok(Load::Rate(rate)) => match self.ramp_to {
                Some(to) => format!("{rate} to {to} requests/s"),
                None => format!("{rate} requests/s"),
            },
            Ok(Load::Planned) => self.shape.described().unwrap_or_default(),
            Ok(Load::Users { users: 1, .. }) | Err(_) => "1 user".to_owned(),
            Ok(Load::Users { users, ramp: None }) => format!("{users} users"),
            Ok(Load::Users { users, ramp: Some(ramp) }) => {
                format!("{users} users ({ramp} started a second)")
            }
        };
        let spacing = match self.spacing() {
            Spacing::Even => None,
            Spacing::Poisson => Some("at random".to_owned()),
            Spacing::Stratified => Some("at random, their number fixed".to_owned()),
        };
        for more in [spacing, self.shape.rhythm_described()] {
            more.into_iter().for_each(|more| words += &format!(" ({more})"));
        }
        words
    }

    fn load(&self) -> anyhow::Result<Load> {
        let users = self.users.or(self.concurrency);
        let (rate, ramp) = match (users, self.r) {
            (_, None) => (self.rate, self.ramp),
            (Some(_), Some(_)) if self.ramp.is_some() => {
                return Err(misuse("the ramp is given twice: keep one of --ramp and -r"));
            }
            (Some(_), r) => (self.rate, r),
            (None, Some(_)) if self.rate.is_some() => {
                return Err(misuse("the rate is given twice: keep one of --rate and -r"));
            }
            (None, r) => (r, self.ramp),
        };
        if let Some(planning) = self.shape.planning() {
            let other = [users.map(|_| "users"), rate.map(|_| "a rate"), ramp.map(|_| "a ramp")];
            let ramp_to = self.ramp_to.map(|_| "--ramp-to");
            if let Some(other) = other.into_iter().flatten().next().or(ramp_to) {
                return Err(misuse(format!("{planning} says what comes when: leave out {other}")));
            }
        }
        if let (None, Some(pausing)) = (users, self.shape.pausing())
            && (rate.is_some() || self.shape.planning().is_some())
        {
            return Err(misuse(format!(
                "{pausing} belongs to --users: arrivals at a rate wait for nobody"
            )));
        }
        match (users, rate) {
            (None, None) if self.shape.planning().is_some() => Ok(Load::Planned),
            (_, None) if self.shape.max_in_system.is_some() => {
                Err(misuse("--max-in-system drops arrivals: give --rate, or fewer --users"))
            }
            (Some(_), Some(_)) => {
                Err(misuse("users and rate are two kinds of load: give one of --users and --rate"))
            }
            (None, Some(_)) if ramp.is_some() => {
                Err(misuse("--ramp starts users: give --users, or --ramp-to to change a rate"))
            }
            (None, Some(_)) if self.ramp_to.is_some() && self.requests.is_some() => Err(misuse(
                "--ramp-to changes a rate over the duration, which -n leaves open: give --duration, or --steps R-R2:TIME beside -n",
            )),
            (_, None) if self.ramp_to.is_some() => Err(misuse(
                "--ramp-to changes a rate: give --rate, or --ramp to start users slowly",
            )),
            (_, None) if self.poisson => Err(misuse("--poisson spaces arrivals: give --rate")),
            (_, None) if self.stratified => {
                Err(misuse("--stratified spaces arrivals: give --rate"))
            }
            (None, None) if ramp.is_some() => {
                Err(misuse("--ramp starts users: say how many with --users"))
            }
            (None, Some(rate)) => Ok(Load::Rate(rate)),
            (users, None) => {
                let users = users.unwrap_or(1);
                match self.requests.filter(|n| *n < users) {
                    // ab and hey refuse this, too: some users would never send a request.
                    Some(n) => Err(misuse(format!(
                        "-n {n} is too few for {users} users: give -n {users} or more, or at most {n} users"
                    ))),
                    None => Ok(Load::Users { users, ramp }),
                }
            }
        }
    }
}

/// wrk's: a time, or seconds.
fn d(text: &str) -> Result<Duration, String> {
    quantity::positive_seconds(text).map_err(|why| match is_meant_as_number(text) {
        true => why,
        false => "-d is how long, as in -d 30s: a body is given with --body".to_owned(),
    })
}

fn t(text: &str) -> Result<TimeOrNumber, String> {
    match quantity::count(text) {
        // Artillery's.
        Err(_) if text.contains("://") => Err("-t URL is --target URL here".to_owned()),
        Ok(number) => quantity::positive_seconds(text).map(|_| TimeOrNumber::Number(number)),
        Err(_) => quantity::positive_seconds(text).map(TimeOrNumber::Time).map_err(|why| {
            match is_meant_as_number(text) {
                true => why,
                false => format!("`{text}` is neither a time nor a number: write -t 20s for how long, or -t 4 -d 20s for threads"),
            }
        }),
    }
}

fn is_meant_as_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        pattern: PatternArguments,
    }

    fn pattern(line: &str) -> PatternArguments {
        let words = std::iter::once("load").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap_or_else(|e| panic!("{e}")).pattern
    }

    fn seconds(line: &str) -> (Option<u64>, Option<usize>) {
        let timing = pattern(line).timing().unwrap();
        (timing.length.map(|l| l.as_secs()), timing.threads)
    }

    #[test]
    fn durations_and_threads_of_other_tools_are_accepted() {
        assert_eq!(seconds("-t2 -c10 -d30s"), (Some(30), Some(2)), "wrk");
        assert_eq!(seconds("-d 30"), (Some(30), None), "wrk without a unit");
        assert_eq!(seconds("-t 20 -c 5"), (Some(20), None), "ab");
        assert_eq!(seconds("-u 100 -r 10 -t 1h30m"), (Some(5400), None), "Locust");
        assert_eq!(seconds("--run-time 3m"), (Some(180), None), "Locust");
        assert_eq!(seconds("--duration 30"), (Some(30), None), "as -d");
        assert_eq!(seconds(""), (Some(10), None));
        assert_eq!(pattern("-n 5").timing().unwrap().end, End::Requests(5));
    }

    #[test]
    fn steps_define_the_length_of_a_run() {
        assert_eq!(seconds("--steps 100:30s,200-50:90s"), (Some(120), None));
        assert_eq!(seconds("--steps 100:30s,200:90s -d 50"), (Some(50), None));
        let planned = pattern("--steps 100:30s,200:30s --poisson --max-in-system 9");
        let workload = planned.workload(&planned.timing().unwrap()).unwrap();
        let Workload::Open { phases, spacing: Spacing::Poisson } = workload else {
            panic!("{workload:?}");
        };
        assert_eq!(phases.len(), 2);
        assert!(phases.iter().all(|phase| phase.limit == Some(9)));
    }

    #[test]
    fn stratified_arrivals_have_the_number_of_the_whole_run() {
        let of = |line: &str, seconds: f64, seed| {
            let asked = pattern(line);
            let workload = asked.workload(&asked.timing().unwrap()).unwrap();
            workload.arrivals(seed).take_while(|at| at.as_secs_f64() < seconds).count()
        };
        for seed in 1..10 {
            assert_eq!(of("--rate 150 -d 4s --stratified", 4.0, seed), 600);
            assert_eq!(of("--rate 100 --ramp-to 200 -d 4s --stratified", 4.0, seed), 600);
            assert_eq!(of("--steps 100:1s,200:2s --stratified", 1.0, seed), 100);
        }
        let pure: Vec<usize> =
            (1..10).map(|seed| of("--rate 150 -d 4s --poisson", 4.0, seed)).collect();
        assert!(pure.iter().any(|count| count.abs_diff(600) > 10), "{pure:?}");
    }

    #[test]
    fn r_is_spawn_rate_with_users_and_rate_alone() {
        let users = Load::Users { users: 50, ramp: Some(5.0) };
        assert_eq!(pattern("-u 50 -r 5").load().unwrap(), users);
        assert_eq!(pattern("-u 50 --spawn-rate 5").load().unwrap(), users);
        assert_eq!(pattern("-r 400").load().unwrap(), Load::Rate(400.0));
        assert_eq!(pattern("-R 400").load().unwrap(), Load::Rate(400.0));
        assert_eq!(pattern("-c 8").load().unwrap(), Load::Users { users: 8, ramp: None });
    }

    #[test]
    fn reports_describe_the_whole_load() {
        for (line, words) in [
            ("", "1 user"),
            ("-c 5 --think 1s", "5 users (thinking 1.00 s)"),
            ("-u 5 -r 0.5", "5 users (0.5 started a second)"),
            ("-c 5 --think 1s-2s", "5 users (thinking 1.00 s to 2.00 s)"),
            ("-c 5 --pacing 100ms", "5 users (a request every 100 ms each)"),
            ("--rate 5 --ramp-to 50", "5 to 50 requests/s"),
            ("--rate 5 --poisson", "5 requests/s (at random)"),
            ("--rate 5 --stratified", "5 requests/s (at random, their number fixed)"),
            ("--steps 5:1s", "1 step"),
        ] {
            assert_eq!(pattern(line).described(), words);
        }
    }

    #[test]
    fn conflicting_flags_are_refused_with_a_remedy() {
        for (line, remedy) in [
            ("-u 5 --rate 5", "one of --users and --rate"),
            ("-u 5 -r 5 --ramp 5", "one of --ramp and -r"),
            ("-r 5 --rate 5", "one of --rate and -r"),
            ("--rate 5 --think 1s", "--think belongs to --users"),
            ("--steps 5:1s --pacing 1s", "--pacing belongs to --users"),
            ("--steps 5:1s -u 5", "leave out users"),
            ("--steps 5:1s -r 5", "leave out a rate"),
            ("-u 5 --max-in-system 5", "give --rate"),
            ("--rate 5 --ramp 5", "--ramp-to"),
            ("--ramp 5", "with --users"),
            ("--ramp-to 5", "give --rate"),
            ("-u 5 --poisson", "give --rate"),
            ("-u 5 --stratified", "give --rate"),
            ("--rate 5 --ramp-to 9 -n 5", "--steps R-R2:TIME"),
            ("-n 5 -c 10", "give -n 10 or more, or at most 5 users"),
        ] {
            let error = pattern(line).load().unwrap_err().to_string();
            assert!(error.contains(remedy), "{line}: {error}");
        }
        for (line, remedy) in [("-d 5s -t 5s", "keep one of"), ("-n 5 -t 5", "two ends")] {
            let error = pattern(line).timing().unwrap_err().to_string();
            assert!(error.contains(remedy), "{line}: {error}");
        }
        let body = d("{\"a\":1}").unwrap_err();
        assert!(body.contains("--body"), "{body}");
        let year = "`9000000000s` is more than a year: write less";
        assert_eq!(
            (d("9000000000s"), t("9000000000s").map(|_| ())),
            (Err(year.to_owned()), Err(year.to_owned()))
        );
        assert!(t("9000000000").unwrap_err().contains("more than a year"));
        assert_eq!(d("0"), Err("`0` must be greater than 0".to_owned()));
        assert!(t("fast").unwrap_err().contains("-t 20s"));
        assert!(t("http://a/").unwrap_err().contains("--target URL"));
    }
}
