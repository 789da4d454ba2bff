//! What can be wrong with a run's numbers, in one sentence each.

use std::fmt;

use serde::Serialize;

use crate::error::kind::{ErrorKind, Failed};
use crate::verdict::steady_state::Series;

/// Something that is wrong with a run's numbers. Its text is one sentence with the remedy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// A generator thread was busy for most of its time.
    GeneratorBusy {
        /// CPU seconds a second of the busiest thread.
        share: f64,
    },
    /// A generator thread was busy for most of a run that is over too soon to blame it.
    TooShort {
        /// How long it was measured.
        seconds: f64,
        /// CPU seconds a second of the busiest thread.
        share: f64,
    },
    /// A generator thread was runnable but had no CPU for much of its time.
    GeneratorWaited {
        /// Seconds without a CPU a second, of the thread that waited most.
        share: f64,
    },
    /// Requests went out later than intended because the generator was late.
    ScheduleLag {
        /// 99th percentile of the lag, in seconds.
        p99: f64,
        /// Median response time, in seconds.
        median: f64,
    },
    /// Fewer requests were sent than were due.
    Underachieved {
        /// Sent over due.
        ratio: f64,
    },
    /// Requests waited inside the generator because every allowed connection was busy.
    ConnectionsExhausted {
        /// The limit on connections.
        limit: usize,
        /// Requests that waited.
        waited: u64,
    },
    /// This machine had no files or memory left for connections.
    ResourcesExhausted {
        /// Requests that failed because of it.
        requests: u64,
    },
    /// Every local port was in use, or had been within the last minute.
    PortsExhausted {
        /// Requests that failed because of it.
        requests: u64,
    },
    /// Too few successes for even a median.
    FewSamples {
        /// Successful requests.
        samples: u64,
    },
    /// Not one request succeeded.
    NoSuccess {
        /// Requests that ended.
        requests: u64,
        /// The most frequent failure.
        most: Option<Failed>,
        /// Why, and what to do, if more is known than the kind.
        why: Option<String>,
    },
    /// Sessions of a script failed before their last step. So the later steps were requested less often than the
    /// script says.
    SessionsFailed {
        /// Failed over ended.
        ratio: f64,
        /// The most frequent error.
        most: String,
    },
    /// Many requests failed. The percentiles are of successes, and flatter the target.
    ManyErrors {
        /// Failed over ended.
        ratio: f64,
        /// The most frequent failure.
        most: Failed,
        /// Why, and what to do, where more is known than the kind.
        why: Option<String>,
    },
    /// Paced users began late because the answers before took longer than their pace.
    PaceNotHeld {
        /// Late over due.
        ratio: f64,
    },
    /// Requests went out again, because the server had closed their connections before they came.
    ManyRepeated {
        /// How often that was, over requests that ended.
        ratio: f64,
    },
    /// Arrivals were dropped because the limit of their phase was reached.
    ArrivalsDropped {
        /// Turned away over all.
        ratio: f64,
    },
    /// Requests were under way at the end, for far longer than any answer took.
    Unanswered {
        /// How many.
        requests: u64,
        /// Seconds since the first of them was due.
        longest: f64,
    },
    /// The ramp of users took most of the run, or did not end in it.
    UsersComing {
        /// Users who came.
        came: u64,
        /// Users who should have come.
        wanted: u64,
        /// The share of the time until all had come.
        share: f64,
    },
    /// The load was still changing in the second half of the run.
    NotSteady {
        /// What was changing: requests per second, or seconds.
        series: Series,
        /// Median before the change ended.
        early: f64,
        /// Median after it.
        late: f64,
    },
    /// The generator's own counts violate Little's law: requests were lost or counted twice.
    BooksDisagree {
        /// Requests in the system on average, as they were counted.
        counted: f64,
        /// Their number by Little's law, from throughput, response times and pauses.
        derived: f64,
    },
    /// A generator thread stopped with an error of its own.
    EngineFailed {
        /// The error.
        message: String,
    },
}

