//! Every rendering of a run whose figures are known.

use std::collections::BTreeMap;

use super::*;
use crate::document::histogram::EncodedHistogram;
use crate::document::load::testing::{document, histogram};
use crate::document::load::{Document, Histograms, Overload, Stage, WarmUp, Window};
use crate::document::verdict::Verdict;

// Each is one of the tool's own kinds, so that no failure hides.
#[test]
fn ab_and_wrk_formats_count_every_error() {
    use load::ErrorKind::{ClientError, ServerError};
    for kind in load::ErrorKind::ALL.into_iter().filter(|k| ![ClientError, ServerError].contains(k))
    {
        let errors = BTreeMap::from([(kind.name().to_owned(), 1)]);
        let document = Document { errors, status: BTreeMap::from([(200, 103)]), ..document() };
        assert!(ab(&document).contains("Failed requests:        1\n"), "{}", ab(&document));
        let wrk = wrk(&document, Latency::Summary);
        assert!(wrk.contains("Socket errors:"), "{kind:?}: {wrk}");
    }
}

#[test]
fn ab_format_of_a_script_has_no_host() {
    let script = Document { target: "shop.yml".to_owned(), ..document() };
    let whole = "Hostname:        \nServer Port:            \n\nDocument Path:          shop.yml\n";
    assert!(ab(&script).contains(whole), "{}", ab(&script));
    assert!(
        ab(&document())
            .contains("Server Port:            8080\n\nDocument Path:          /a?b=1\n")
    );
}

#[test]
fn a_document_survives_json() {
    let text = serde_json::to_string(&document()).unwrap();
    let back: Document = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}

#[test]
fn overload_comes_first_and_percentiles_are_lower_bounds() {
    let document = Document {
        offered: 13.0,
        throughput: 8.08,
        requests: 97,
        requests_offered: Some(156),
        requests_sent: Some(156),
        requests_unanswered: Some(59),
        overloaded: true,
        errors: BTreeMap::new(),
        verdict: Verdict::Valid,
        ..document()
    };
    let text = text(&document);
    let first = "The target is overloaded: it answers 8.08 of the 13.0 requests/s that come.\n";
    assert!(text.starts_with(first), "{text}");
    let counts =
        "\n156 requests offered, 156 sent, 97 answered, 59 unanswered at the end\n8.08 requests/s";
    assert!(text.contains(counts), "{text}");
    assert!(text.contains("\nThe throughput is valid; the percentiles are lower bounds"), "{text}");
    assert!(summary(&document).ends_with(", overloaded"), "{}", summary(&document));
    let overload = Overload {
        duration_s: 24.0,
        offered: 312,
        sent: 312,
        answered: 194,
        failed: 9,
        unanswered: 109,
    };
    let told = Document { overload: Some(overload), ..document };
    let first = "The target is overloaded: it answers 8.08 of the 13.0 requests/s that come (312 offered, 312 sent, \
                 194 answered, 9 failed, 109 unanswered), so the percentiles are lower bounds.";
    assert!(super::text(&told).starts_with(&format!("{first}\n")), "{}", super::text(&told));
    assert!(markdown(&told).contains(&format!("\n**{first}**\n")), "{}", markdown(&told));
    assert!(junit(&told).unwrap().contains(&format!("name=\"overload\" value=\"{first}\"")));
    // A few are always under way when a run ends.
    let sound =
        Document { requests_unanswered: Some(1), overloaded: false, overload: None, ..told };
    assert!(!super::text(&sound).contains("offered"), "{}", super::text(&sound));
}

#[test]
fn text_names_the_warm_up() {
    let mut document = document();
    document.warm_up = Some(WarmUp { length_s: 3.0, by: "response_time".into() });
    let text = text(&document);
    assert!(
        text.contains("after a warm-up of 3.0 s (until the response time was steady)"),
        "{text}"
    );
}

#[test]
fn text_names_what_is_not_met() {
    let text = text(&document());
    assert!(text.contains("104 requests, 50.0 requests/s"), "{text}");
    assert!(text.contains("Not met: errors at most 1 %: 3.8 %"), "{text}");
    assert!(!text.contains("p95 within"), "what holds is not named: {text}");
}

