//! Servers that close kept connections: some when nothing is under way, some instead of an answer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use socket2::SockRef;

use super::*;

/// What the server does with a connection's request after so many answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Closing {
    /// It reads the request and closes the connection.
    Reads,
    /// It closes the connection right after the last answer, without saying so in it.
    Answered,
    /// It closes the connection once a request has come, without reading it.
    Unread,
    /// It resets the connection instead of closing it, right after the last answer.
    Resets,
}

/// A server with this habit, and how many requests it has read without answering.
fn server(closing: Closing, answers: u64) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dropped = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&dropped);
    accept(listener, move |mut stream| {
        for _ in 0..answers {
            if !stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                return;
            }
            stream.write_all(OK).unwrap();
        }
        match closing {
            Closing::Reads => {
                let read = stream.read(&mut [0; 4096]).unwrap_or(0);
                counted.fetch_add(u64::from(read > 0), Relaxed);
            }
            Closing::Unread => drop(stream.peek(&mut [0])),
            Closing::Resets => SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap(),
            Closing::Answered => {}
        }
    });
    (address, dropped)
}

#[test]
fn requests_that_a_server_reads_and_drops_are_errors() {
    for engine in ENGINES {
        let (address, dropped) = server(Closing::Reads, 2);
        let report = run(config(&format!("http://{address}/"), 300, engine));
        let failed = report.errors.get(&ErrorKind::ClosedEarly).copied();
        assert_eq!(failed, Some(dropped.load(Relaxed)), "{engine}");
        assert_eq!((report.error_count(), report.repeated), (failed.unwrap(), 0), "{engine}");
        assert!((98..=100).contains(&report.error_count()), "{engine}: {}", report.error_count());
    }
}

#[test]
fn requests_that_nobody_has_read_go_out_again_and_are_counted() {
    for engine in ENGINES {
        for closing in [Closing::Answered, Closing::Unread, Closing::Resets] {
            let (address, _) = server(closing, 2);
            let report = run(config(&format!("http://{address}/"), 300, engine));
            let errors = report.errors;
            assert_eq!(
                (report.requests, errors.len()),
                (300, 0),
                "{engine} {closing:?} {errors:?}"
            );
            assert!(report.repeated <= 150, "{engine} {closing:?}");
            if closing == Closing::Unread {
                let told = |r: &crate::Reason| matches!(r, crate::Reason::ManyRepeated { .. });
                assert!(report.repeated > 100, "{engine}: {}", report.repeated);
                assert!(report.reasons.iter().any(told), "{engine}: {:?}", report.reasons);
            }
        }
    }
}
