//! What goes wrong ends in one sentence with a remedy, the right exit code, and nothing left running.

use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output};

use crate::harness::{Home, cannot_run, processes, said, shared};

/// Runs and checks the exit code and that the last words are one message containing `words`.
fn refused(arguments: &str, code: i32, words: &[&str]) -> Output {
    let _machine = shared();
    let output = Home::new().run(arguments);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    output
}

#[test]
fn a_goal_without_a_number_is_refused() {
    refused("plan --users 3 --p95 -- true", 2, &["--p95 <TIME>"]);
    refused("plan --users 3 --p95 fast -- true", 2, &["`fast` is not a time", "200ms"]);
    refused("plan --users 3 --p95 200 -- true", 2, &["`200` is not a time"]);
    refused("plan --think 1s -- true", 2, &["--think belongs to --users"]);
}

#[test]
fn more_instances_than_ports_are_refused() {
    for command in [
        "plan --users 3 --max-instances 3",
        "cost --cpus 0.5 --memory 20MB --instances 1,3",
        "up -n 3",
    ] {
        refused(
            &format!("{command} --ports 4201-4202 -- true"),
            2,
            &["3 instances need as many ports, and there are 2: widen --ports", "run 2 at most"],
        );
    }
}

#[test]
fn a_sweep_without_a_maximum_is_refused() {
    refused("plan --counts 1,2 -- true", 2, &["a sweep measures a workload", "--rate"]);
    refused("plan --prices aws:us-east-1 -- true", 2, &["that a workload needs", "--rate"]);
    refused("plan --users 3 --sweep -- true", 2, &["say up to which, with --max-instances"]);
    refused("plan --users 3 --sweep 5s -- true", 2, &["after =, as in --sweep=5s"]);
    refused(
        "plan --users 3 --counts 30,1 --max-instances 10 -- true",
        2,
        &["--counts asks for 30 instances", "raise it to 30"],
    );
    let home = Home::new();
    let text =
        "app = { command = [\"true\"] }\nplan = { max_instances = 2 }\nworkload = { users = 1 }";
    std::fs::write(home.path().join("tenfold.toml"), text).unwrap();
    let output = home.run("plan --quiet --sweep=1s");
    assert!(said(&output).contains("before it was ready"), "the file says: {}", said(&output));
}

#[test]
fn a_flag_of_another_name_suggests_the_right_one() {
    for (arguments, remedy, other) in [
        ("plan --rps 5 -- true", "Requests a second are --rate R here", "--cpus"),
        ("load --rps 5 http://127.0.0.1:9/", "Requests a second are --rate R here", "--cpus"),
        ("up --port 80 -- true", "is --listen ADDRESS here", "'--ports'"),
        ("plan --users 1 --port 80 -- true", "pass {port} in the app's command", "'--ports'"),
        ("up --daemon -- true", "let systemd run it", "--admin"),
        ("load -u 50 --ramp 5s http://127.0.0.1:9/", "divide 50 by its seconds", "'--ramp-to'"),
    ] {
        let text = said(&refused(arguments, 2, &[remedy]));
        assert!(!text.contains(other), "{text}");
    }
}