impl Reason {
    /// What is wrong.
    pub fn evidence(&self) -> String {
        match self {
            Reason::GeneratorBusy { share } => format!(
                "a generator thread used {:.0} % of its CPU, so its own speed limits the result",
                share * 100.0
            ),
            Reason::TooShort { seconds, share } => format!(
                "the run of {:.1} ms, in which a generator thread used {:.0} % of its CPU, is too short \
                 to tell whether the generator limits the result",
                seconds * 1e3,
                share * 100.0
            ),
            Reason::GeneratorWaited { share } => format!(
                "a generator thread waited for a CPU for {:.0} % of the time, which adds to the \
                 measured times",
                share * 100.0
            ),
            Reason::ScheduleLag { p99, median } => format!(
                "requests went out late by up to {:.1} ms (p99) where the median answer takes \
                 {:.1} ms",
                p99 * 1e3,
                median * 1e3
            ),
            Reason::Underachieved { ratio } => {
                format!("only {:.1} % of the requests that were due were sent", ratio * 100.0)
            }
            Reason::ConnectionsExhausted { limit, waited } => format!(
                "{waited} requests waited in the generator because all {limit} connections were \
                 busy"
            ),
            Reason::ResourcesExhausted { requests } => format!(
                "{requests} requests failed because this machine had no open files or memory left \
                 for connections"
            ),
            Reason::PortsExhausted { requests } => {
                format!("{requests} requests failed because every local port was in use")
            }
            Reason::FewSamples { samples } => format!(
                "{samples} successful {} too few to tell even a median",
                if *samples == 1 { "request is" } else { "requests are" }
            ),
            Reason::NoSuccess { requests: 0, .. } => {
                "no request ended while it was measured".to_owned()
            }
            Reason::NoSuccess { requests: 1, most: Some(most), .. } => {
                format!("the one request failed with {most}")
            }
            Reason::NoSuccess { requests, most: Some(most), .. } => {
                format!("none of the {requests} requests succeeded: most failed with {most}")
            }
            Reason::NoSuccess { requests, most: None, .. } => {
                format!("none of the {requests} requests succeeded")
            }
            Reason::SessionsFailed { ratio, most } => format!(
                "{:.1} % of the sessions failed, most with '{most}', and later steps were done less \
                 often than the script says",
                ratio * 100.0
            ),
            Reason::ManyErrors { ratio, most, .. } => format!(
                "{:.1} % of the requests failed, most with {most}, and percentiles describe only \
                 the others",
                ratio * 100.0
            ),
            Reason::PaceNotHeld { ratio } => format!(
                "{:.1} % of the requests began late because the answer before took longer than \
                 the users' pace",
                ratio * 100.0
            ),
            Reason::ManyRepeated { ratio } => format!(
                "{:.1} % of the requests were sent twice, because the target closed kept connections \
                 without reading them",
                ratio * 100.0
            ),
            Reason::ArrivalsDropped { ratio } => format!(
                "{:.1} % of the arrivals were dropped because the limit of requests in the system was reached",
                ratio * 100.0
            ),
            Reason::Unanswered { requests, longest } => format!(
                "{requests} {} unanswered at the end, after up to {longest:.1} s, which no \
                 percentile includes",
                if *requests == 1 { "request was still" } else { "requests were still" }
            ),
            Reason::UsersComing { came, wanted, share } => {
                let users = match came < wanted {
                    true => format!("only {came} of {wanted} users had come when the load ended"),
                    false => format!("users came for {:.0} % of the time", share * 100.0),
                };
                users + ", so the results mix different numbers of users"
            }
            Reason::NotSteady { early, late: 0.0, .. } => format!(
                "the target stopped answering: the throughput went from {early:.1} to 0 requests/s"
            ),
            Reason::NotSteady { series, early, late } => {
                let change = series.change(*early, *late);
                format!("{change} after half of the run, so its figures mix different states")
            }
            Reason::BooksDisagree { counted, derived } => format!(
                "{counted:.2} requests were in the system on average, but by Little's law \
                 throughput and times give {derived:.2}: the generator lost or invented some"
            ),
            Reason::EngineFailed { message } => format!("a generator thread stopped: {message}"),
        }
    }

