//! What Prometheus scrapes, in the OpenMetrics format. Names follow its conventions: base units,
//! `_total` for counters.

mod instances;

use std::collections::BTreeMap;
use std::fmt;
use std::time::UNIX_EPOCH;

use balancer::{
    AppSnapshot, BackendHealth, BackendPhase, BackendSnapshot, CertificateSnapshot, Snapshot,
};
use hdrhistogram::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::state::Controlled;
use instances::Instances;

/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 17] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 30.0,
];

/// All metrics as text.
pub fn render(controlled: &Controlled) -> String {
    let mut registry = Registry::with_prefix("tenfold");
    let snapshot = controlled.handle().snapshot();
    let instances = match controlled {
        Controlled::Fleets(deployment) => Instances::of(deployment),
        Controlled::Balancer { .. } => Instances::default(),
    };
    registry.register_collector(Box::new(Scrape { snapshot, instances }));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

struct Scrape {
    snapshot: Snapshot,
    instances: Instances,
}

type Labels = Vec<(&'static str, String)>;

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrape").finish_non_exhaustive()
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.backends(&mut encoder)?;
        self.backend_standings(&mut encoder)?;
        self.queue(&mut encoder)?;
        self.clients(&mut encoder)?;
        self.instances.encode(&mut encoder)?;
        self.times(&mut encoder)
    }
}

impl Scrape {
    fn backends(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Count = fn(&BackendSnapshot) -> u64;
        let counters: [(&str, &str, Option<Unit>, Count); 7] = [
            ("backend_requests", "Requests sent to a backend", None, |b| b.counts.requests),
            ("backend_retries", "Requests sent again after a failure", None, |b| b.counts.retries),
            ("backend_connects", "Connections established", None, |b| b.counts.connects),
            ("backend_checks", "Checks of a backend's health", None, |b| b.counts.checks),
            ("backend_failed_checks", "Checks that a backend failed", None, |b| {
                b.counts.failed_checks
            }),
            ("backend_sent", "Sent to a backend", Some(Unit::Bytes), |b| b.counts.bytes_in),
            ("backend_received", "Of answers, sent to clients", Some(Unit::Bytes), |b| {
                b.counts.bytes_out
            }),
        ];
        for (name, help, unit, count) in counters {
            let values = self.each_backend(count);
            counter(encoder, name, help, unit.as_ref(), &values)?;
        }
        let errors: Vec<_> = self.backends_by_app().flat_map(|(app, b)| by_kind(app, b)).collect();
        let help = "Requests that failed at a backend, or whose client left there";
        counter(encoder, "backend_errors", help, None, &errors)?;
        let classes: Vec<(Labels, u64)> =
            self.backends_by_app().flat_map(|(app, b)| by_class(app, b)).collect();
        counter(encoder, "backend_responses", "Answers by class", None, &classes)
    }

    fn backend_standings(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let in_flight = self.each_backend(|b| b.in_flight as f64);
        gauge(encoder, "backend_in_flight_requests", "Requests in flight", None, &in_flight)?;
        let slots = self.each_backend(|b| b.slots as f64);
        gauge(encoder, "backend_slots", "Requests that may be in flight", None, &slots)?;
        let upgraded = self.each_backend(|b| b.upgraded as f64);
        let help = "Upgraded connections that take no slot";
        gauge(encoder, "backend_upgraded_connections", help, None, &upgraded)?;
        let idle = self.each_backend(|b| b.idle_connections as f64);
        gauge(encoder, "backend_idle_connections", "Kept for later requests", None, &idle)?;
        let draining = self.each_backend(|b| is(b.state == BackendPhase::Draining));
        let help = "Whether a backend only finishes what it has";
        gauge(encoder, "backend_draining", help, None, &draining)?;
        let up = self.each_backend(|b| is(b.health == BackendHealth::Up));
        let help =
            "Whether a backend is fit to serve, which checks must have confirmed if it has any";
        gauge(encoder, "backend_up", help, None, &up)?;
        let unconfirmed = self.each_backend(|b| is(b.health == BackendHealth::Unconfirmed));
        let help = "Whether a backend gets requests though no check of it has succeeded yet";
        gauge(encoder, "backend_unconfirmed", help, None, &unconfirmed)
    }