#[test]
fn shell_syntax_in_a_command_suggests_sh_c() {
    for command in ["plan --users 3", "cost --cpus 0.5 --memory 20MB --instances 1", "up"] {
        let words = &["sh -c 'cd x && node app.js'", "--dir x -- node app.js"];
        refused(&format!("{command} -- cd x && node app.js"), 2, words);
        refused(&format!("{command} --dir nowhere -- true"), 2, &["`nowhere` is not a directory"]);
    }
    let home = Home::new();
    let file = home.path().join("tenfold.toml");
    for (text, words) in [
        ("dir = \"nowhere\"\ncommand = [\"true\"]", "tenfold.toml:2: `nowhere` is not a directory"),
        ("command = [\"cd\", \"x\"]", "tenfold.toml:2: `cd` is for a shell"),
    ] {
        std::fs::write(&file, format!("[app]\n{text}")).unwrap();
        let output = home.run("up --check");
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn an_app_runs_in_its_directory() {
    let _machine = shared();
    let home = Home::new();
    std::fs::create_dir(home.path().join("shop")).unwrap();
    let text = "[app]\ndir = \"shop\"\ncommand = [\"sh\", \"-c\", \"pwd; exit 3\"]";
    std::fs::write(home.path().join("tenfold.toml"), text).unwrap();
    for arguments in ["plan --users 1", "plan --users 1 --dir shop -- pwd"] {
        let text = said(&home.run(arguments));
        assert!(text.lines().any(|line| line.ends_with("/shop")), "{text}");
    }
}

#[test]
fn an_unquoted_policy_of_two_words_is_refused() {
    refused(
        "balance --to 127.0.0.1:9 --policy random two",
        2,
        &["one argument: write it in quotes"],
    );
}

#[test]
fn a_duration_that_is_too_long_is_refused() {
    refused("up --drain 1e19 -- true", 2, &["`1e19` is more than a year"]);
}

#[test]
fn a_rate_of_zero_is_refused() {
    refused("plan --rate 0 -- true", 2, &["a rate of 0 sends nothing"]);
    refused("plan --users 0 -- true", 2, &["write a whole number from 1"]);
}

#[test]
fn a_negative_number_is_refused() {
    for arguments in ["plan --think -1 -- true", "load http://127.0.0.1:9/ -u -3"] {
        let text = said(&refused(arguments, 2, &["no option takes a number below 0"]));
        assert!(!text.contains("use '-- "), "{text}");
    }
    let text = said(&refused("plan --url http://a/ -- true", 2, &["unexpected argument '--url'"]));
    assert!(!text.contains("use '-- "), "{text}");
}

#[test]
fn an_invalid_value_in_the_environment_is_named() {
    for (arguments, name) in [
        ("load http://127.0.0.1:9/", "TENFOLD_P95"),
        ("plan --rate 5 -- true --p95", "TENFOLD_P95"),
        ("up -- true", "TENFOLD_QUEUE_WAIT"),
    ] {
        let output = Home::new().tenfold(arguments).env(name, "fast").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(&format!("correct {name} there")), "{}", said(&output));
    }
    let flag = Home::new()
        .tenfold("load --p95=slow http://127.0.0.1:9/")
        .env("TENFOLD_P95", "slow")
        .output();
    assert!(!said(&flag.unwrap()).contains("environment"));
    for (name, other) in
        [("TENFOLD_TLS_CERT", "TENFOLD_TLS_KEY"), ("TENFOLD_TLS_KEY", "TENFOLD_TLS_CERT")]
    {
        let balance = "balance --to 127.0.0.1:9";
        let output = Home::new().tenfold(balance).env(name, "a.pem").output().unwrap();
        let words = format!("{name} stands in the environment: set {other} there too");
        assert!(said(&output).contains(&words), "{}", said(&output));
    }
}

#[test]
fn a_flag_of_another_load_tool_suggests_ours() {
    for (arguments, remedy) in [
        ("http://127.0.0.1:9/ -z 10s", "write --duration TIME here"),
        ("shop.yml -o report.json", "-o FILE is --json FILE here"),
        ("run shop.yml", "write tenfold load shop.yml"),
        ("-q 100 http://127.0.0.1:9/", "requests a second are --rate R"),
        ("shop.yml -t http://127.0.0.1:9/", "-t URL is --target URL here"),
        ("-n 5 -r http://127.0.0.1:9/", "ab's -r is not needed here"),
        ("-r -n 5 http://127.0.0.1:9/", "ab's -r is not needed here"),
        ("-e times.csv http://127.0.0.1:9/", "ab's -e FILE is --hgrm FILE here"),
        ("-v 4 http://127.0.0.1:9/", "ab's -v N is not needed here"),
    ] {
        refused(&format!("load {arguments}"), 2, &[remedy]);
    }
    let word = said(&refused("load -q http://127.0.0.1:9/a b", 2, &["unexpected argument 'b'"]));
    assert!(!word.contains("--rate"), "no number: {word}");
}

#[test]
fn control_characters_in_names_are_escaped() {
    let text = said(&refused("compare \u{1b}[2J last", 2, &["`\\u{1b}[2J` is neither a run"]));
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_number_that_is_too_large_is_refused() {
    refused("plan --users 18446744073709551615 -- true", 2, &["is too large"]);
    for arguments in ["load http://127.0.0.1:9/ --seed x", "up --queue-length=1.5 -- true"] {
        refused(arguments, 2, &["write a whole number from 0"]);
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_refused() {
    let home = Home::new();
    let mut command = home.tenfold("up");
    let output = command.arg(OsStr::from_bytes(b"\xff")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("stands after --"), "{}", said(&output));
}

#[test]
fn completions_on_a_full_disk_fail() {
    let home = Home::new();
    let mut command = home.tenfold("completions bash");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("a place with space"), "{}", said(&output));
}

#[test]
fn a_rate_above_the_maximum_is_refused() {
    refused("load http://127.0.0.1:9/ --rate 1e9", 2, &["1000000000 requests", "at most 1000000,"]);
}

#[test]
fn a_url_where_nothing_listens_is_an_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let remedy = "start the server, or correct the URL";
    refused(&format!("load http://{address}/ -d 1h"), 1, &[&address, remedy]);
    refused("load http://app/ --unix-socket nowhere -d 1h", 1, &["listens on nowhere"]);
}

#[test]
fn a_flag_that_would_do_nothing_is_refused() {
    let load = "load http://127.0.0.1:9/";
    for flag in ["--insecure", "--ca cert.pem", "--no-tls-resumption"] {
        refused(&format!("{load} {flag}"), 2, &["http:// is plain: write https://"]);
    }
    refused(&format!("{load} --latency"), 2, &["--format wrk"]);
    refused(&format!("load --exit-code-on-error {load}"), 2, &["--exit-code-on-error 1"]);
    refused(&format!("{load} -c 5 --max-connections 2"), 2, &["give fewer --users"]);
    refused(&format!("{load} --threads 2 -t 2 -d 1s"), 2, &["keep one of --threads and -t N"]);
}

#[test]
fn a_missing_command_is_refused() {
    refused("plan --users 3", 2, &["no app to run", "after --"]);
    let output = Home::new().tenfold("plan --users 3 --").arg("").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    refused("plan --users 3 node app.js", 2, &["stands after --"]);
    refused("balance 127.0.0.1:9", 2, &["stands after --to"]);
    refused("balance --to 127.0.0.1:8080", 2, &["leads back to 127.0.0.1:8080", "--listen"]);
    let load = refused("load http://127.0.0.1:9/ --rate -5", 2, &["-5"]);
    assert!(!said(&load).contains("stands after --"), "a load has no command: {}", said(&load));
}

#[test]
fn a_command_that_does_not_exist_is_an_error() {
    refused(
        "plan --quiet --users 3 -- no-such-program-anywhere",
        1,
        &["cannot run no-such-program-anywhere"],
    );
}

#[test]
fn a_command_that_exits_at_once_is_an_error() {
    let output = refused(
        "plan --quiet --users 3 -- python3 -c import(nothing)",
        1,
        &["before it was ready"],
    );
    assert!(said(&output).contains("SyntaxError"), "the app's own words: {}", said(&output));
}

#[test]
fn a_command_that_listens_on_another_port_is_an_error() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let app = format!("python3 -m http.server --bind 127.0.0.1 {port}");
    let arguments = format!("plan --quiet --users 3 --ready-timeout 6s -- {app}");
    refused(&arguments, 1, &[&port.to_string(), "{port}"]);
    assert!(processes(&format!("http.server --bind 127.0.0.1 {port}")).is_empty());
}

#[test]
fn a_command_that_never_becomes_ready_is_an_error() {
    let within = ["not ready within 1 s", "raise --ready-timeout"];
    refused("plan --quiet --users 3 --ready-timeout 1s -- sleep 4711", 1, &within);
    assert!(processes("sleep 4711").is_empty());
}

#[test]
fn a_budget_that_ends_before_readiness_names_the_option() {
    let within = ["not ready within 5 s", "raise --budget"];
    refused("plan --quiet --users 3 --budget 5s -- sleep 4716", 1, &within);
    assert!(processes("sleep 4716").is_empty());
}

#[test]
fn ports_in_use_are_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let arguments = format!("plan --quiet --users 3 --ports {port}-{port} -- sleep 4712");
    refused(&arguments, 1, &[&format!("port {port} is in use")]);
}

