//! What is refused, where, and with what remedy; and what wins over what.

use std::path::Path;
use std::time::Duration;

use balancer::{Cleartext, Destination, LogFormat, Policy, Reuse, Role, ServerErrors, Switch};

use super::*;

fn up(text: &str, arguments: &BalancingArguments) -> anyhow::Result<Balancing> {
    let app = AppArguments::default();
    let wanted = Wanted::Up {
        app: &app,
        limits: LimitArguments::default(),
        instances: None,
        slots: None,
        balancer: None,
        keep: false,
        logs: Path::new("logs"),
    };
    Balancing::resolve(&File::parse(text, "t.toml")?, arguments, &wanted)
}

fn balance(text: &str) -> anyhow::Result<Balancing> {
    let wanted = Wanted::Balance { to: &[], slots: None, cpus: None };
    Balancing::resolve(&File::parse(text, "t.toml")?, &BalancingArguments::default(), &wanted)
}

const TWO: &str = r#"
[balancer]
listeners = ["127.0.0.1:8081", { address = "[::1]:80", redirect = "https", status = 301 }]
threads = 2
[balancer.timeouts]
response = "5m"
[balancer.limits]
header_bytes = "8KiB"
[balancer.forwarding]
trusted = ["10.0.0.0/8", "unix"]
x_forwarded = "all"
request_id = true
[apps.site]
backends = [
    "127.0.0.1:3000",
    { address = "unix:/run/b.sock", name = "b", slots = 2, weight = 3, backup = true },
]
policy = "hash cookie sid"
slots = "auto"
slow_start = "30s"
max_connections = 50
retries = { percent = 5 }
[apps.api]
command = ["./api"]
instances = 3
ready_path = "/health"
queue = { length = 5, wait = "2s" }
[[routes]]
app = "site"
[[routes]]
host = "*.example.com"
path = "/api/"
app = "api"
strip_prefix = true
[[routes]]
host = "old.example.com"
redirect = "https://new.example.com{path}"
"#;

#[test]
fn every_setting_is_read() {
    let Balancing { config, apps, .. } = up(TWO, &BalancingArguments::default()).unwrap();
    assert_eq!((config.listeners.len(), config.threads), (2, 2));
    assert_eq!(config.timeouts.response, Duration::from_secs(300));
    assert_eq!(config.limits.header_bytes, 8192);
    // By name.
    assert_eq!((config.apps[0].name.as_str(), config.apps[0].queue.length), ("api", 5));
    assert_eq!(config.apps[1].policy.to_string(), "hash cookie sid");
    assert_eq!((config.apps[1].retries.percent, config.apps[1].retries.per_second), (5, 10));
    assert_eq!((config.forwarding.trusted.len(), config.forwarding.request_id), (2, Switch::On));
    let Members::Servers { servers, backend } = &apps[1].members else { panic!("{apps:?}") };
    assert_eq!((backend.slots, backend.slow_start.as_secs()), (Slots::Auto, 30));
    let slots: Vec<_> = servers.iter().map(|s| (s.name.as_str(), s.slots)).collect();
    assert_eq!(slots, [("127.0.0.1:3000", Slots::Auto), ("b", Slots::Fixed(2))]);
    assert_eq!((servers[1].weight, servers[1].role), (3, Role::Backup));
    assert_eq!((servers[1].max_connections, servers[1].slow_start.as_secs()), (Some(50), 30));
    let Members::Instances { runnable, count: Some(3), slots: None, .. } = &apps[0].members else {
        panic!("{apps:?}")
    };
    assert_eq!((runnable.app.name.as_str(), runnable.source.words().len()), ("api", 1));
    let to_site =
        matches!(config.routes[0].to, Destination::App { app, .. } if app == AppId::nth(1));
    assert!(to_site && config.routes[1].path.to_string() == "/api", "{:?}", config.routes);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let arguments = BalancingArguments {
        listen: Some("127.0.0.1:9".parse().unwrap()),
        policy: Some(Policy::RoundRobin),
        queue_length: Some(7),
        ..BalancingArguments::default()
    };
    let config = up(TWO, &arguments).unwrap().config;
    assert_eq!(config.listeners.len(), 1);
    for app in &config.apps {
        assert_eq!((&app.policy, app.queue.length), (&Policy::RoundRobin, 7));
    }
    assert_eq!(config.apps[0].queue.wait, Duration::from_secs(2), "what it leaves open stays");
    let nothing = up("[app]\ncommand = [\"a\"]", &BalancingArguments::default()).unwrap();
    assert_eq!(nothing.config.listeners[0].address.to_string(), "127.0.0.1:8080");
    assert_eq!(nothing.config.apps[0].name, "app");
}