#[test]
fn ab_format_has_all_fields() {
    let expected = "\
Server Software:        
Server Hostname:        127.0.0.1
Server Port:            8080

Document Path:          /a?b=1
Document Length:        10 bytes

Concurrency Level:      2
Time taken for tests:   2.000 seconds
Complete requests:      104
Failed requests:        1
   (Connect: 0, Receive: 1, Length: 0, Exceptions: 0)
Non-2xx responses:      3
Keep-Alive requests:    101
Total transferred:      10300 bytes
HTML transferred:       1030 bytes
Requests per second:    52.00 [#/sec] (mean)
Time per request:       38.462 [ms] (mean)
Time per request:       19.231 [ms] (mean, across all concurrent requests)
Transfer rate:          5.03 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.4      0       2
Processing:    10  505 288.7    500    1000
Waiting:       10  505 288.7    500    1000
Total:         10  505 288.7    500    1000

Percentage of the requests served within a certain time (ms)
  50%    500
  66%    660
  75%    750
  80%    800
  90%    900
  95%    950
  98%    980
  99%    990
 100%   1000 (longest request)
";
    assert_eq!(ab(&document()), expected);
}

#[test]
fn wrk_format_has_all_fields() {
    let expected = "\
Running 2s test @ http://127.0.0.1:8080/a?b=1
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   505.01ms  288.67ms   1.00s    58.00%
    Req/Sec    50.00      0.00    50.00    100.00%
  Latency Distribution
     50%  500.22ms
     75%  750.08ms
     90%  900.10ms
     99%  990.21ms
  103 requests in 2.00s, 10.06KB read
  Socket errors: connect 0, read 1, write 0, timeout 0
  Non-2xx or 3xx responses: 3
Requests/sec:     51.50
Transfer/sec:      5.03KB
";
    let text = wrk(&document(), Latency::Distribution);
    assert_eq!(text, expected);
    assert!(!wrk(&document(), Latency::Summary).contains("Distribution"));
    let mut cut = document();
    cut.windows.push(Window { seconds: 0.003, throughput: 333.3, ..document().windows.remove(1) });
    assert_eq!(wrk(&cut, Latency::Distribution), expected, "a moment is no window");
}

#[test]
fn hdr_percentiles_end_with_all_of_them() {
    let text = hgrm(&document());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
    assert_eq!(lines[2], "      10.007 0.000000000000          1           1.00");
    let last = lines.iter().rposition(|line| !line.starts_with('#')).unwrap();
    assert_eq!(lines[last], "    1000.447 1.000000000000        100");
    assert_eq!(lines[last + 1], "#[Mean    =      505.011, StdDeviation   =      288.666]");
    assert_eq!(lines[last + 2], "#[Max     =     1000.447, Total count    =          100]");
    assert_eq!(lines[last + 3], "#[Buckets =           22, SubBuckets     =         2048]");
}

#[test]
fn ndjson_has_a_line_per_window() {
    let text = ndjson(&document()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["start_s"], &lines[1]["requests"]), (&1.0.into(), &52.into()));
    assert_eq!(lines[0]["time"], 1_795_255_200.0);
    assert_eq!(lines[1]["response_ms"]["p50"], 750.079);
}

#[test]
fn locust_files_have_all_columns() {
    let [stats, history, failures, exceptions] = locust(&document(), CsvHistory::Full).unwrap();
    let stats: Vec<&str> = stats.split("\r\n").collect();
    assert_eq!(
        stats[0],
        "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,\
         Max Response Time,Average Content Size,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,99.9%,\
         99.99%,100%"
    );
    assert!(stats[1].starts_with("GET,/a?b=1,104,4,500,505.01"), "{}", stats[1]);
    assert!(stats[1].ends_with(",52,2,500,660,750,800,900,950,980,990,1000,1000,1000"));
    assert!(stats[2].starts_with(",Aggregated,104,4,"), "{}", stats[2]);
    let history: Vec<&str> = history.split("\r\n").collect();
    assert!(history[0].starts_with("Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,66%"));
    assert!(history[0].ends_with(
        "100%,Total Request Count,Total Failure Count,Total Median Response Time,Total Average Response Time,\
         Total Min Response Time,Total Max Response Time,Total Average Content Size"
    ));
    assert!(history[1].starts_with("1795255201,2,GET,/a?b=1,52,2,250,330"), "{}", history[1]);
    assert!(history[2].starts_with("1795255201,2,,Aggregated,52,2,250,330"), "{}", history[2]);
    assert!(history[4].contains(",750,830,") && history[4].contains(",104,4,500,505.01"));
    assert_eq!(
        failures,
        "Method,Name,Error,Occurrences,First Seen,Last Seen\r\n\
         GET,/a?b=1,reset,1,2026-11-21T10:00:00Z,2026-11-21T10:00:01Z\r\n\
         GET,/a?b=1,status_5xx,3,2026-11-21T10:00:00Z,2026-11-21T10:00:01Z\r\n"
    );
    assert_eq!(exceptions, "Count,Message,Traceback,Nodes\r\n");
}