#[test]
fn a_budget_too_short_for_the_app_is_refused() {
    refused("plan --quiet --users 3 --budget 1s -- sleep 4713", 2, &["--budget 5s or more"]);
    let patient = "plan --quiet --users 3 --think 5m --budget 20s --";
    let app = env!("CARGO_BIN_EXE_tenfold");
    refused(&format!("{patient} {app} demo-app"), 2, &["and a user thinks for 300 s"]);
    let slow = "import http.server as h,os,time
class H(h.BaseHTTPRequestHandler):
 def do_GET(s):time.sleep(1.5);s.send_response(200);s.end_headers()
 def log_message(s,*a):pass
h.HTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()";
    let home = Home::new();
    let app = home.path().join("slow.py").display().to_string();
    std::fs::write(&app, slow).unwrap();
    let _machine = shared();
    let output = home.run(&format!("plan --quiet --users 3 --budget 12s -- python3 {app}"));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("is too short: a request takes 1.5"), "{}", said(&output));
    assert!(processes(&app).is_empty());
}

#[test]
fn a_path_that_fails_gives_no_recommendation() {
    let app = "python3 -m http.server --bind 127.0.0.1 {port}";
    let output =
        refused(&format!("plan --quiet --users 3 --path /nothing -- {app}"), 1, &["status 404"]);
    assert!(said(&output).contains("--path"), "{}", said(&output));
}