#[test]
fn mistakes_are_refused_with_line_and_remedy() {
    let site = "[apps.a]\nbackends = [\"127.0.0.1:2\"]\n";
    for (text, said) in [
        ("[balancr]", "t.toml:1: unknown field `balancr`; did you mean `balancer`?"),
        ("[balancer]\nthread = 2", "t.toml:2: unknown field `thread`; did you mean `threads`?"),
        ("[balancer]\nzzz = 2", "t.toml:2: unknown field `zzz`; there are listeners, program,"),
        ("[apps.a]\npolicy = \"quue\"", "t.toml:2: policy \"quue\" is not known; use queue,"),
        ("[apps.a]\nbackends = [\n\"h\"]", "t.toml:3: `h` is not an address: write HOST:PORT"),
        (
            "[apps.a]\nbackends = [\n{ address = \"127.0.0.1:1\",\nslot = 1 }]",
            "t.toml:4: unknown field `slot`; did you mean `slots`?",
        ),
        (
            "[apps.a]\nbackends = [\"127.0.0.1:1\",\n\"127.0.0.1:1\"]",
            "t.toml:3: 127.0.0.1:1 is there twice",
        ),
        (
            "[apps.a]\nslots = 0",
            "t.toml:2: `0` is not a number of slots: write a whole number from 1",
        ),
        ("[apps.a]\nslots = \"many\"", "t.toml:2: `many` is not a number of slots: write a whole"),
        (
            "[apps.a]\ncommand = [\"x\"]",
            "t.toml:2: `tenfold balance` starts nothing: use `tenfold up`",
        ),
        (
            "[apps.a]\npolicy = \"queue\"",
            "t.toml:1: there is nothing to send requests to: write backends",
        ),
        ("[app]\n[apps.a]", "t.toml:1: there are both [app] and [apps]"),
        ("[apps.\"a b\"]", "t.toml:1: \"a b\" is no name of an app"),
        (
            "[apps.a]\nbackends = [{ address = \"127.0.0.1:1\", weight = 0 }]",
            "t.toml:2: a weight of 0 is",
        ),
        (
            "[balancer.forwarding]\ntrusted = [\n\"me\"]",
            "t.toml:3: \"me\" is not a network; write an",
        ),
        (
            "[balancer.forwarding]\nx_forwarded = \"som\"",
            "t.toml:2: unknown variant `som`; there are off",
        ),
        (
            "[balancer.timeouts]\nidle = true",
            "t.toml:2: invalid type: boolean `true`, expected a time",
        ),
        ("[balancer.timeouts]\nidle = \"0s\"", "t.toml:2: `0s` must be greater than 0"),
        (
            "[balancer.timeouts]\nidle = \"48h\"",
            "t.toml:2: `48h` is more than a day: write at most",
        ),
        ("[balancer.limits]\nbody_bytes = \"1XB\"", "t.toml:2: `1XB` is not a size"),
        (
            "[balancer]\nlisteners = [\"127.0.0.1:1\", \"127.0.0.1:1\"]\n[app]\nbackends = [\"127.0.0.1:2\"]",
            "t.toml:2: 127.0.0.1:1 is there twice",
        ),
        (
            "[app]\nbackends = [\n\"127.0.0.1:0\"]",
            "t.toml:3: 127.0.0.1:0 has no port: write the one",
        ),
        (
            "[app]\nbackends = [\n\"127.0.0.1:1\",\n\"127.0.0.1:8080\"]",
            "t.toml:4: 127.0.0.1:8080 leads back to 127.0.0.1:8080, where clients connect: write",
        ),
        (
            "[balancer]\nlisteners = [\"[::1]:80\", \"0.0.0.0:80\"]\n[app]\nbackends = [\"127.0.0.2:80\"]",
            "t.toml:4: 127.0.0.2:80 leads back to 0.0.0.0:80",
        ),
        ("[app", "t.toml:1: "),
    ] {
        let message = balance(text).unwrap_err().to_string();
        assert!(message.starts_with(said), "{text}\n{message}\n{said}");
    }
    for (routes, said) in [
        ("[[routes]]\napp = \"b\"", "t.toml:4: there is no app b: write one of a, or add [apps.b]"),
        ("[[routes]]\nhost = \"a.b/c\"", "t.toml:4: host \"a.b/c\" is not a host pattern; use"),
        ("[[routes]]\npath = \"a\"", "t.toml:4: path \"a\" is not a path prefix; begin it with /"),
        ("[[routes]]\npath = \"/a/*\"", "t.toml:4: path \"/a/*\" has a star,"),
        ("[[routes]]\nredirect = \"b\"", "t.toml:4: redirect location \"b\" is neither"),
        ("[[routes]]\nredirect = \"/b\"\nstatus = 200", "t.toml:5: 200 is not a redirect status"),
        ("[[routes]]\napp = \"a\"\nstatus = 301", "t.toml:5: status belongs to a redirect"),
        (
            "[[routes]]\napp = \"a\"\nredirect = \"/b\"",
            "t.toml:5: a route leads to an app or redirects",
        ),
        ("[[routes]]\nhost = \"b\"", "t.toml:3: the route leads nowhere"),
        ("[[routes]]\nredirect = \"/b\"", "t.toml:1: no route leads to app a"),
        (
            "[[routes]]\npath = \"/b\"\nredirect = \"https\"\n[balancer]\nlisteners = [{ address = \"127.0.0.1:1\", tls = {} }]",
            "t.toml:5: nobody would serve what this sends to https",
        ),
        (
            "[[routes]]\napp = \"a\"\n[[routes]]\npath = \"/b\"\nredirect = \"/b/c\"",
            "t.toml:7: the redirect leads back to itself",
        ),
        (
            "[[routes]]\napp = \"a\"\n[balancer]\nlisteners = [{ address = \"127.0.0.1:1\", redirect = \"/b\" }]",
            "t.toml:6: the redirect leads back to itself",
        ),
        (
            "[[routes]]\napp = \"a\"\nhost = \"B.c\"\n[[routes]]\nhost = \"b.C\"\npath = \"/\"\napp = \"a\"",
            "t.toml:6: there is a route for host b.c and path / already",
        ),
    ] {
        let message = balance(&format!("{site}{routes}")).unwrap_err().to_string();
        assert!(message.starts_with(said), "{routes}\n{message}\n{said}");
    }
}