    fn each_backend<T>(&self, value: impl Fn(&BackendSnapshot) -> T) -> Vec<(Labels, T)> {
        self.backends_by_app().map(|(app, b)| (backend_label(app, b), value(b))).collect()
    }

    fn backends_by_app(&self) -> impl Iterator<Item = (&str, &BackendSnapshot)> {
        let apps = self.snapshot.apps.iter();
        apps.flat_map(|app| app.backends.iter().map(|backend| (app.name.as_str(), backend)))
    }

    fn queue(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let apps = &self.snapshot.apps;
        let label = |app: &AppSnapshot| ("app", app.name.clone());
        let depths: Vec<_> =
            apps.iter().map(|app| (vec![label(app)], app.queue.depth as f64)).collect();
        gauge(encoder, "queue_requests", "Requests that wait for a free slot", None, &depths)?;
        let deepest: Vec<_> =
            apps.iter().map(|app| (vec![label(app)], app.queue.max_depth as f64)).collect();
        let help = "The most requests that ever waited at once";
        gauge(encoder, "queue_max_requests", help, None, &deepest)?;
        let by_reason = |app: &AppSnapshot| {
            let shed = app.queue.shed;
            let reasons = [
                ("full", shed.full),
                ("timeout", shed.timeout),
                ("too_late", shed.too_late),
                ("all_down", shed.all_down),
                ("client_gone", shed.client_gone),
            ];
            reasons.map(|(reason, n)| (vec![label(app), ("reason", reason.to_owned())], n))
        };
        let shed: Vec<_> = apps.iter().flat_map(by_reason).collect();
        counter(
            encoder,
            "queue_shed_requests",
            "Requests that the queue turned away",
            None,
            &shed,
        )?;
        let retries = |app: &AppSnapshot| {
            let outcomes = [("sent", app.retries.sent), ("refused", app.retries.refused)];
            outcomes.map(|(outcome, n)| (vec![label(app), ("outcome", outcome.to_owned())], n))
        };
        let retries: Vec<_> = apps.iter().flat_map(retries).collect();
        let help = "Requests that were to go to another backend";
        counter(encoder, "retried_requests", help, None, &retries)
    }

    fn clients(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let clients = &self.snapshot.clients;
        single(encoder, "client_connections", "Open client connections", clients.open as f64)?;
        let in_file = clients.spool_file_bytes as f64;
        single(encoder, "spool_file_bytes", "Bytes in the temporary file", in_file)?;
        let entrance = clients.entrance;
        for (name, help, count) in [
            ("client_accepts", "Client connections accepted", clients.accepted),
            (
                "client_connections_refused",
                "Client connections closed because their client had too many",
                entrance.refused,
            ),
            (
                "proxy_protocol_failures",
                "Client connections without the PROXY protocol's header that they had to have",
                entrance.proxy_failures,
            ),
            (
                "client_requests_refused",
                "Requests refused because their client had too many at once",
                clients.requests_refused,
            ),
            (
                "memory_refused_requests",
                "Requests refused because clients held as much memory as they may",
                clients.memory_refused,
            ),
            (
                "spooled_answers",
                "Answers that were taken from an instance before their client took them",
                clients.spooled_answers,
            ),
            ("spooled_bytes", "Bytes of these answers", clients.spooled_bytes),
            (
                "spool_file_answers",
                "Answers of these that were partly in the temporary file",
                clients.spool_file_answers,
            ),
            (
                "spool_failures",
                "Reads and writes of the temporary file that failed",
                clients.spool_failures,
            ),
            (
                "http2_floods",
                "HTTP/2 connections closed because their client asked for too much work without requests",
                clients.http2_floods,
            ),
            (
                "underscored_request_fields_dropped",
                "Fields of requests that were dropped for the underscore in their names",
                clients.underscored_fields,
            ),
            (
                "access_log_dropped_lines",
                "Lines of the access log that were not written",
                self.snapshot.log_lines_dropped,
            ),
        ] {
            counter(encoder, name, help, None, &[(Vec::new(), count)])?;
        }
        let labelled = |name, value: &str, n| (vec![(name, value.to_owned())], n);
        let handshakes = [
            labelled("result", "full", entrance.tls_full),
            labelled("result", "resumed", entrance.tls_resumed),
            labelled("result", "failed", entrance.tls_failures),
        ];
        counter(encoder, "tls_handshakes", "TLS handshakes with clients", None, &handshakes)?;
        let own = [
            labelled("class", "3xx", clients.own_3xx),
            labelled("class", "4xx", clients.own_4xx),
            labelled("class", "5xx", clients.own_5xx),
        ];
        counter(encoder, "own_responses", "Answers of the balancer itself", None, &own)?;
        // Several listeners may have one for the same hosts: the first to end counts.
        let mut ends: BTreeMap<Labels, f64> = BTreeMap::new();
        for (labels, end) in self.snapshot.certificates.iter().map(expiry) {
            ends.entry(labels).and_modify(|known| *known = known.min(end)).or_insert(end);
        }
        let expiry: Vec<_> = ends.into_iter().collect();
        let help = "When a certificate ends, since 1970";
        gauge(encoder, "certificate_expiry_timestamp", help, Some(&Unit::Seconds), &expiry)
    }

