use proptest::prelude::*;

use super::*;
use crate::http::http1::response_sink::Ignore;

/// What a connection makes of a stream of bytes that ends with a close.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Status, reuse, and the bytes of the stream that belong to the answer.
    Answer(u16, Reuse, usize),
    AnswerByClose(u16),
    Fault(Fault),
    ClosedEarly,
}

fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>, body: AnswerBody) -> Outcome {
    let mut reader = ResponseReader::new();
    let mut before = 0;
    for piece in pieces {
        match reader.read(piece, body, &mut Ignore) {
            Ok(Progress::Partial) => before += piece.len(),
            Ok(Progress::Complete(answer, used)) => {
                return Outcome::Answer(answer.status, answer.reuse, before + used);
            }
            Err(fault) => return Outcome::Fault(fault),
        }
    }
    match reader.close() {
        Some(answer) => Outcome::AnswerByClose(answer.status),
        None => Outcome::ClosedEarly,
    }
}

fn read_whole(bytes: &[u8]) -> Outcome {
    read_pieces(std::iter::once(bytes), AnswerBody::AsFramed)
}

/// The outcome, after checking that it is the same byte by byte.
fn read(bytes: &[u8]) -> Outcome {
    let whole = read_whole(bytes);
    assert_eq!(read_pieces(bytes.chunks(1), AnswerBody::AsFramed), whole);
    whole
}

fn answer(text: &str) -> Outcome {
    read(text.as_bytes())
}

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// RFC 9112, 5.2.
#[test]
fn a_folded_field_is_read_as_one_with_blanks() {
    for head in [
        "HTTP/1.1 200 OK\r\nX-Note: a,\r\n  b\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\t5\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\nX-Note: a\n \n b\n\n",
    ] {
        // A body that begins with a blank is no fold.
        for body in ["hello", " \r\n x"] {
            let text = format!("{head}{body}");
            assert_eq!(answer(&text), Outcome::Answer(200, Reuse::Yes, text.len()), "{text:?}");
        }
    }
    let close = "HTTP/1.1 200 OK\r\nConnection: x,\r\n close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(answer(close), Outcome::Answer(200, Reuse::No, close.len()));
    let status = "HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(answer(status), Outcome::Fault(Fault::Malformed), "2.2");
}

#[test]
fn content_length_ends_the_answer() {
    assert_eq!(answer(HELLO), Outcome::Answer(200, Reuse::Yes, HELLO.len()));
    let followed = format!("{HELLO}HTTP/1.1 200");
    assert_eq!(answer(&followed), Outcome::Answer(200, Reuse::Yes, HELLO.len()));
    let repeated = "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\ncontent-length: 1\r\n\r\nx";
    assert_eq!(answer(repeated), Outcome::Answer(200, Reuse::Yes, repeated.len()));
}

#[test]
fn chunked_with_trailers_ends_the_answer() {
    let text =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
    assert_eq!(answer(text), Outcome::Answer(200, Reuse::Yes, text.len()));
}

#[test]
fn close_ends_an_answer_without_length() {
    assert_eq!(answer("HTTP/1.1 200 OK\r\n\r\nsome"), Outcome::AnswerByClose(200));
    assert_eq!(answer("HTTP/1.0 404 No\r\n\r\n"), Outcome::AnswerByClose(404));
}

#[test]
fn some_answers_never_have_a_body() {
    for status in [204, 304] {
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(answer(&text), Outcome::Answer(status, Reuse::Yes, text.len()));
    }
    let head = HELLO.strip_suffix("hello").unwrap();
    let outcome = read_pieces(head.as_bytes().chunks(7), AnswerBody::Never);
    assert_eq!(outcome, Outcome::Answer(200, Reuse::Yes, head.len()));
}

#[test]
fn interim_answers_are_skipped() {
    let text = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n{HELLO}");
    assert_eq!(answer(&text), Outcome::Answer(200, Reuse::Yes, text.len()));
}

#[test]
fn version_and_connection_decide_reuse() {
    let reuse = |first: &str| match answer(&format!("{first}\r\nContent-Length: 0\r\n\r\n")) {
        Outcome::Answer(_, reuse, _) => reuse,
        other => panic!("{other:?}"),
    };
    assert_eq!(reuse("HTTP/1.1 200 OK"), Reuse::Yes);
    assert_eq!(reuse("HTTP/1.1 200 OK\r\nConnection: X, Close"), Reuse::No);
    assert_eq!(reuse("HTTP/1.0 200 OK"), Reuse::No);
    assert_eq!(reuse("HTTP/1.0 200 OK\r\nconnection: Keep-Alive"), Reuse::Yes);
}