#[test]
fn impossible_settings_are_found_before_the_start() {
    let none = BalancingArguments::default();
    let ports = "[app]\ncommand = [\"a\"]\ninstances = 3\nports = \"4201-4202\"";
    let message = up(ports, &none).unwrap_err().to_string();
    assert!(
        message.starts_with("t.toml:4: 3 instances need as many ports, and there are 2: "),
        "{message}"
    );

    let backends = "[app]\nbackends = [\"127.0.0.1:1\"]\n";
    let log = format!("{backends}[balancer]\naccess_log = \"/nonexistent/a.log\"");
    let message = balance(&log).unwrap_err().to_string();
    assert!(
        message.starts_with("t.toml:4: there is no directory /nonexistent for the"),
        "{message}"
    );
    for (log, told) in
        [("/", "/ is a directory: name a file in it"), ("", "has no name: name a file")]
    {
        let arguments = BalancingArguments { log: Some(log.to_owned()), ..none.clone() };
        let message = up(backends, &arguments).unwrap_err().to_string();
        assert!(message.contains(told), "{message}");
    }

    let to = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"]
        .map(|to| (to.to_owned(), Address::Tcp(to.parse().unwrap())));
    let wanted = Wanted::Balance { to: &to, slots: None, cpus: None };
    let twice = Balancing::resolve(&File::default(), &BalancingArguments::default(), &wanted);
    let message = twice.unwrap_err().to_string();
    assert!(message.starts_with("127.0.0.1:1 is there twice: remove one"), "{message}");
}

