//! The fields of ab (Apache's benchmark), with its labels, for scripts that read them.
//!
//! What is not known stays out or empty, as ab leaves it where it does not know. Percentiles are
//! those of the sample, as ab's are.

use std::fmt::Write;

use hdrhistogram::Histogram;
use http::Uri;

use crate::document::load::{Document, KeepAlive};

/// Connections that could not be made, in ab's words; answers that did not come whole.
const CONNECT: [&str; 6] = ["connect", "connect_timeout", "resources", "ports", "tls", "no_http2"];
const RECEIVE: [&str; 6] =
    ["timeout", "reset", "closed_early", "go_away", "stream_reset", "refused_stream"];
const EXCEPTIONS: [&str; 2] = ["malformed", "too_large"];
const PERCENTS: [f64; 8] = [50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0];

/// The report in ab's format, without its banner.
pub fn ab(document: &Document) -> String {
    let mut out = server(document);
    counts(&mut out, document);
    rates(&mut out, document);
    if !document.histograms.response.histogram().is_empty() {
        times(&mut out, document);
    }
    out
}

fn server(document: &Document) -> String {
    // The name of a script, as shop.yml, looks like a host alone.
    let uri = document.target.parse().ok().filter(|uri: &Uri| uri.scheme().is_some());
    let usual = |uri: &Uri| if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let port = uri.as_ref().map(|uri| uri.port_u16().unwrap_or(usual(uri)).to_string());
    let path = uri.as_ref().map_or(document.target.as_str(), |uri| {
        uri.path_and_query().map_or("/", |path| path.as_str())
    });
    let length = match (document.body_bytes, document.answers()) {
        (bytes, answers) if answers > 0 && bytes % answers == 0 => {
            format!("{} bytes", bytes / answers)
        }
        _ => "Variable".to_owned(),
    };
    format!(
        "Server Software:        \n\
         Server Hostname:        {}\n\
         Server Port:            {}\n\n\
         Document Path:          {path}\n\
         Document Length:        {length}\n\n",
        uri.as_ref().and_then(Uri::host).unwrap_or_default(),
        port.unwrap_or_default(),
    )
}

fn counts(out: &mut String, document: &Document) {
    let [connect, receive, exceptions] =
        [&CONNECT[..], &RECEIVE, &EXCEPTIONS].map(|kinds| document.errors_of(kinds));
    let failed = connect + receive + exceptions;
    let strange: u64 =
        document.status.iter().filter(|(s, _)| !(200..300).contains(*s)).map(|(_, n)| n).sum();
    let _ = write!(
        out,
        "Concurrency Level:      {}\n\
         Time taken for tests:   {:.3} seconds\n\
         Complete requests:      {}\n\
         Failed requests:        {failed}\n",
        document.concurrency, document.duration_s, document.requests
    );
    if failed > 0 {
        let _ = writeln!(
            out,
            "   (Connect: {connect}, Receive: {receive}, Length: 0, Exceptions: {exceptions})"
        );
    }
    if strange > 0 {
        let _ = writeln!(out, "Non-2xx responses:      {strange}");
    }
    if document.keep_alive == KeepAlive::On {
        let kept = kept(document);
        let _ = writeln!(out, "Keep-Alive requests:    {kept}");
    }
    let _ = writeln!(out, "Total transferred:      {} bytes", document.bytes);
    let _ = writeln!(out, "HTML transferred:       {} bytes", document.body_bytes);
}

/// Answers whose connection could be used again. That of the last answer on each is not known where
/// others were opened in its place.
fn kept(document: &Document) -> u64 {
    let (answers, opened) = (document.answers(), document.connections.opened);
    if opened >= answers { 0 } else { answers - opened.saturating_sub(document.concurrency) }
}

fn rates(out: &mut String, document: &Document) {
    let seconds = document.duration_s;
    let (mut rate, mut each, mut kilobytes) = (0.0, 0.0, 0.0);
    if seconds > 0.0 && document.requests > 0 {
        rate = document.requests as f64 / seconds;
        each = 1000.0 / rate;
        kilobytes = document.bytes as f64 / 1024.0 / seconds;
    }
    let _ = write!(
        out,
        "Requests per second:    {rate:.2} [#/sec] (mean)\n\
         Time per request:       {:.3} [ms] (mean)\n\
         Time per request:       {each:.3} [ms] (mean, across all concurrent requests)\n\
         Transfer rate:          {kilobytes:.2} [Kbytes/sec] received\n",
        each * document.concurrency as f64,
    );
}

fn times(out: &mut String, document: &Document) {
    let total = document.histograms.response.histogram();
    let mut connect = document.histograms.connect.histogram();
    // A request on a kept connection took no time to connect.
    connect.saturating_record_n(0, total.len().saturating_sub(connect.len()));
    out.push_str("\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n");
    for (label, micros) in [
        ("Connect:", &connect),
        ("Processing:", &document.histograms.service.histogram()),
        ("Waiting:", &document.histograms.first_byte.histogram()),
        ("Total:", &total),
    ] {
        let _ = writeln!(
            out,
            "{label:<12}{:>5} {:>4} {:>5.1} {:>6} {:>7}",
            whole_ms(micros.min() as f64),
            whole_ms(micros.mean()),
            micros.stdev() / 1000.0,
            whole_ms(micros.value_at_quantile(0.5) as f64),
            whole_ms(micros.max() as f64),
        );
    }
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in PERCENTS {
        let _ = writeln!(out, "  {percent:.0}%  {:>5}", at(&total, percent));
    }
    let _ = writeln!(out, " 100%  {:>5} (longest request)", at(&total, 100.0));
}

fn at(micros: &Histogram<u64>, percent: f64) -> u64 {
    whole_ms(micros.value_at_percentile(percent) as f64)
}

fn whole_ms(micros: f64) -> u64 {
    (micros / 1000.0).round() as u64
}
