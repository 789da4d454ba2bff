//! Sessions played without a socket: scripts in, requests out, answers in.

use std::path::Path;

use rand::SeedableRng;

use super::*;
use crate::artillery::{self, Options};
use load::AnswerBody;
use load::Repeat;
use load::ResponseSink;
use load::SECOND;

/// What a server says: status, header lines, body.
struct Reply(u16, Vec<(&'static str, String)>, String);

/// What came of a session.
#[derive(Debug, Default)]
struct Played {
    /// Whole requests.
    requests: Vec<String>,
    pauses: Vec<Nanos>,
    logs: Vec<String>,
    ended: Option<Result<(), String>>,
    tally: OpenSessionTally,
}

fn json(body: &str) -> Reply {
    Reply(200, vec![("content-type", "application/json".into())], body.into())
}

fn script(config: &str, flow: &str) -> Script {
    let flow: String = flow.lines().map(|line| format!("      {line}\n")).collect();
    let config: String = config.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!(
        "config:\n  target: http://shop.test:81/base\n{config}scenarios:\n  - flow:\n{flow}"
    );
    artillery::parse(&text, Path::new("s.yml"), &Options { ..options() })
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The name is not looked up in tests.
fn options() -> Options {
    Options { target: Some("http://127.0.0.1:81/base".into()), ..Options::default() }
}

/// Plays one session; `server` answers the n-th request.
fn play(script: &Script, mut server: impl FnMut(usize, &str) -> Reply) -> Played {
    let mut played = Played::default();
    let (mut random, mut scratch) = (SmallRng::seed_from_u64(1), Vec::new());
    let mut session = Session::new(script.scope.clone(), script.scenarios[0].body);
    let mut in_flight: Vec<(u32, Reply, String)> = Vec::new();
    let mut paused = Vec::new();
    for _ in 0..10_000 {
        let (script, tally) = (script, &mut played.tally);
        let mut shared = SharedState { script, random: &mut random, tally, scratch: &mut scratch };
        match session.poll(&mut shared) {
            Act::Send(branch) => {
                let mut request = PreparedRequest {
                    bytes: Vec::new(),
                    answer_body: AnswerBody::AsFramed,
                    repeat: Repeat::Forbidden,
                };
                match session.write_request(branch, &mut shared, &mut request) {
                    Ok(_) => {
                        session.sent();
                        let text = String::from_utf8(request.bytes).unwrap();
                        let path = text.split(' ').nth(1).unwrap().to_owned();
                        let reply = server(played.requests.len(), &text);
                        played.requests.push(text);
                        in_flight.push((branch, reply, path));
                    }
                    Err(error) => session.fail(error),
                }
            }
            Act::Pause(branch, length) => {
                played.pauses.push(length);
                paused.push(branch);
            }
            Act::Log(text) => played.logs.push(text),
            Act::Ended(outcome) => {
                played.ended = Some(outcome);
                return played;
            }
            Act::Wait if !in_flight.is_empty() => {
                let (branch, Reply(status, lines, body), path) = in_flight.remove(0);
                let mut kept = RecordedResponse::default();
                kept.restart(Recording::Body);
                let lines: Vec<_> = lines
                    .iter()
                    .map(|(name, value)| httparse::Header { name, value: value.as_bytes() })
                    .collect();
                kept.head(&lines);
                kept.body(body.as_bytes());
                session.answered(branch, status, &path, &kept, &mut shared);
            }
            Act::Wait => match paused.pop() {
                Some(branch) => session.resume(branch),
                None => return played,
            },
        }
    }
    played
}

/// The first lines of the requests, without the protocol.
fn lines(played: &Played) -> Vec<&str> {
    played.requests.iter().map(|r| r.split(" HTTP/1.1").next().unwrap()).collect()
}

fn failure(played: &Played) -> &str {
    match &played.ended {
        Some(Err(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_written_as_the_script_says() {
    let flow = r#"- post:
    url: /a?old=1
    qs: {q: "a b&c", n: [1, 2], flag: }
    headers: {X-One: "{{ who }}"}
    json: {who: "{{ who }}", list: [1, "{{ n }}"], text: "n={{ n }}"}
- put: {url: "http://127.0.0.1:81/whole#part", body: "x={{ n }}"}
- patch: {url: /form, form: {a: "1 2", "b&": c}, auth: {user: u, pass: "{{ who }}"}}
- delete: {url: "/d {{ who }}", gzip: false}
- head: {url: /h}"#;
    let script = script("variables: {who: me, n: 7}", flow);
    let played = play(&script, |_, _| json("{}"));
    assert_eq!(played.ended, Some(Ok(())));
    assert_eq!(
        lines(&played),
        [
            "POST /base/a?q=a+b%26c&n=1&n=2&flag=",
            "PUT /whole",
            "PATCH /base/form",
            "DELETE /base/d%20me",
            "HEAD /base/h"
        ]
    );
    let post = &played.requests[0];
    assert!(post.contains("\r\nHost: 127.0.0.1:81\r\n") && post.contains("\r\nx-one: me\r\n"));
    assert!(post.contains("\r\ncontent-type: application/json\r\n"), "{post}");
    assert!(post.contains("\r\naccept-encoding: gzip, deflate, br\r\n"), "{post}");
    let body = r#"{"who":"me","list":[1,7],"text":"n=7"}"#;
    assert!(post.ends_with(&format!("\r\nContent-Length: {}\r\n\r\n{body}", body.len())), "{post}");
    assert!(played.requests[1].ends_with("\r\nContent-Length: 3\r\n\r\nx=7"));
    let form = &played.requests[2];
    assert!(form.ends_with("\r\n\r\na=1+2&b%26=c") && form.contains("Basic dTptZQ=="), "{form}");
    assert!(
        !played.requests[3].contains("accept-encoding") && played.requests[3].contains("DELETE")
    );
}

#[test]
fn multipart_bodies_carry_fields() {
    let flow = "- post: {url: /, formData: {a: \"{{ n }}\", b: {value: x, contentType: text/css}}}";
    let played = play(&script("variables: {n: 7}", flow), |_, _| json("{}"));
    let request = &played.requests[0];
    let boundary = request.split("boundary=").nth(1).unwrap().split("\r\n").next().unwrap();
    let wanted = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n7\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"b\"\r\nContent-Type: text/css\r\n\r\nx\r\n--{boundary}--\r\n"
    );
    assert!(request.ends_with(&wanted), "{request}");
}

#[test]
fn captured_values_are_sent_on() {
    let flow = r#"- get:
    url: /login
    capture:
      - {json: $.token, as: token}
      - {regexp: "id.:(\\d+)", group: 1, as: id}
      - {header: ETag, as: tag}
      - {json: $.none, as: none, strict: false}
- get: {url: "/{{ token }}/{{ id }}/{{ tag }}/{{ none }}."}"#;
    let played = play(&script("", flow), |_, _| {
        let mut reply = json(r#"{"token": "t0", "id":12}"#);
        reply.1.push(("etag", "e1".into()));
        reply
    });
    assert_eq!(lines(&played)[1], "GET /base/t0/12/e1/.");
}

#[test]
fn captures_replace_variables_of_the_command_line() {
    let flow = "- get: {url: '/{{ token }}', capture: {json: $.token, as: token}}
- get: {url: '/{{ token }}'}";
    let text = format!(
        "config: {{target: 'http://127.0.0.1:81'}}\nscenarios:\n- flow:\n  {}",
        flow.replace('\n', "\n  ")
    );
    let variables = Some(r#"{"token": "none"}"#.into());
    let options = Options { variables, ..Options::default() };
    let script = artillery::parse(&text, Path::new("s.yml"), &options).unwrap();
    let played = play(&script, |_, _| json(r#"{"token": "abc"}"#));
    assert_eq!(lines(&played), ["GET /none", "GET /abc"]);
}

#[test]
fn a_variable_takes_the_place_of_what_scripts_know_of_themselves() {
    let config = "variables: {target: mine}";
    let played = play(&script(config, "- get: {url: '/{{ target }}'}"), |_, _| json("{}"));
    assert_eq!(lines(&played), ["GET /base/mine"]);
    let flow = "- get: {url: '/?{{ target }}', capture: {json: $.t, as: target}}\n- get: {url: '/{{ target }}'}";
    let played = play(&script("", flow), |_, _| json(r#"{"t": "found"}"#));
    assert_eq!(lines(&played), ["GET /base/?http://127.0.0.1:81/base", "GET /base/found"]);
}

#[test]
fn whole_numbers_are_sent_without_a_fraction() {
    let flow = "- get: {url: /, capture: {json: $.price, as: price}}\n- post: {url: /, json: {a: 10.00, b: '{{ price }}'}}";
    let played = play(&script("", flow), |_, _| json(r#"{"price": 5.0}"#));
    assert!(played.requests[1].ends_with(r#"{"a":10,"b":5}"#), "{}", played.requests[1]);
}

#[test]
fn a_redirect_may_go_upwards_or_nowhere() {
    let script = script("", "- get: {url: /a/b/c?q}");
    let to = ["../d", "./e/..", "#top", "/x/../y/.?z=/../", "."];
    let played = play(&script, |n, _| match to.get(n) {
        Some(to) => Reply(302, vec![("location", (*to).to_owned())], String::new()),
        None => json("{}"),
    });
    let sent = ["/base/a/b/c?q", "/base/a/d", "/base/a/", "/base/a/", "/y/?z=/../", "/y/"];
    assert_eq!(lines(&played), sent.map(|path| format!("GET {path}")));
}

#[test]
fn a_capture_or_match_that_fails_ends_the_session() {
    for step in [
        "- get: {url: /, capture: {json: $.none, as: x}}",
        "- get: {url: /, match: {json: $.a, value: 2}}",
        "- get: {url: /, match: {json: $.none, value: ''}}",
        "- get: {url: /, capture: {regexp: nothing, as: x}}",
    ] {
        let played = play(&script("", &format!("{step}\n- get: {{url: /never}}")), |_, _| {
            json(r#"{"a": 1}"#)
        });
        assert_eq!(failure(&played), "Failed capture or match", "{step}");
        assert_eq!(played.requests.len(), 1);
    }
    let fine = "- get: {url: /, match: {json: $.a, value: 2, strict: false}}";
    assert_eq!(play(&script("", fine), |_, _| json("{\"a\": 1}")).ended, Some(Ok(())));
    let lenient = "http: {defaults: {strictCapture: false}}";
    let played =
        play(&script(lenient, "- get: {url: /, capture: {json: $.none, as: x}}"), |_, _| {
            json("{}")
        });
    assert_eq!(played.ended, Some(Ok(())));
}

#[test]
fn loops_count_and_go_over_lists() {
    let flow = r#"- loop:
    - get: {url: "/c{{ $loopCount }}"}
  count: 2
- loop:
    - get: {url: "/r{{ $loopCount }}"}
  count: "1-3"
- loop:
    - get: {url: "/e/{{ $loopElement.id }}"}
  over: items
- loop:
    - loop:
        - get: {url: "/{{ x }}{{ y }}"}
      over: [a, b]
      loopElement: y
  over: ["1", "2"]
  loopElement: x
- loop:
    - get: {url: /never}
  over: none"#;
    let set = "variables: {none: 3}";
    let first = "- get: {url: /, capture: {json: $.list, as: items}}\n";
    let played = play(&script(set, &format!("{first}{flow}")), |_, _| {
        json(r#"{"list": [{"id": 5}, {"id": 6}]}"#)
    });
    let paths: Vec<&str> =
        lines(&played).iter().map(|l| l.trim_start_matches("GET /base")).collect();
    assert_eq!(
        paths,
        ["/", "/c0", "/c1", "/r1", "/r2", "/e/5", "/e/6", "/1a", "/1b", "/2a", "/2b"]
    );
}

#[test]
fn parallel_steps_are_under_way_together() {
    let flow = "- parallel:\n    - get: {url: /1}\n    - get: {url: /2}\n    - get: {url: /3}\n  limit: 2\n- get: {url: /after}";
    let mut order = Vec::new();
    let played = play(&script("", flow), |n, request| {
        order.push((n, request.contains("/after")));
        json("{}")
    });
    assert_eq!(lines(&played)[..2], ["GET /base/1", "GET /base/2"]);
    assert_eq!((played.requests.len(), order[3].1), (4, true));
    assert_eq!(played.ended, Some(Ok(())));
}

#[test]
fn thinking_pauses_and_varies() {
    let flow = "- think: 2\n- think: 500ms\n- think: \"{{ t }}\"\n- {think: 10, jitter: 20%}\n- log: \"hi {{ t }}\"";
    let played = play(&script("variables: {t: 3}", flow), |_, _| json("{}"));
    assert_eq!(played.pauses[..3], [2 * SECOND, SECOND / 2, 3 * SECOND]);
    assert!((8 * SECOND..=12 * SECOND).contains(&played.pauses[3]), "{:?}", played.pauses);
    assert_eq!(played.logs, ["hi 3"]);
}

#[test]
fn a_terminal_does_not_obey_what_is_logged() {
    let sets = r#"variables: {said: "\e[2Jgone"}"#;
    let played = play(&script(sets, "- log: \"{{ said }}\""), |_, _| json("{}"));
    assert_eq!(played.logs, [r"\u{1b}[2Jgone"]);
}

#[test]
fn redirects_are_followed_within_the_target() {
    let to =
        |location: &str, status| Reply(status, vec![("location", location.into())], String::new());
    let flow = "- post: {url: /a/b?x, json: {}}";
    let played = play(&script("", flow), |n, _| match n {
        0 => to("c?y", 307),
        1 => to("/d", 303),
        2 => to("http://127.0.0.1:81/e", 302),
        _ => json("{}"),
    });
    let wanted = ["POST /base/a/b?x", "POST /base/a/c?y", "GET /d", "GET /e"];
    assert_eq!(lines(&played), wanted);
    assert!(played.requests[3].ends_with("\r\n\r\n"), "{}", played.requests[3]);
    let way_back = "/login?next=http://127.0.0.1:81/x";
    let played = play(&script("", "- get: {url: /}"), |n, _| match n {
        0 => to(way_back, 302),
        _ => json("{}"),
    });
    assert_eq!(lines(&played)[1], format!("GET {way_back}"));
    let elsewhere = play(&script("", flow), |_, _| to("http://other.test/", 302));
    assert_eq!(failure(&elsewhere), "ERR_OTHER_SERVER");
    let endless = play(&script("", flow), |_, _| to("/again", 302));
    assert_eq!((failure(&endless), endless.requests.len()), ("ERR_TOO_MANY_REDIRECTS", 11));
    let left = "- get: {url: /, followRedirect: false, expect: {statusCode: 302}}";
    assert_eq!(play(&script("", left), |_, _| to("/x", 302)).requests.len(), 1);
}

#[test]
fn cookies_belong_to_the_session() {
    let flow = "- get: {url: /, cookie: {own: \"1\"}}\n- get: {url: /next}";
    let played = play(&script("", flow), |_, _| json("{}"));
    assert!(!played.requests[1].contains("Cookie"), "no server has set any");
    let flow = "- get: {url: /, cookie: {own: \"1\"}}\n- get: {url: /next}";
    let played = play(&script("http: {defaults: {cookie: {all: \"0\"}}}", flow), |_, _| {
        Reply(200, vec![("set-cookie", "sid=x; Path=/".into())], String::new())
    });
    assert!(played.requests[0].contains("\r\nCookie: all=0; own=1\r\n"), "{}", played.requests[0]);
    assert!(played.requests[1].contains("\r\nCookie: all=0; own=1; sid=x\r\n"));
}

#[test]
fn conditions_decide_whether_a_request_is_sent() {
    let flow = "- get: {url: /yes, ifTrue: n > 5 and who == \"me\"}\n- get: {url: /no, ifTrue: n < 5}\n- get: {url: /never, probability: 0}";
    let played = play(&script("variables: {n: 7, who: me}", flow), |_, _| json("{}"));
    assert_eq!(lines(&played), ["GET /base/yes"]);
}

#[test]
fn expectations_are_counted_and_end_a_session_where_they_are_errors() {
    let flow =
        "- get: {url: /x, expect: [{statusCode: [200, 201]}, {hasProperty: b}]}\n- get: {url: /y}";
    let played = play(&script("", flow), |_, _| json(r#"{"a": 1}"#));
    assert_eq!((played.requests.len(), played.ended), (2, Some(Ok(()))));
    let failed = |name| played.tally.checks[name].failed;
    assert_eq!((failed("statusCode"), failed("hasProperty")), (0, 1));
    let strict = "plugins: {expect: {reportFailuresAsErrors: true, expectDefault200: true}}";
    let played = play(&script(strict, flow), |_, _| json(r#"{"a": 1}"#));
    assert_eq!(failure(&played), "Failed expectations for request /x");
}

#[test]
fn an_unsendable_request_fails_only_its_session() {
    for (flow, error) in [
        ("- get: {url: \"{{ bad }}\"}", "Invalid URL"),
        ("- get: {url: /, headers: {x: \"{{ bad }}\"}}", "ERR_INVALID_CHAR"),
        ("- think: \"{{ bad }}\"", "Invalid think time"),
    ] {
        let script = script("variables: {bad: \"a\\r\\nb: c\"}", flow);
        assert_eq!(failure(&play(&script, |_, _| json("{}"))), error, "{flow}");
    }
}

#[test]
fn a_loop_that_never_sends_rests_now_and_then() {
    for step in [
        "get: {url: /never, probability: 0}",
        "log: on",
        "parallel: [{get: {url: /never, probability: 0}}]",
    ] {
        let played =
            play(&script("", &format!("- {{loop: [{{{step}}}], count: -1}}")), |_, _| json(""));
        assert!(played.pauses.contains(&IDLE_PAUSE) && played.requests.is_empty(), "{step}");
    }
}