#[test]
fn slots_that_nobody_gives_are_searched_for() {
    let balancing = balance("[app]\nbackends = [\"127.0.0.1:1\"]").unwrap();
    let Members::Servers { servers, backend } = &balancing.apps[0].members else { panic!() };
    assert_eq!([servers[0].slots, backend.slots], [Slots::Auto; 2]);
}

/// Errors that only the balancer finds name the line, too.
#[test]
fn the_key_at_fault_is_named() {
    let text =
        "[app]\nbackends = [\"127.0.0.1:1\"]\n[balancer.limits]\nheaders = 10\nheader_bytes = 10";
    let message = balance(text).unwrap_err().to_string();
    assert!(message.starts_with("t.toml:5: a header limit of 10 bytes is impossible"), "{message}");
    let message =
        balance("[app]\nbackends = [\"127.0.0.1:1\"]\nattempts = 9").unwrap_err().to_string();
    assert!(message.starts_with("t.toml:3: app app: 9 attempts are impossible"), "{message}");
    let threads = BalancingArguments { threads: Some(9999), ..BalancingArguments::default() };
    let message = up("[app]\ncommand = [\"a\"]", &threads).unwrap_err().to_string();
    assert!(message.starts_with("t.toml: 9999 threads are impossible"), "{message}");
}

#[test]
fn check_warns_of_expired_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(directory.path().join("a.key"), key.serialize_pem()).unwrap();
    let warnings = |year: i32| {
        let mut params = rcgen::CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 12, 31);
        let made = params.self_signed(&key).unwrap().pem();
        std::fs::write(directory.path().join("a.pem"), made).unwrap();
        let tls = "tls = { certificates = [{ chain = \"a.pem\", key = \"a.key\" }] }";
        let listener = |port: u16| format!("{{ address = \"127.0.0.1:{port}\", {tls} }}");
        let text = format!(
            "[app]\nbackends = [\"127.0.0.1:1\"]\n[balancer]\nlisteners = [{}, {}]",
            listener(2),
            listener(3)
        );
        let mut file = File::parse(&text, "t.toml").unwrap();
        file.directory = Some(directory.path().to_owned());
        let wanted = Wanted::Balance { to: &[], slots: None, cpus: None };
        let balancing = Balancing::resolve(&file, &BalancingArguments::default(), &wanted);
        balancing.unwrap().warnings
    };
    assert_eq!(warnings(3000), Vec::<String>::new());
    let ended = warnings(2020);
    assert_eq!(ended.len(), 1, "one for both listeners: {ended:?}");
    assert!(ended[0].contains("a.pem has ended on 2020-12-31"), "{ended:?}");
}

