//! Several apps behind one address, and redirects.

use balancer::{
    AppConfig, AppId, Backend, Config, Destination, Prefix, Redirect, RedirectStatus, Route,
};

use crate::stage::{ADDED, OK, Origin, Stage};

fn route(host: &str, path: &str, to: Destination) -> Route {
    Route { host: host.parse().unwrap(), path: path.parse().unwrap(), to }
}

fn app(index: usize, prefix: Prefix) -> Destination {
    Destination::App { app: AppId::nth(index), prefix }
}

fn two_apps(config: &mut Config) {
    config.apps.push(AppConfig::named("api"));
    config.routes = vec![
        route("*", "/", app(0, Prefix::Keep)),
        route("*", "/api", app(1, Prefix::Strip)),
        route("old.example", "/", moved("https://new.example{path}")),
    ];
}

fn moved(location: &str) -> Destination {
    Destination::Redirect(Redirect::new(RedirectStatus::MovedPermanently, location).unwrap())
}

#[test]
fn paths_lead_to_apps_and_a_stripped_prefix_is_told() {
    let (site, site_saw) = Origin::answering(OK);
    let (api, api_saw) = Origin::answering(OK);
    let stage = Stage::new(two_apps);
    stage.add(&site, 1);
    let backend = Backend::new("api", api.address, 1);
    stage.handle.add(AppId::nth(1), backend);
    let mut client = stage.client();
    client.send("GET /apis HTTP/1.1\r\nHost: h\r\n\r\n");
    client.expect(OK);
    client.send(
        "POST /api/users?a HTTP/1.1\r\nHost: h\r\nX-Forwarded-Prefix: /forged\r\nContent-Length: 2\r\n\r\nhi",
    );
    client.expect(OK);
    assert_eq!(site_saw.recv().unwrap(), format!("GET /apis HTTP/1.1\r\nHost: h\r\n{ADDED}\r\n"));
    assert_eq!(
        api_saw.recv().unwrap(),
        format!(
            "POST /users?a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n{ADDED}X-Forwarded-Prefix: /api\r\n\r\nhi"
        )
    );
    stage.until("each app has counted its own", |snapshot| {
        snapshot.apps.iter().all(|app| app.response_time.len() == 1)
    });
}

#[test]
fn a_redirect_keeps_the_connection_unless_a_body_follows() {
    let stage = Stage::new(two_apps);
    let mut client = stage.client();
    for _ in 0..2 {
        client.send("HEAD /a?b HTTP/1.1\r\nHost: Old.Example:80\r\n\r\n");
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 301 Moved Permanently\r\n"), "{head}");
        assert!(head.contains("\r\nLocation: https://new.example/a?b\r\n"), "{head}");
    }
    let post = "POST / HTTP/1.1\r\nHost: old.example\r\nContent-Length: 1\r\n\r\nx";
    let answer = stage.ask(post);
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert!(answer.ends_with("301 see https://new.example/\n"), "{answer}");
    assert_eq!(stage.handle.snapshot().clients.own_3xx, 3);
}

#[test]
fn hosts_and_paths_without_a_route_are_told_apart() {
    let stage = Stage::new(|config| {
        config.routes = vec![route("a.example", "/a", app(0, Prefix::Keep))];
    });
    let ask = |host: &str, path: &str| {
        stage.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    let answer = ask("b.example", "/a");
    assert!(answer.starts_with("HTTP/1.1 421 Misdirected Request\r\n"), "{answer}");
    assert!(answer.ends_with("421 no route matches this host\n"), "{answer}");
    let answer = ask("a.example", "/b");
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
    assert_eq!(stage.handle.snapshot().clients.own_4xx, 2);
}

#[test]
fn a_listener_sends_everybody_to_https() {
    let stage = Stage::new(|config| {
        let redirect = Redirect::to_https(RedirectStatus::PermanentRedirect, 8443);
        config.listeners[0].redirect = Some(redirect);
    });
    let answer = stage.ask("GET /a HTTP/1.1\r\nHost: h:8080\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 308 Permanent Redirect\r\n"), "{answer}");
    assert!(answer.contains("\r\nLocation: https://h:8443/a\r\n"), "{answer}");
}
