//! Clients that send requests all through a story, whatever happens meanwhile.

use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{eventually, get, json, send};
use crate::sandbox::only_child;

/// `tenfold load`, until the story ends it.
pub struct Clients {
    load: Child,
    /// Tenfold itself, which `nsenter` may have started.
    tenfold: u32,
}

/// The arguments of an open workload that lasts longer than the story.
pub fn all_through(address: SocketAddr, arguments: &str) -> String {
    format!("load http://{address}/ --quiet --json - --duration 120s {arguments}")
}

impl Clients {
    pub fn start(mut load: Command) -> Clients {
        let is_inside = load.get_program() == "nsenter";
        let load = load.stdout(Stdio::piped()).spawn().unwrap();
        let tenfold = if is_inside { only_child(load.id()) } else { load.id() };
        Clients { load, tenfold }
    }

    /// Ends them; every request of theirs was answered with 200.
    pub fn end_without_failure(mut self) {
        if self.load.try_wait().unwrap().is_none() {
            send(self.tenfold, Signal::INT);
        }
        let output = self.load.wait_with_output().unwrap();
        let report = json(&output);
        let requests = report["requests"].as_u64().unwrap();
        assert!(requests > 20, "{report:#}");
        assert_eq!(report["errors"], serde_json::json!({}), "{report:#}");
        assert_eq!(report["status"], serde_json::json!({ "200": requests }), "{report:#}");
    }
}

/// Waits until the instances have answered so many requests, by `status --json`.
pub fn served(least: u64, status: impl Fn() -> Output) {
    let of = |instance: &Value| instance["requests"].as_u64().unwrap_or(0);
    let served = || json(&status())["instances"].as_array().unwrap().iter().map(of).sum::<u64>();
    eventually("it serves", || served() > least);
}

/// Asks again and again while something happens, which may wait until so many more are answered. The address may refuse
/// connections for a time. Whoever is let in gets an answer.
pub fn asking(address: SocketAddr, happens: impl FnOnce(&dyn Fn(usize))) {
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                match get(address, "/") {
                    Ok(_) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => assert!(error.contains("refused"), "{error}"),
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        happens(&|more| {
            let before = answered.load(Ordering::Relaxed);
            eventually("it answers", || answered.load(Ordering::Relaxed) >= before + more);
        });
        over.store(true, Ordering::Relaxed);
    });
}