/// Every example of the guide and of the README is a valid file.
#[test]
fn examples_in_the_guides_are_valid() {
    let guides =
        [include_str!("../../../../../docs/balancer.md"), include_str!("../../../../../README.md")];
    let directory = tempfile::tempdir().unwrap();
    let certs = directory.path().join("certs");
    std::fs::create_dir(&certs).unwrap();
    let names =
        [("example", "DNS:example.com"), ("other", "DNS:other.example,DNS:*.other.example")];
    for (name, hosts) in names {
        let made = std::process::Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-nodes",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ])
            .args(["-subj", "/CN=example.com", "-addext", &format!("subjectAltName={hosts}")])
            .arg("-keyout")
            .arg(certs.join(format!("{name}.key")))
            .arg("-out")
            .arg(certs.join(format!("{name}.pem")))
            .output()
            .expect("openssl runs; `make deps` installs it");
        assert!(made.status.success(), "{made:?}");
    }
    let blocks = guides.iter().flat_map(|guide| guide.split("```toml\n").skip(1));
    let blocks: Vec<&str> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() > 12);
    for block in blocks {
        let mut file = File::parse(block, "guide.md").unwrap_or_else(|e| panic!("{e}\n{block}"));
        file.directory = Some(directory.path().to_owned());
        let app = AppArguments::default();
        let wanted = Wanted::Up {
            app: &app,
            limits: LimitArguments::default(),
            instances: None,
            slots: None,
            balancer: None,
            keep: false,
            logs: Path::new("logs"),
        };
        let right = Balancing::resolve(&file, &BalancingArguments::default(), &wanted);
        right.unwrap_or_else(|e| panic!("{e}\n{block}"));
    }
}

#[test]
fn all_tables_are_read() {
    let text = r#"
        [balancer]
        listeners = [{ address = "127.0.0.1:1", proxy_protocol = ["10.0.0.0/8"], cleartext = "h2c" }]
        access_log = { to = "a.log", format = "json" }
        [balancer.limits]
        streams = 7
        [app]
        backends = ["127.0.0.1:2"]
        reuse = "safe"
        [app.health]
        path = "/health"
        status = "204"
        count_5xx = true
    "#;
    let config = balance(text).unwrap().config;
    assert_eq!((config.limits.streams, config.listeners[0].cleartext), (7, Cleartext::H2c));
    assert!(config.listeners[0].proxy_protocol.is_some());
    assert_eq!(config.access_log.unwrap().format, LogFormat::Json);
    assert_eq!(config.apps[0].reuse, Reuse::Safe);
    let health = &config.apps[0].health;
    assert_eq!(health.active.as_ref().unwrap().status, 204..=204);
    assert_eq!(health.passive.server_errors, ServerErrors::Counted);
}

#[test]
fn certificates_and_checks_are_refused_with_line_and_remedy() {
    let app = "[app]\nbackends = [\"127.0.0.1:2\"]\n";
    for (text, said) in [
        (
            "[balancer]\nlisteners = [{ address = \"127.0.0.1:1\", tls = { certificates = [\n{ chain = \"/none\",\nkey = \"/none\" }] } }]",
            "t.toml:5: cannot read /none (No such file",
        ),
        (
            "[balancer]\nlisteners = [{ address = \"127.0.0.1:1\", tls = { certificates = [\n{ chain = \"/dev/null\", key = \"/dev/null\" }] } }]",
            "t.toml:5: cannot read /dev/null (it is a device): name a file",
        ),
        ("[app.health]\nrise = 2", "t.toml:4: rise belongs to checks by asking: add path"),
        ("[app.health]\npath = \"/\"\nstatus = \"ok\"", "t.toml:5: `ok` is no status: write 200"),
        (
            "[app.health]\npath = \"health\"",
            "t.toml:4: app app: health path \"health\" is not a path",
        ),
        ("[balancer.acme]\nhosts = [\"a.example\"]\nstore = \"acme\"", "t.toml:"),
    ] {
        let message = balance(&format!("{app}{text}")).unwrap_err().to_string();
        assert!(message.starts_with(said), "{text}\n{message}\n{said}");
    }
}