#[test]
fn a_script_keeps_its_name_in_locust_files() {
    let mut document = document();
    document.target = "shop.yml".to_owned();
    for failure in &mut document.failures {
        (failure.method, failure.name) = ("SCRIPT".to_owned(), "shop.yml".to_owned());
    }
    let [_, _, failures, _] = locust(&document, CsvHistory::Sum).unwrap();
    assert!(failures.contains("\r\nSCRIPT,shop.yml,reset,1,"), "{failures}");
}

// What _stats.csv says in its last row, the history says in its last row too.
#[test]
fn locust_totals_leave_the_warm_up_out() {
    let mut document = document();
    document.windows[0].stage = Stage::WarmUp;
    let [_, history, ..] = locust(&document, CsvHistory::Sum).unwrap();
    let rows: Vec<&str> = history.split("\r\n").collect();
    assert!(rows[1].contains(",52,2,250,255.0"), "{}", rows[1]);
    assert!(rows[2].contains(",52,2,750,755.0"), "{}", rows[2]);
}

#[test]
fn junit_fails_when_the_run_fails() {
    let mut document = document();
    let xml = junit(&document).unwrap();
    assert!(xml.contains(r#"tests="3""#) && xml.contains(r#"failures="1""#), "{xml}");
    assert!(xml.contains(r#"message="3.8 %""#), "{xml}");
    assert!(xml.contains(r#"errors="0""#), "suspect is no error: {xml}");
    document.verdict = Verdict::Invalid;
    assert!(junit(&document).unwrap().contains(r#"errors="1""#));
}

#[test]
fn junit_has_no_control_characters() {
    let mut document = document();
    document.target = "http://a/\u{1b}[2J\u{0}".to_owned();
    document.thresholds[0].measured = "3\u{7}".to_owned();
    let xml = junit(&document).unwrap();
    let other = xml.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(other, None, "{xml}");
}

#[test]
fn markdown_escapes_cell_separators() {
    let mut document = document();
    document.thresholds[0].name = "a\\|b\rc".to_owned();
    let text = markdown(&document);
    assert!(text.contains(r"| a\\\|b c |"), "{text}");
}

#[test]
fn markdown_has_all_figures() {
    let mut document = document();
    document.workload = "a|b".to_owned();
    let text = markdown(&document);
    assert!(text.contains("| response time | 505 ms | 500 ms |"), "{text}");
    assert!(text.contains("| errors at most 1 % | 3.8 % | **no** |"), "{text}");
    assert!(text.contains("a\\|b for 2.0 s: **50.0 requests/s**"), "{text}");
    assert!(text.contains("failed\n\n|  | mean |"), "a table of its own, not of the list: {text}");
}

#[test]
fn an_empty_run_divides_by_no_zero() {
    let mut empty = document();
    (empty.requests, empty.duration_s, empty.bytes, empty.body_bytes) = (0, 0.0, 0, 0);
    empty.errors.clear();
    empty.status.clear();
    empty.histograms = Histograms::default();
    empty.windows.clear();
    empty.by_name[0].histogram = EncodedHistogram::default();
    (empty.by_name[0].requests, empty.by_name[0].errors) = (0, 0);
    assert!(ab(&empty).ends_with("Transfer rate:          0.00 [Kbytes/sec] received\n"));
    assert!(wrk(&empty, Latency::Distribution).contains("0 requests in 0.00s, 0.00B read"));
    assert!(hgrm(&empty).contains("Total count    =            0"));
    assert!(locust(&empty, CsvHistory::Sum).unwrap()[0].contains("N/A"));
}

#[test]
fn retransmitted_connects_are_reported() {
    let mut document = document();
    let words = "of 100 connections opened only when they were asked for again";
    let ms = |slow: [u64; 3]| histogram((0..97).map(|_| 2).chain(slow));
    document.histograms.connect = EncodedHistogram::of(ms([2, 500, 1500]).counts());
    assert!(!text(&document).contains(words), "{}", text(&document));
    document.histograms.connect = EncodedHistogram::of(ms([1010, 3020, 2]).counts());
    assert!(text(&document).contains(&format!("2 {words}")), "{}", text(&document));
}
