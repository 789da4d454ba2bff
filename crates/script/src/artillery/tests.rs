//! Scripts that are read, and scripts that are refused.

use std::path::Path;
use std::time::Duration;

use super::*;
use load::{Flow, Spacing};

fn read_with(text: &str, options: &Options) -> Result<Script, String> {
    parse(text, Path::new("s.yml"), options).map_err(|error| error.to_string())
}

/// A script with this config and these steps.
fn text(config: &str, steps: &str) -> String {
    let indent = |text: &str, by| -> String {
        text.lines().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
    };
    format!(
        "config:\n  target: http://127.0.0.1:81\n{}scenarios:\n  - flow:\n{}",
        indent(config, 2),
        indent(steps, 6)
    )
}

fn read(config: &str, steps: &str) -> Result<Script, String> {
    read_with(&text(config, steps), &Options::default())
}

const STEP: &str = "- get: {url: /}";

#[test]
fn phases_become_arrivals_of_sessions() {
    let config = "phases:
  - {duration: 60, arrivalRate: 5, name: warm, maxVusers: 9}
  - {duration: 2min, arrivalRate: 5, rampTo: 20}
  - {duration: 10, arrivalCount: 30}
  - {pause: 3}
  - {duration: '1', arrivalRate: 2, rampTo: 4}";
    let script = read(config, STEP).unwrap();
    let flows: Vec<&Flow> = script.phases.iter().map(|phase| &phase.flow).collect();
    assert_eq!(
        flows,
        [
            &Flow::Constant(5.0),
            &Flow::Stairs { from: 5.0, to: 20.0 },
            &Flow::Count(30),
            &Flow::Constant(0.0),
            &Flow::Constant(3.0)
        ]
    );
    assert_eq!(script.phases[0].limit, Some(9));
    assert_eq!(script.duration(), Duration::from_secs(60 + 120 + 10 + 3 + 1));
    assert_eq!(script.spacing, Spacing::Even);
    let poisson = read("phases: [{duration: 1, arrivalRate: 1, mode: poisson}]", STEP).unwrap();
    assert_eq!(poisson.spacing, Spacing::Poisson);
    let none = read("", STEP).unwrap();
    assert_eq!(none.phases[0].flow, Flow::Count(1));
    let ramp = read("phases: [{duration: 4, rampTo: 4}]", STEP).unwrap();
    assert_eq!(ramp.phases[0].flow, Flow::Stairs { from: 0.0, to: 4.0 });
}