    fn times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Times = fn(&AppSnapshot) -> &Histogram<u64>;
        let all: [(&str, &str, Times); 2] = [
            ("queue_time", "Waiting for a free slot", |app| &app.queue_time),
            ("response_time", "From the request's arrival to the end of the answer", |app| {
                &app.response_time
            }),
        ];
        for (name, help, times) in all {
            let unit = Unit::Seconds;
            let kind = MetricType::Histogram;
            let mut metric = encoder.encode_descriptor(name, help, Some(&unit), kind)?;
            for app in &self.snapshot.apps {
                let labels = vec![("app", app.name.clone())];
                encode_times(&mut metric, &labels, times(app))?;
            }
        }
        let kind = MetricType::Histogram;
        let help = "From a connection to a backend to the end of its answer";
        let unit = Unit::Seconds;
        let mut metric =
            encoder.encode_descriptor("backend_service_time", help, Some(&unit), kind)?;
        for (app, backend) in self.backends_by_app() {
            encode_times(&mut metric, &backend_label(app, backend), &backend.service_time)?;
        }
        Ok(())
    }
}

fn encode_times(
    metric: &mut MetricEncoder<'_>,
    labels: &Labels,
    micros: &Histogram<u64>,
) -> fmt::Result {
    let sum = micros.mean() * micros.len() as f64 / 1e6;
    let mut metric = metric.encode_family(labels)?;
    metric.encode_histogram::<NoLabelSet>(sum, micros.len(), &buckets(micros), None)
}

fn is(fact: bool) -> f64 {
    f64::from(u8::from(fact))
}

/// By the first host; certificates are few.
fn expiry(certificate: &CertificateSnapshot) -> (Labels, f64) {
    let since = certificate.expires.duration_since(UNIX_EPOCH).unwrap_or_default();
    (vec![("hosts", certificate.hosts.join(","))], since.as_secs() as f64)
}

/// Upper bound in seconds and the count between it and the one before.
fn buckets(micros: &Histogram<u64>) -> Vec<(f64, u64)> {
    let mut below = 0;
    let mut own = |upto: u64| {
        let count = upto - below;
        below = upto;
        count
    };
    let mut buckets: Vec<(f64, u64)> = BUCKETS
        .iter()
        .map(|bound| (*bound, own(micros.count_between(0, (bound * 1e6) as u64))))
        .collect();
    buckets.push((f64::INFINITY, own(micros.len())));
    buckets
}

fn backend_label(app: &str, b: &BackendSnapshot) -> Labels {
    // During a reload two backends have one name.
    vec![("app", app.to_owned()), ("backend", b.name.clone()), ("address", b.address.to_string())]
}