#[test]
fn a_request_that_cannot_be_sent_is_refused() {
    refused("plan --users 3 -d @nowhere -- true", 2, &["body nowhere cannot be read"]);
    refused("plan --users 3 --path nothing -- true", 2, &["start it with '/'"]);
    refused("plan --users 3 -X G@T -- true", 2, &["G@T"]);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_first() {
    refused(
        "plan --users 3 --json /nonexistent/plan.json -- true",
        2,
        &["cannot write /nonexistent/plan.json"],
    );
}

#[test]
fn a_missing_configuration_file_is_an_error() {
    refused("plan --config nowhere.toml", 2, &["cannot read nowhere.toml", "--config"]);
}

#[test]
fn a_mistake_in_the_configuration_is_located() {
    let home = Home::new();
    std::fs::write(
        home.path().join("tenfold.toml"),
        "[app]\ncommand = [\"true\"]\n[goal]\np96 = \"1s\"\n",
    )
    .unwrap();
    let output = home.run("plan");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("tenfold.toml:4: unknown field `p96`"), "{}", said(&output));
}

#[test]
fn a_file_without_an_end_is_refused() {
    let endless = "it is no regular file, and gives more than 16 MiB";
    let load = "load http://127.0.0.1:9/";
    refused("plan --config /dev/zero -- true", 2, &[endless, "another file with --config"]);
    refused(&format!("{load} --body @/dev/zero"), 2, &[endless, "@ and a file"]);
    refused(&format!("{load} --trace /dev/zero"), 2, &[endless, "a file of times and rates"]);
    refused("load https://127.0.0.1:9/ --ca /dev/zero", 2, &[endless, "a PEM file"]);
    for command in ["show /dev/zero", "compare /dev/zero /dev/zero"] {
        refused(command, 1, &[endless, "name a file that you may read"]);
    }
    let pair = "--tls-cert /dev/zero --tls-key /dev/zero";
    refused(&format!("balance --to 127.0.0.1:9 {pair}"), 2, &["/dev/zero (it is a device)"]);
}

#[test]
fn a_script_without_an_end_is_refused() {
    let home = Home::new();
    let steps = "scenarios: [{flow: [{get: {url: /}}]}]";
    let form = "{fromFile: /dev/zero}";
    for (name, text) in [
        ("payload.yml", format!("config: {{payload: {{path: /dev/zero, fields: [a]}}}}\n{steps}")),
        (
            "form.yml",
            format!("scenarios: [{{flow: [{{post: {{url: /, formData: {{f: {form}}}}}}}]}}]"),
        ),
    ] {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("/dev/zero", home.path().join("script.yml")).unwrap();
    for name in ["payload.yml", "form.yml", "script.yml"] {
        let output = home.run(&format!("load {name} --target http://127.0.0.1:9/"));
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains("more than 16 MiB"), "{name}: {}", said(&output));
    }
}

/// At each limit: another thread is the one too many.
#[test]
fn too_few_threads_are_an_error_not_a_panic() {
    let _machine = shared();
    let home = Home::new();
    let up = home.tenfold("up --listen 127.0.0.1:0 -- false");
    for limit in 1..=16 {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nproc={limit}"));
        if rustix::process::geteuid().is_root() {
            // The limit is not for root, and counts all that a user runs: this one runs nothing else.
            let user = 1_800_000_000 + std::process::id();
            std::os::unix::fs::chown(home.path(), Some(user), Some(user)).unwrap();
            command.args(["setpriv", "--clear-groups"]);
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
        }
        command.arg(up.get_program()).args(up.get_args()).current_dir(home.path());
        let output = command.env("TENFOLD_STATE_DIR", home.path()).output().unwrap();
        let said = said(&output);
        if matches!(output.status.code(), Some(126 | 127)) {
            return cannot_run(&format!("another user may not run it: {said}"));
        }
        assert_eq!(output.status.code(), Some(1), "with {limit}: {said}");
        assert!(
            said.starts_with("tenfold: ") && !said.contains("panicked"),
            "with {limit}: {said}"
        );
    }
}