#[test]
fn an_environment_goes_before_the_config_and_options_before_both() {
    let text = text(
        "http: {timeout: 7}\nvariables: {a: 1, b: 2}\nenvironments:\n  big:\n    target: http://127.0.0.1:82\n    http: {timeout: \"{{ $environment }}\"}",
        "- get: {url: \"/{{ a }}/{{ b }}/{{ $environment }}\"}",
    );
    let options = Options {
        environment: Some("big".into()),
        variables: Some(r#"{"b": 3}"#.into()),
        overrides: Some(r#"{"config": {"http": {"timeout": 9}}}"#.into()),
        target: None,
    };
    let script = read_with(&text, &options).unwrap();
    assert_eq!((script.target().host.as_str(), script.timeout().as_secs()), ("127.0.0.1:82", 9));
    let options = Options { environment: Some("none".into()), ..Options::default() };
    let error = read_with(&text, &options).unwrap_err();
    assert_eq!(error, "s.yml: there is no environment 'none'; there are: big");
}

#[test]
fn payloads_are_read_from_files() {
    let folder = std::env::temp_dir().join(format!("tenfold-payload-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("users.csv"), "name;age\nann;30\n\nbob;x\n").unwrap();
    let config = "payload:
  - {path: users.csv, fields: [name, age], skipHeader: true, delimiter: ';', order: sequence}
  - {path: users.csv, fields: [n], delimiter: ';', loadAll: true, name: all, cast: false}";
    let script = text(config, "- get: {url: \"/{{ name }}/{{ age }}/{{ all[1].n }}\"}");
    let script = parse(&script, &folder.join("s.yml"), &Options::default());
    std::fs::remove_dir_all(&folder).unwrap();
    let script = script.unwrap();
    let crate::scenario::data_rows::DataRows { rows, .. } = &script.data_rows[0];
    assert_eq!(serde_json::to_string(rows).unwrap(), r#"[["ann",30],["bob","x"]]"#);
}

#[test]
fn rows_of_a_payload_that_are_not_equally_long_are_refused() {
    let folder = std::env::temp_dir().join(format!("tenfold-uneven-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = "payload: {path: users.csv, fields: [name, age], skipHeader: true}";
    let script = text(config, "- get: {url: \"/{{ name }}/{{ age }}\"}");
    for (rows, why) in [
        ("name\nann,30,x\n\nbob,31,y", None),
        ("name\n\"a\nnn\",30\n\nbob", Some("its line 5 is 1, and not 2")),
        ("name\nann,30\nSmith, John,31", Some("its line 3 is 3, and not 2")),
        ("name\nann\nbob", Some("its line 2 is 1, and not 2")),
    ] {
        std::fs::write(folder.join("users.csv"), rows).unwrap();
        let refused = parse(&script, &folder.join("s.yml"), &Options::default()).err();
        let refused = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains(why.unwrap_or_default()), "{refused}");
        assert_eq!(refused.is_empty(), why.is_none(), "{refused}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn variables_go_before_columns_and_those_of_the_command_line_before_all() {
    let folder = std::env::temp_dir().join(format!("tenfold-given-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("users.csv"), "ann,30\n").unwrap();
    let config = "payload: {path: users.csv, fields: [name, age]}
variables: {name: bob, list: [1, 2], kept: 5}
http: {timeout: \"{{ seconds }}\"}";
    let script = text(config, "- get: {url: \"/{{ name }}/{{ age }}/{{ list }}/{{ kept }}\"}");
    let variables = Some(r#"{"list": "one", "seconds": 7, "several": [1, 2]}"#.into());
    let options = Options { variables, ..Options::default() };
    let script = parse(&script, &folder.join("s.yml"), &options);
    std::fs::remove_dir_all(&folder).unwrap();
    let script = script.unwrap();
    assert_eq!(script.timeout().as_secs(), 7);
    let choices: Vec<String> = script.choices.iter().map(|c| format!("{:?}", c.1)).collect();
    let name = r#"[String("bob")]"#;
    assert_eq!(choices, [name, "[Number(1), Number(2)]"], "nothing is left of the script's list");
    let known: Vec<_> = (0..7).filter_map(|v| script.scope.variable(v)).collect();
    assert_eq!(known, [&Value::from("one"), &Value::from(7), &Value::from(5)]);
}

#[test]
fn unsendable_headers_and_cookies_are_refused_everywhere() {
    for (fields, why) in [
        ("headers: {'a b': x}", "the header 'a b' has no name that can be sent"),
        ("headers: {Content-Length: 5}", "the header 'content-length' cannot be set"),
        ("cookie: {'a;b': x}", "the cookie 'a;b' has no name that can be sent"),
    ] {
        let defaults = read(&format!("http: {{defaults: {{{fields}}}}}"), STEP).unwrap_err();
        let own = read("", &format!("- get: {{url: /, {fields}}}")).unwrap_err();
        assert!(defaults.contains(why) && own.contains(why), "{defaults}\n{own}");
    }
}

#[test]
fn unsupported_features_are_refused_with_file_and_line() {
    // The config begins at line 3, the steps 2 lines after its end.
    for (config, steps, error) in [
        (
            "processor: ./f.js",
            STEP,
            "s.yml:3: 'processor' is JavaScript, which is not run here; use captures, templates and expect instead",
        ),
        (
            "engines: {ws: {}}",
            STEP,
            "s.yml:3: 'engines' belongs to an engine other than http; only http is spoken",
        ),
        (
            "plugins: {slack: {}}",
            STEP,
            "s.yml:3: the plugin 'slack' is not supported; there are ensure, expect, apdex and metrics-by-endpoint",
        ),
        ("phasess: []", STEP, "s.yml:3: 'phasess' is not known in config; did you mean 'phases'?"),
        (
            "",
            "- function: f",
            "s.yml:5: 'function' runs JavaScript, which is not run here; use captures, templates and expect instead",
        ),
        (
            "",
            "- get:\n    url: /\n    beforeRequest: f",
            "s.yml:7: 'beforeRequest' runs JavaScript, which is not run here; use captures, templates and expect instead",
        ),
        (
            "",
            "- loop: []\n  whileTrue: f",
            "s.yml:6: 'whileTrue' runs JavaScript, which is not run here; use captures, templates and expect instead",
        ),
        (
            "",
            "- get: {url: /, capture: {xpath: //a, as: x}}",
            "s.yml:5: 'xpath' needs an XML or HTML document, which is not supported; use json, regexp or header",
        ),
        (
            "",
            "- emit: {channel: c}",
            "s.yml:5: 'emit' belongs to an engine other than http; only http is spoken",
        ),
        ("", "- get: {ulr: /}", "s.yml:5: the request has no url; add it"),
        ("", "- gett: {url: /}", "s.yml:5: there is no 'gett'; did you mean 'get'?"),
        (
            "phases: [{duration: 1, arrivalRate: -1}]",
            STEP,
            "s.yml:3: arrivalRate has to be a number from 0, not '-1'",
        ),
        (
            "",
            "- get: {url: /, heders: {}}",
            "s.yml:5: 'heders' is not known in a request; did you mean 'headers'?",
        ),
        (
            "",
            "- get: {url: \"/{{ nobody }}\"}",
            "s.yml:5: nothing sets the variable 'nobody'; name it in config.variables, a payload or a capture",
        ),
        (
            "",
            "- get: {url: \"/{{ $sum(1) }}\"}",
            "s.yml:5: '{{ $sum(1) }}' is a function that is not known; there are $randomNumber(a, b) and $randomString(n)",
        ),
        (
            "",
            "- get: {url: \"http://other.test/\"}",
            "s.yml:5: the url 'http://other.test/' is not on the target; begin it with '/', or run a script for each server",
        ),
        (
            "",
            "- get: {url: /, expect: {jmespath: a}}",
            "s.yml:5: the expectation 'jmespath' is not supported; there are statusCode, notStatusCode, contentType, hasProperty, notHasProperty, equals, hasHeader, headerEquals, matchesRegexp and cdnHit",
        ),
        (
            "phases: [{duration: soon, arrivalRate: 1}]",
            STEP,
            "s.yml:3: duration has to be a time like 60, '90s' or '5min', not 'soon'",
        ),
        (
            "phases: [{duration: 1, arrivalRate: 1, pause: 2}]",
            STEP,
            "s.yml:3: a phase has exactly one of arrivalRate, arrivalCount and pause",
        ),
        (
            "ensure: {conditions: [{expression: \"a <\"}]}",
            STEP,
            "s.yml:3: 'a <' is no condition: it ends too early; put names with blanks or hyphens in 'single quotes'",
        ),
        (
            "variables: {a: \"{{ $env.TENFOLD_SURELY_NOT_SET }}\"}",
            STEP,
            "s.yml:3: the environment variable TENFOLD_SURELY_NOT_SET is not set; set it",
        ),
    ] {
        assert_eq!(read(config, steps).unwrap_err(), error);
    }
}

#[test]
fn scripts_without_a_load_are_refused() {
    let refused = |text: &str| read_with(text, &Options::default()).unwrap_err();
    assert_eq!(
        refused("scenarios: []"),
        "s.yml: there is no config.target; add it, name an environment with -e, or give --target"
    );
    let target = "config: {target: \"http://127.0.0.1:81\"}\n";
    assert_eq!(refused(target), "s.yml: there are no scenarios; add scenarios with a flow");
    assert_eq!(
        refused(&format!("{target}scenarios:\n  - {{flow: []}}\n  - {{engine: ws, flow: []}}")),
        "s.yml:4: the engine 'ws' is not supported; only http is spoken"
    );
    let unusable = refused("config:\n  target: ftp://x\nscenarios: []");
    assert!(unusable.starts_with("s.yml:2: 'ftp://x' is not a usable URL: "), "{unusable}");
}

#[test]
fn a_json_script_is_a_script() {
    let text = r#"{
  "config": {"target": "http://127.0.0.1:81"},
  "scenarios": [{"flow": [{"get": {"url": "/", "weight": 1}}]}]
}"#;
    let error = read_with(text, &Options::default()).unwrap_err();
    assert_eq!(error, "s.yml:3: 'weight' is not known in a request; take it out");
    assert!(read_with(&text.replace(", \"weight\": 1", ""), &Options::default()).is_ok());
}

#[test]
fn aliases_bring_in_steps() {
    let text = "config: {target: \"http://127.0.0.1:81\"}
x-login: &login
  - post: {url: /login}
  - think: 1
scenarios:
  - flow:
      - *login
      - get: {url: /}";
    let script = read_with(text, &Options::default()).unwrap();
    assert_eq!(script.size(), (1, 2));
}

#[test]
fn json_paths_of_scripts_are_those_of_the_standard() {
    for path in ["$.a-b", "a.b", "$..a-b", "$[(@.length-1)].x", "$.a[?(@.b === 'c-d')].e", "$"] {
        let step = format!("- get: {{url: /, capture: {{json: \"{path}\", as: x}}}}");
        assert!(read("", &step).is_ok(), "{path}: {:?}", read("", &step));
    }
    assert!(read("", "- get: {url: /, capture: {json: $.a, as: x, multiple: false}}").is_ok());
    let other =
        read("", "- get: {url: /, capture: {header: a, as: x, multiple: false}}").unwrap_err();
    assert!(other.contains("'multiple' is not known in a capture"), "{other}");
    let error = read("", "- get: {url: /, capture: {json: \"$.a[\", as: x}}").unwrap_err();
    assert!(error.starts_with("s.yml:5: this is no JSONPath: "), "{error}");
}

/// Something of everything, so that edits of it reach every reader.
const RICH: &str = r#"config:
  target: http://127.0.0.1:81/base
  phases: [{duration: 60, arrivalRate: 5, rampTo: 9, name: "a b"}, {pause: 3s}]
  variables: {who: [ann, bob], n: 7}
  http: {timeout: 7, pool: 3, defaults: {headers: {x-a: "{{ n }}"}, cookie: {c: "1"}, think: {jitter: 5%}}}
  tls: {rejectUnauthorized: false}
  ensure: {thresholds: [{http.response_time.p95: 250}], conditions: [{expression: "a.b < 1 and not (c in (1, 2))", strict: false}], maxErrorRate: 1}
  plugins: {expect: {expectDefault200: true}, apdex: {threshold: 100}}
x-steps: &steps
  - get: {url: "/{{ who }}/{{ list[0]['a b'].c }}/{{ $randomNumber(1, 9) }}", qs: {a: [1, 2]}, ifTrue: "n > 5"}
before: {flow: [{post: {url: /, json: {a: ["{{ n }}", 1.5, null]}, capture: {json: "$..a-b[?(@.c === 'd')]", as: list}}}]}
scenarios:
  - name: all
    weight: 2
    flow:
      - *steps
      - loop: [{think: "{{ n }}"}, {log: "{{{ who }}}"}]
        count: 1-3
      - parallel: [{put: {url: /p, formData: {f: {value: x}}}}, {patch: {url: /q, form: {"{{ who }}": 1}}}]
      - delete: {url: /d, capture: [{regexp: "(a|b)+", group: 1, flags: i, as: r}, {header: etag, as: t}], match: {json: $.x, value: "{{ n }}"}, expect: [{statusCode: [200, 201]}, {headerEquals: [a, b]}]}
"#;

#[test]
fn fields_of_another_kind_of_phase_are_refused() {
    for (phase, wanted) in [
        ("{duration: 5, arrivalCount: 5, rampTo: 9}", "rampTo belongs to arrivalRate"),
        ("{pause: 5, rampTo: 9}", "rampTo belongs to arrivalRate"),
        ("{pause: 5, duration: 9}", "a pause has no duration"),
        ("{duration: 5, arrivalRate: 5, maxVusers: 0}", "maxVusers has to be at least 1"),
    ] {
        let refused = read(&format!("phases: [{phase}]"), STEP).map(drop).unwrap_err();
        assert!(refused.starts_with("s.yml:3: ") && refused.contains(wanted), "{refused}");
    }
}

#[test]
fn keys_on_a_wrong_level_are_sent_to_their_place() {
    let step = "- loop: {count: 3, over: items}";
    let refused = read("", step).map(drop).unwrap_err();
    assert_eq!(
        refused,
        "s.yml:5: 'count' stands beside loop, not in it; loop itself is a list of steps"
    );
    let top = "environments: {a: {}}\nconfig: {target: \"http://127.0.0.1:81\"}\n";
    let refused = read_with(top, &Options::default()).unwrap_err();
    assert_eq!(refused, "s.yml:1: 'environments' belongs to config; put it under that");
}

const SENT_TO: &str = "http://127.0.0.1:82";

fn sent(config: &str, steps: &str) -> Result<Script, String> {
    read_sent(&text(config, steps), SENT_TO).map_err(|error| error.to_string())
}

#[test]
fn a_sent_script_goes_to_the_given_target() {
    let script = sent("", "- get: {url: '{{ target }}/a'}").unwrap();
    assert_eq!(script.target().host, "127.0.0.1:82");
    let refused = sent("", "- get: {url: 'http://127.0.0.1:81/'}").map(drop).unwrap_err();
    assert!(refused.starts_with("line 5: ") && refused.contains("not on the target"), "{refused}");
}

#[test]
fn a_sent_script_reads_nothing_of_this_machine_and_writes_to_no_terminal() {
    for (config, steps, wanted) in [
        (
            "payload: {path: /etc/passwd, fields: [user]}",
            STEP,
            "line 3: a script that is sent reads",
        ),
        ("payload: [{path: '../a', fields: [a]}]", STEP, "write the values as lists"),
        (
            "",
            "- post: {url: /, formData: {a: {fromFile: /etc/passwd}}}",
            "write the content as value",
        ),
        (
            "",
            "- get: {url: '/{{ $env.HOME }}'}",
            "line 5: a script that is sent reads no environment",
        ),
        ("", "- get: {url: '/{{ $processEnvironment.HOME }}'}", "no environment variables"),
        ("variables: {home: '{{ $env.HOME }}'}", STEP, "no environment variables"),
        ("", "- post: {url: /, json: {a: '{{ $env.HOME }}'}}", "no environment variables"),
        ("", "- post: {url: /, json: {'{{ $env.HOME }}': 1}}", "no environment variables"),
        ("", "- get: {url: /, headers: {a: '{{ $env.HOME }}'}}", "no environment variables"),
        ("", "- {loop: [{get: {url: /}}], over: $env.HOME}", "nothing sets the variable '$env'"),
        ("", "- get: {url: /, ifTrue: '$env.HOME'}", "line 5: "),
        ("", "- get: {url: '/{{ $dirname }}'}", "nothing sets the variable '$dirname'"),
        ("", "- get: {url: '/{{ $scenarioFile }}'}", "nothing sets the variable"),
        ("", "- log: hello", "line 5: a script that is sent writes to no terminal; take log out"),
        ("processor: ./a.js", STEP, "'processor' is JavaScript"),
    ] {
        let refused = sent(config, steps).map(drop).unwrap_err();
        assert!(refused.contains(wanted), "{config} {steps}: {refused}");
    }
}

#[test]
fn a_script_that_nests_too_deeply_is_refused() {
    for deep in ["- ".repeat(16_000), format!("a: {}", "[".repeat(250))] {
        let refused = read_sent(&deep, SENT_TO).map(drop).unwrap_err().to_string();
        assert!(refused.contains("nested too deeply; flatten them"), "{refused}");
    }
    // The reader of YAML has a limit of its own.
    assert!(read_sent(&"[".repeat(16_000), SENT_TO).is_err());
}

proptest::proptest! {
    /// A script is read or refused in a sentence, whatever is in it.
    #[test]
    fn no_script_is_too_broken_to_be_refused(
        at in 0..RICH.len(),
        length in 0..40_usize,
        new in "[-{}\\[\\]:,.'\"$(*&<#|% \n0-9a-zé]{0,6}",
    ) {
        proptest::prop_assume!(RICH.is_char_boundary(at));
        let end = (at + length).min(RICH.len());
        let edited = format!("{}{new}{}", &RICH[..at], &RICH[end..]);
        if let Err(refusal) = read_with(&edited, &Options::default()) {
            proptest::prop_assert!(refusal.starts_with("s.yml:"), "{refusal}");
        }
    }
}

#[test]
fn a_rich_script_is_read() {
    let script = read_with(RICH, &Options::default()).unwrap();
    assert_eq!((script.size(), script.goals.len()), ((1, 5), 3));
}
