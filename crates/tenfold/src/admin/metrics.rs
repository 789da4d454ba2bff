//! What Prometheus scrapes, in the OpenMetrics format. Names follow its conventions: base units,
//! `_total` for counters.

use std::fmt;

use balancer::{AppSnapshot, BackendHealth, BackendSnapshot, Snapshot};
use hdrhistogram::Histogram;
use observe::TargetUsage;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::Controlled;

/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// All metrics as text.
pub fn render(controlled: &Controlled) -> String {
    let mut registry = Registry::with_prefix("tenfold");
    let snapshot = controlled.handle().snapshot();
    let instances = match controlled {
        Controlled::Fleets(rig) => {
            let usage = rig.recorder.latest().map(|r| r.usage);
            usage.map(|u| u.targets.clone().into_iter().collect()).unwrap_or_default()
        }
        Controlled::Balancer(_) => Vec::new(),
    };
    registry.register_collector(Box::new(Scrape { snapshot, instances }));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

struct Scrape {
    snapshot: Snapshot,
    instances: Vec<(String, TargetUsage)>,
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
        self.queue(&mut encoder)?;
        self.usage(&mut encoder)?;
        self.times(&mut encoder)
    }
}

impl Scrape {
    fn backends(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Count = fn(&BackendSnapshot) -> u64;
        let counters: [(&str, &str, Count); 7] = [
            ("backend_requests", "Requests sent to a backend", |b| b.counts.requests),
            ("backend_connect_errors", "Connections that could not be established", |b| {
                b.counts.connect_errors
            }),
            ("backend_timeouts", "Answers that did not come in time", |b| b.counts.timeouts),
            ("backend_retries", "Requests sent again after a failure", |b| b.counts.retries),
            ("backend_connects", "Connections established", |b| b.counts.connects),
            ("backend_checks", "Checks of a backend's health", |b| b.counts.checks),
            ("backend_failed_checks", "Checks that a backend failed", |b| b.counts.failed_checks),
        ];
        for (name, help, count) in counters {
            let values = self.each_backend(count);
            counter(encoder, name, help, &values)?;
        }
        let classes: Vec<(Labels, u64)> =
            self.backends_by_app().flat_map(|(app, b)| by_class(app, b)).collect();
        counter(encoder, "backend_responses", "Answers by class", &classes)?;
        let in_flight = self.each_backend(|b| b.in_flight as f64);
        gauge(encoder, "backend_in_flight_requests", "Requests in flight", None, &in_flight)?;
        let slots = self.each_backend(|b| b.slots as f64);
        gauge(encoder, "backend_slots", "Requests that may be in flight", None, &slots)?;
        let upgraded = self.each_backend(|b| b.upgraded as f64);
        let help = "Upgraded connections that take no slot";
        gauge(encoder, "backend_upgraded_connections", help, None, &upgraded)?;
        let up = self.each_backend(|b| f64::from(u8::from(b.health == BackendHealth::Up)));
        gauge(encoder, "backend_up", "Whether a backend is fit to serve", None, &up)
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
        counter(encoder, "queue_shed_requests", "Requests that the queue turned away", &shed)?;
        let retries = |app: &AppSnapshot| {
            let outcomes = [("sent", app.retries.sent), ("refused", app.retries.refused)];
            outcomes.map(|(outcome, n)| (vec![label(app), ("outcome", outcome.to_owned())], n))
        };
        let retries: Vec<_> = apps.iter().flat_map(retries).collect();
        let help = "Requests that were to go to another backend";
        counter(encoder, "retried_requests", help, &retries)?;
        let open = self.snapshot.clients.open as f64;
        single(encoder, "client_connections", "Open client connections", open)
    }

    fn usage(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |value: &dyn Fn(&TargetUsage) -> Option<f64>| -> Vec<(Labels, f64)> {
            let of = |(name, u): &(String, TargetUsage)| {
                Some((vec![("instance", name.clone())], value(u)?))
            };
            self.instances.iter().filter_map(of).collect()
        };
        let cores = each(&|u| Some(u.cpu_cores));
        gauge(encoder, "instance_cpu_cores", "CPU used over the last second", None, &cores)?;
        let waiting = each(&|u| u.run_queue_wait);
        gauge(
            encoder,
            "instance_run_queue_wait_cores",
            "Waiting for a core over the last second",
            None,
            &waiting,
        )?;
        let memory = each(&|u| u.rss_bytes.map(|b| b as f64));
        gauge(encoder, "instance_resident_memory", "Resident memory", Some(&Unit::Bytes), &memory)
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
            let kind = prometheus_client::metrics::MetricType::Histogram;
            let mut metric = encoder.encode_descriptor(name, help, Some(&unit), kind)?;
            for app in &self.snapshot.apps {
                let histogram = times(app);
                let sum = histogram.mean() * histogram.len() as f64 / 1e6;
                let labels = [("app", app.name.as_str())];
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_histogram::<NoLabelSet>(
                    sum,
                    histogram.len(),
                    &buckets(histogram),
                    None,
                )?;
            }
        }
        Ok(())
    }
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

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: &[(Labels, u64)],
) -> fmt::Result {
    let kind = ConstCounter::new(0_u64).metric_type();
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
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