#[test]
fn contradictions_are_malformed() {
    for head in [
        "garbage",
        "HTTP/2.0 200 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 X",
        "HTTP/1.1 101 Switching",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
        "HTTP/1.1 200 OK\r\nContent-Length: -1",
        "HTTP/1.1 200 OK\r\nContent-Length: 1x",
        "HTTP/1.1 200 OK\r\nContent-Length:",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked",
        "HTTP/1.1 200 OK\r\nno colon",
    ] {
        let text = format!("{head}\r\n\r\nbody");
        assert_eq!(answer(&text), Outcome::Fault(Fault::Malformed), "{head}");
    }
}

#[test]
fn size_has_limits() {
    let long_head = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD));
    assert_eq!(read_whole(long_head.as_bytes()), Outcome::Fault(Fault::TooLarge));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
    assert_eq!(answer(&many), Outcome::Fault(Fault::TooLarge));
    let long_body = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", MAX_BODY + 1);
    assert_eq!(answer(&long_body), Outcome::Fault(Fault::TooLarge));
    let overflow = format!("HTTP/1.1 200 OK\r\nContent-Length: {}0\r\n\r\n", u64::MAX);
    assert_eq!(answer(&overflow), Outcome::Fault(Fault::TooLarge));
}

#[test]
fn early_close_is_no_answer() {
    for end in 0..HELLO.len() {
        assert_eq!(read_whole(&HELLO.as_bytes()[..end]), Outcome::ClosedEarly);
    }
}

#[test]
fn one_reader_reads_many_answers() {
    let mut reader = ResponseReader::new();
    for _ in 0..3 {
        reader.restart();
        assert!(reader.is_untouched());
        let (start, rest) = HELLO.as_bytes().split_at(9);
        assert_eq!(reader.read(start, AnswerBody::AsFramed, &mut Ignore), Ok(Progress::Partial));
        assert!(!reader.is_untouched());
        let Ok(Progress::Complete(_, used)) = reader.read(rest, AnswerBody::AsFramed, &mut Ignore)
        else {
            panic!("must complete");
        };
        assert_eq!(used, rest.len());
    }
}

/// Streams made of pieces that matter, so that random ones get past the first line.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("HTTP/1.1 200 OK\r\n"),
        Just("HTTP/1.0 200 OK\r\n"),
        Just("HTTP/1.1 100 Continue\r\n\r\n"),
        Just("HTTP/1.1 204 No\r\n"),
        Just("Content-Length: 5\r\n"),
        Just("Content-Length: 12\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Connection: close\r\n"),
        Just("\r\n"),
        Just("5\r\nhello\r\n"),
        Just("0\r\n"),
        Just("hello"),
        Just("\n"),
        Just("\0"),
    ];
    (
        prop_oneof![3 => Just("HTTP/1.1 200 OK\r\n"), 1 => Just("")],
        proptest::collection::vec(piece, 0..10),
    )
        .prop_map(|(first, rest)| [first.as_bytes(), rest.concat().as_bytes()].concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_outcome(stream in streams(), cuts in proptest::collection::vec(0usize..200, 0..8)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
        prop_assert_eq!(read_pieces(pieces, AnswerBody::AsFramed), read(&stream));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes);
    }
}

/// Keeps the bodies.
#[derive(Default)]
struct Bodies(Vec<u8>);

impl ResponseSink for Bodies {
    fn head(&mut self, _: &[httparse::Header<'_>]) {}

    fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

#[test]
fn answers_are_read_as_the_standard_and_curl_read_them() {
    for case in field::cases("http-answers") {
        let (method, bytes) = case.input.split_once(' ').unwrap();
        let body = if method == "HEAD" { AnswerBody::Never } else { AnswerBody::AsFramed };
        let (mut reader, mut sink) = (ResponseReader::new(), Bodies::default());
        let answer = match reader.read(bytes.as_bytes(), body, &mut sink) {
            Ok(Progress::Complete(answer, used)) if used == bytes.len() => Some(answer),
            Ok(Progress::Partial) => reader.close(),
            _ => None,
        };
        let read = answer.map_or("refused".to_owned(), |Answer { status, reuse }| {
            let text = String::from_utf8_lossy(&sink.0);
            let text = if text.is_empty() { "-" } else { &text };
            format!("{status} {text} {}", if reuse == Reuse::Yes { "kept" } else { "closed" })
        });
        assert_eq!(read, case.right, "{} ({})", case.place, case.rule);
    }
}