    /// What to do, for someone who chose the load, its threads, connections and addresses.
    fn remedy(&self) -> &str {
        match self {
            Reason::GeneratorBusy { .. } => {
                "use more threads, fewer users, or a machine of its own for the generator"
            }
            Reason::TooShort { .. } | Reason::FewSamples { .. } => "measure longer",
            Reason::GeneratorWaited { .. } => "leave a core to the generator",
            Reason::ScheduleLag { .. } => {
                "lower the rate, use more threads, or leave a core to the generator"
            }
            Reason::Underachieved { .. } => "lower the rate, or allow more connections",
            Reason::ConnectionsExhausted { .. } => {
                "allow more connections (--max-connections, ulimit -n), or lower the rate if the target is \
                 overloaded"
            }
            Reason::ResourcesExhausted { .. } => {
                "raise ulimit -n, reuse connections, or use fewer of them"
            }
            Reason::PortsExhausted { .. } => {
                "reuse connections, give more source addresses (--local-address), or widen \
                 net.ipv4.ip_local_port_range"
            }
            Reason::NoSuccess { requests: 0, .. } => "measure longer, or raise the timeout",
            Reason::NoSuccess { most, why, .. } => {
                why.as_deref().unwrap_or_else(|| where_to_look(most.map(|most| most.kind)))
            }
            Reason::SessionsFailed { .. } => {
                "run the script with one session and look at the answers"
            }
            Reason::ManyErrors { why, .. } => {
                why.as_deref().unwrap_or("find the cause in the target's log, or lower the load")
            }
            Reason::PaceNotHeld { .. } => "give more users or a longer pace",
            Reason::ManyRepeated { .. } => {
                "look for restarts in the target's log, let it keep idle connections for longer, or open one a request \
                 (--no-keep-alive)"
            }
            Reason::ArrivalsDropped { .. } => {
                "allow more of them (--max-in-system, a phase's maxVusers), or lower the rate"
            }
            Reason::Unanswered { .. } => {
                "look at the target's log, or measure for longer than the timeout"
            }
            Reason::UsersComing { .. } => "run it longer, or start more users a second (--ramp)",
            Reason::NotSteady { late: 0.0, .. } => "look at the target's log",
            Reason::NotSteady { .. } => {
                "measure longer, or find what changes: a cache, a collector, a queue that grows"
            }
            Reason::BooksDisagree { .. } => "measure again, and report it if it stays",
            Reason::EngineFailed { .. } => "run it again",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.evidence(), self.remedy())
    }
}

/// What to check first if every request fails in this way.
fn where_to_look(most: Option<ErrorKind>) -> &'static str {
    match most {
        Some(ErrorKind::Connect | ErrorKind::ConnectTimeout) => {
            "check that the target runs, and its address and port"
        }
        Some(ErrorKind::NoHttp2) => "the target speaks no HTTP/2: leave --http2 out",
        Some(ErrorKind::Malformed) => {
            "check that the target speaks HTTP there, and the version of it that was asked for"
        }
        Some(ErrorKind::ClientError) => "check path, method and headers",
        _ => "check address, path and the target's log",
    }
}

impl Series {
    fn change(self, early: f64, late: f64) -> String {
        match self {
            Series::Users | Series::Throughput => {
                format!("the throughput still went from {early:.1} to {late:.1} requests/s")
            }
            Series::ResponseTime => format!(
                "the response time still went from {:.2} to {:.2} ms",
                early * 1e3,
                late * 1e3
            ),
        }
    }
}
