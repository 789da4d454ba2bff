//! Lines as they are written, and what becomes of those that are not.

use super::*;
use crate::config::access_log::{LogFormat, LogTarget};
use crate::log::record::Record;
use crate::net::peer::Transport;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

fn record(request_line: &[u8]) -> Record {
    let mut record = Record::default();
    record.begin(request_line);
    (record.status, record.bytes, record.attempts) = (Some(200), 42, 1);
    record.service = Some(Duration::from_micros(1500));
    record
}

fn line(record: &Record) -> Line<'_> {
    Line {
        time: Duration::from_millis(784_111_777_042),
        client: Some("192.0.2.1".parse().unwrap()),
        record,
        head: b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        request_id: b"abc",
        app: Some("shop"),
        queued: Duration::ZERO,
        response: Duration::from_micros(2001),
        transport: Transport::default(),
    }
}

fn text(line: &Line<'_>, format: LogFormat) -> String {
    let mut out = Vec::new();
    line.write(&mut out, format);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_combined_format() {
    let mut record = record(b"GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n");
    record.fields.user_agent = b"curl \"8\"\n".into();
    let line = line(&record);
    let text = text(&line, LogFormat::Combined);
    let (client, rest) = text.split_once(" [").unwrap();
    let (time, rest) = rest.split_once("] ").unwrap();
    assert_eq!(client, "192.0.2.1 - -");
    assert!(time.ends_with(|byte: char| byte.is_ascii_digit()) && time.contains("/Nov/1994:"));
    assert_eq!(rest, "\"GET /a?b HTTP/1.1\" 200 42 \"-\" \"curl \\x228\\x22\\x0A\"\n");
}

#[test]
fn an_object_a_line() {
    let mut record = record(b"GET / HTTP/1.1");
    record.fields.referer = "http://h/\u{e4}\"\\\u{7f}".into();
    record.fields.user_agent = b"a\xffb\n{\"status\":200}".into();
    let mut line = line(&record);
    line.transport = Transport { tls: Some("TLSv1.3"), http: Some("HTTP/2.0") };
    assert_eq!(
        text(&line, LogFormat::Json),
        "{\"time\":\"1994-11-06T08:49:37.042Z\",\"client\":\"192.0.2.1\",\"host\":\"a.example\",\"request\":\"GET / HTTP/2.0\",\
         \"status\":200,\"bytes\":42,\"referer\":\"http://h/\u{e4}\\\"\\\\\\u007f\",\
         \"user_agent\":\"a\u{fffd}b\\u000a{\\\"status\\\":200}\",\"request_id\":\"abc\",\"app\":\"shop\",\
         \"backend\":null,\"attempts\":1,\"queue_ms\":0.000,\"service_ms\":1.500,\"response_ms\":2.001,\
         \"tls\":\"TLSv1.3\"}\n"
    );
}

#[test]
fn a_client_that_left_is_499_and_a_bad_request_line_is_escaped() {
    let mut record = record(b"\x16\x03\x01/ HTTP/x\xff");
    record.status = None;
    let mut line = line(&record);
    line.client = None;
    let text = text(&line, LogFormat::Combined);
    assert!(text.starts_with("- - - ["), "{text}");
    assert!(text.contains("\"\\x16\\x03\\x01/ HTTP/x\\xFF\" 499 42 "), "{text}");
}

/// A reader that takes nothing: the buffer fills, nobody waits, and all is accounted for.
/// A pipe as a log, and its other end, which can be read from.
fn pipe(folder: &tempfile::TempDir) -> (LogTarget, std::fs::File) {
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // Both directions, so that opening it for writing does not wait for a reader.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    (LogTarget::File(pipe), reader)
}

#[test]
fn lines_that_do_not_fit_are_dropped_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (to, mut reader) = pipe(&folder);
    let log = Log::start(&AccessLog { to, format: LogFormat::Json }, 1, |_| ()).unwrap();
    let record = record(&[b'a'; 1000]);
    let sent = 5000;
    for _ in 0..sent {
        log.write(0, &line(&record));
    }
    // Full pipe, full buffer; now somebody reads.
    let reading = std::thread::spawn(move || {
        let (mut seen, mut dropped) = (0, 0);
        let mut rest = Vec::new();
        while seen + dropped < sent {
            let mut bytes = [0; 65536];
            let count = std::io::Read::read(&mut reader, &mut bytes).unwrap();
            rest.extend_from_slice(&bytes[..count]);
            while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                match line.split_once("\"lines_dropped\":") {
                    Some((_, count)) => {
                        dropped += count.trim_end_matches(['}', '\n']).parse::<u64>().unwrap();
                    }
                    None => seen += 1,
                }
            }
        }
        (seen, dropped)
    });
    let (seen, dropped) = reading.join().unwrap();
    assert_eq!((seen + dropped, log.dropped()), (sent, dropped));
    assert!(dropped > 0, "a buffer of 1 MiB and a pipe do not hold 5 MB");
    log.stop();
}

#[test]
fn a_reader_that_stopped_is_waited_for_once() {
    static NOTICES: AtomicU64 = AtomicU64::new(0);
    let notice = |_: &str| {
        NOTICES.fetch_add(1, Ordering::SeqCst);
    };
    let folder = tempfile::tempdir().unwrap();
    let (to, _reader) = pipe(&folder);
    let log = Log::start(&AccessLog { to, format: LogFormat::Json }, 1, notice).unwrap();
    let record = record(&[b'a'; 1000]);
    for _ in 0..500 {
        log.write(0, &line(&record));
    }
    log.stop();
    drop(log);
    assert_eq!(NOTICES.load(Ordering::SeqCst), 1);
}

#[test]
fn a_full_disk_is_survived() {
    let to = LogTarget::File("/dev/full".into());
    let log = Log::start(&AccessLog { to, format: LogFormat::Combined }, 2, |_| ()).unwrap();
    let record = record(b"GET / HTTP/1.1");
    log.write(0, &line(&record));
    log.write(1, &line(&record));
    log.stop();
    assert_eq!(log.dropped(), 2);
}

#[test]
fn a_new_log_is_not_for_everybody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let to = LogTarget::File(path.clone());
    let log = Log::start(&AccessLog { to, format: LogFormat::Combined }, 1, |_| ()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o007, 0);
    log.stop();
}