fn by_class(app: &str, b: &BackendSnapshot) -> Vec<(Labels, u64)> {
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    let label = |class: &str| {
        let mut labels = backend_label(app, b);
        labels.push(("class", class.to_owned()));
        labels
    };
    classes.iter().zip(b.counts.responses).map(|(class, n)| (label(class), n)).collect()
}

fn by_kind(app: &str, b: &BackendSnapshot) -> [(Labels, u64); 6] {
    let counts = &b.counts;
    let kinds = [
        ("connect", counts.connect_errors),
        ("timeout", counts.timeouts),
        ("closed", counts.closed),
        ("malformed", counts.malformed),
        ("truncated", counts.truncated),
        ("client_gone", counts.client_aborts),
    ];
    kinds.map(|(kind, n)| {
        let mut labels = backend_label(app, b);
        labels.push(("kind", kind.to_owned()));
        (labels, n)
    })
}

fn counter<N: Copy + EncodeCounterValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: &[(Labels, N)],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (labels, value) in values {
        ConstCounter::new(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: &[(Labels, f64)],
) -> fmt::Result {
    let kind = ConstGauge::new(0.0_f64).metric_type();
    let mut metric = encoder.encode_descriptor(name, help, unit, kind)?;
    for (labels, value) in values {
        ConstGauge::new(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

/// A gauge without labels.
fn single(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let value = ConstGauge::new(value);
    value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use balancer::{AppId, Backend, Balancer, Config};

    use super::*;

    /// What a strict reader of OpenMetrics asks for, and the conventions for names.
    fn check(text: &str) {
        let (mut family, mut kind, mut seen) = (String::new(), String::new(), HashSet::new());
        let body = text.strip_suffix("# EOF\n").expect("it ends with its end");
        let mut helped = HashSet::new();
        for line in body.lines() {
            let words: Vec<_> = line.splitn(4, ' ').collect();
            match words[..] {
                ["#", "HELP", name, help] => {
                    assert!(helped.insert(name.to_owned()) && !help.is_empty(), "{line}");
                }
                ["#", "TYPE", name, of] => (family, kind) = (name.to_owned(), of.to_owned()),
                ["#", "UNIT", name, unit] => {
                    assert!(name.ends_with(unit) && name == family, "{line}");
                }
                _ => {
                    let (series, value) = line.rsplit_once(' ').unwrap();
                    let name = series.split('{').next().unwrap();
                    let suffix = name.strip_prefix(&family[..]).unwrap_or_else(|| panic!("{line}"));
                    let suffixes: &[&str] = match &kind[..] {
                        "counter" => &["_total"],
                        "gauge" => &[""],
                        "histogram" => &["_bucket", "_sum", "_count"],
                        _ => panic!("{kind} of {line}"),
                    };
                    assert!(suffixes.contains(&suffix), "{line}");
                    assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
                    assert!(seen.insert(series.to_owned()), "twice: {line}");
                    assert!(helped.contains(&family), "{line}");
                    let odd = ["_ms", "_millis", "_us", "_kb", "_total_total"];
                    assert!(!odd.iter().any(|odd| family.ends_with(odd)), "{line}");
                }
            }
        }
        assert!(seen.len() > 60, "{text}");
    }

    #[test]
    fn metrics_are_valid_openmetrics() {
        let balancer = Balancer::start(Config { threads: 1, ..Config::default() }).unwrap();
        let handle = balancer.handle();
        for port in [1, 2] {
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            handle.add(AppId::FIRST, Backend::new("odd \"name\"\n", address, 1));
        }
        let read_again = Arc::new(|| anyhow::bail!("there is no file"));
        let text = render(&Controlled::Balancer { handle, read_again });
        check(&text);
        let labels = r#"{app="app",backend="odd \"name\"\n",address="127.0.0.1:1",kind="connect"}"#;
        assert!(text.contains(&format!("tenfold_backend_errors_total{labels} 0\n")), "{text}");
    }
}
