use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::driver::fake::{FakeDriver, FakeMembership, Journal, Script};
use crate::error::{Output, StartError};
use crate::exit::Exit;
use crate::restart::RestartPolicy;

struct Stage {
    fleet: Fleet,
    driver: FakeDriver,
    journal: Journal,
}

/// Instances are ready after a second, drained in two, and end at once when asked to. Waits before
/// restarts are 1, 2, 4, 4 s; the third crash in a row is a loop.
fn stage() -> Stage {
    let (driver, journal) = FakeDriver::new(Script::default());
    let membership = FakeMembership::new(&journal, seconds(2));
    let mut app = App::named("app");
    app.restart = RestartPolicy::new(seconds(1), seconds(4), 0.0, 3, seconds(60)).unwrap();
    Stage {
        fleet: Fleet::new(app, Arc::new(driver.clone()), Arc::new(membership)),
        driver,
        journal,
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn never_ready() -> Script {
    Script { ready: None, ..Script::default() }
}

fn dies_after(after: u64) -> Script {
    Script {
        exit: Some((seconds(after), Exit::Code(1))),
        output: vec!["first".into(), "out of luck".into()],
        ..Script::default()
    }
}

impl Stage {
    /// `app-1 Ready` and so on.
    fn states(&self) -> Vec<String> {
        let members = self.fleet.members();
        let state = |status: &MemberStatus| format!("{} {:?}", status.member.name, status.state);
        members.iter().map(state).collect()
    }

    fn spawn_scale(&self, n: usize) -> tokio::task::JoinHandle<Result<(), FleetError>> {
        let fleet = self.fleet.clone();
        tokio::spawn(async move { fleet.scale(n).await })
    }

    fn spawn_reload(&self) -> tokio::task::JoinHandle<Result<(), FleetError>> {
        let fleet = self.fleet.clone();
        tokio::spawn(async move { fleet.reload().await })
    }
}

#[tokio::test(start_paused = true)]
async fn starts_all_at_once_and_stops_the_newest_after_a_drain() {
    let stage = stage();
    let began = Instant::now();
    stage.fleet.scale(3).await.unwrap();
    assert_eq!(began.elapsed(), seconds(1));
    assert_eq!(stage.states(), ["app-1 Ready", "app-2 Ready", "app-3 Ready"]);
    stage.journal.take();

    stage.fleet.scale(1).await.unwrap();
    assert_eq!(began.elapsed(), seconds(3));
    let journal = stage.journal.take();
    assert_eq!(journal[..2], ["drain app-3", "drain app-2"]);
    for name in ["app-2", "app-3"] {
        let own: Vec<&str> = journal.iter().filter_map(|line| line.strip_suffix(name)).collect();
        assert_eq!(own, ["drain ", "drained ", "stop ", "exit "]);
    }
    assert_eq!(stage.states(), ["app-1 Ready"]);
    assert_eq!(stage.driver.living(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_scale_up_stops_its_new_instances() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    stage.driver.next(2, never_ready());
    stage.driver.next(3, never_ready());
    stage.driver.next(4, dies_after(0));
    let began = Instant::now();
    let error = stage.fleet.scale(4).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let FleetError::Start(StartError::Exited { name, output, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(name, "app-4");
    assert_eq!(output, Output(vec!["first".into(), "out of luck".into()]));
    assert_eq!(stage.states(), ["app-1 Ready"]);
    assert_eq!(stage.driver.living(), 1);
}

#[tokio::test(start_paused = true)]
async fn start_fails_at_the_deadline() {
    let stage = stage();
    stage.driver.next(1, never_ready());
    let began = Instant::now();
    let error = stage.fleet.scale(1).await.unwrap_err();
    assert_eq!(began.elapsed(), seconds(30));
    assert!(error.to_string().contains("was not ready within 30 s"), "{error}");
    assert_eq!(stage.driver.living(), 0);
    assert!(stage.fleet.members().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_name_and_port_with_a_new_id() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    let before = stage.fleet.members().remove(0);
    stage.journal.take();
    let died = Instant::now();
    stage.driver.crash("app-1", Exit::Signal(11));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.states(), ["app-1 Backoff"]);

    // Scale returns when the one that died is back: a second of wait, a second to be ready.
    stage.fleet.scale(1).await.unwrap();
    assert_eq!(died.elapsed(), seconds(2));
    let journal = stage.journal.take();
    assert_eq!(journal, ["lost app-1", "exit app-1", "start app-1", "ready app-1", "join app-1"]);
    let after = stage.fleet.members().remove(0);
    assert_eq!(after.member.address, before.member.address);
    assert_eq!(after.member.name, before.member.name);
    assert!(after.member.id > before.member.id);
    assert_eq!(after.past.restarts, 1);
}

/// Not when the last of what it has started has ended, and its output: requests would go nowhere.
#[tokio::test(start_paused = true)]
async fn a_dead_instance_is_lost_at_once_and_restarted_once_gone() {
    let stage = stage();
    stage.driver.next(1, Script { remains: seconds(3), ..Script::default() });
    stage.fleet.scale(1).await.unwrap();
    stage.journal.take();
    let died = Instant::now();
    stage.driver.crash("app-1", Exit::Signal(11));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(stage.journal.take(), ["lost app-1"]);
    stage.fleet.scale(1).await.unwrap();
    // Three seconds of remains, one of wait, one to be ready.
    assert_eq!(died.elapsed(), seconds(5));
    assert_eq!(stage.journal.take(), ["exit app-1", "start app-1", "ready app-1", "join app-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_is_reported_and_restarted_without_end() {
    let stage = stage();
    for _ in 0..20 {
        stage.driver.next(1, dies_after(2));
    }
    stage.fleet.scale(2).await.unwrap();
    let error = stage.fleet.crash_loop().await;
    // Three lives of 2 s, with waits of 1 s and 2 s between them.
    assert_eq!(
        error.to_string(),
        "app-1 crashed 3 times in 7 s, the last time: exited with code 1; fix the cause and start \
         it again; its last output:\n  | first\n  | out of luck"
    );
    assert_eq!(stage.states(), ["app-1 Backoff", "app-2 Ready"]);
    let status = stage.fleet.members().remove(0);
    assert_eq!((status.past.restarts, status.past.crash_loop), (3, Some(3)));
    assert_eq!(status.past.last_crash.as_deref(), Some("exited with code 1"));
    assert!(status.next_start.is_some());

    // 17 more lives of 2 s, each after the longest wait.
    stage.journal.take();
    tokio::time::sleep(seconds(17 * 6 + 1)).await;
    let starts = stage.journal.take().iter().filter(|line| *line == "start app-1").count();
    assert_eq!(starts, 17);
    assert_eq!(stage.fleet.members()[0].past.crash_loop, Some(20));

    // The cause of the crash is gone.
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(stage.states(), ["app-1 Ready", "app-2 Ready"]);
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(stage.fleet.members()[0].past.crash_loop, None);
    let looping = tokio::time::timeout(seconds(100), stage.fleet.crash_loop()).await;
    assert!(looping.is_err(), "the loop is over");
}

/// Else, a request that ends instances would stop the service for longer each time.
#[tokio::test(start_paused = true)]
async fn an_instance_that_requests_end_is_started_again_at_once() {
    let (driver, journal) = FakeDriver::new(Script::default());
    let fleet = {
        let membership = Arc::new(FakeMembership::busy(&journal));
        Fleet::new(App::named("app"), Arc::new(driver.clone()), membership)
    };
    for _ in 0..9 {
        driver.next(1, dies_after(3));
    }
    fleet.scale(1).await.unwrap();
    let began = Instant::now();
    // Nine lives of 3 s, one of them to become ready.
    tokio::time::sleep_until(began + seconds(9 * 3)).await;
    assert_eq!(fleet.members()[0].past.restarts, 9);
    let looping = tokio::time::timeout(seconds(1), fleet.crash_loop()).await;
    assert!(looping.is_err(), "it can start");
}

#[tokio::test(start_paused = true)]
async fn backoff_resets_after_a_steady_run() {
    let stage = stage();
    for life in [2, 2, 70, 2] {
        stage.driver.next(1, dies_after(life));
    }
    stage.fleet.scale(1).await.unwrap();
    stage.journal.take();
    // Lives of 2, 2, 70 and 2 s, after waits of 1, 2, 1 and 2 s.
    tokio::time::sleep(seconds(2 + 1 + 2 + 2 + 70 + 1 + 2) - Duration::from_millis(500)).await;
    assert_eq!(stage.states(), ["app-1 Backoff"]);
    assert_eq!(stage.fleet.members()[0].past.restarts, 4);
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(stage.states(), ["app-1 Ready"]);
    assert_eq!(stage.fleet.members()[0].past.crash_loop, None);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_does_not_become_ready_counts_as_a_crash() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    for _ in 0..3 {
        stage.driver.next(1, Script { output: vec!["still loading".into()], ..never_ready() });
    }
    stage.driver.crash("app-1", Exit::Code(0));
    let error = stage.fleet.crash_loop().await.to_string();
    assert!(error.starts_with("app-1 crashed 3 times"), "{error}");
    assert!(error.contains("was not ready within 30 s"), "{error}");
    assert!(error.ends_with("start it again; its last output:\n  | still loading"), "{error}");
    assert_eq!(stage.driver.living(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_calls_an_instance_as_its_user_does() {
    let stage = stage();
    let named = Script { own_name: Some("fib@7".into()), ..Script::default() };
    stage.driver.next(1, named);
    stage.fleet.scale(2).await.unwrap();
    let members = stage.fleet.members();
    let names = members.iter().map(|status| (&*status.member.name, status.member.display_name()));
    assert_eq!(names.collect::<Vec<_>>(), [("app-1", "fib@7"), ("app-2", "app-2")]);
    for _ in 0..3 {
        stage.driver.next(1, never_ready());
    }
    stage.driver.crash("app-1", Exit::Code(0));
    let error = stage.fleet.crash_loop().await.to_string();
    assert!(error.starts_with("fib@7 crashed 3 times"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn reload_replaces_one_at_a_time_successor_first() {
    let stage = stage();
    stage.fleet.scale(2).await.unwrap();
    let before = stage.fleet.members();
    stage.journal.take();
    stage.fleet.reload().await.unwrap();
    let steps = ["start", "ready", "join", "drain", "drained", "stop", "exit"];
    let expected: Vec<String> = ["app-1", "app-2"]
        .iter()
        .flat_map(|name| steps.map(|step| format!("{step} {name}")))
        .collect();
    assert_eq!(stage.journal.take(), expected);
    let after = stage.fleet.members();
    assert_eq!(stage.states(), ["app-1 Ready", "app-2 Ready"]);
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(before.member.address, after.member.address);
        assert!(before.member.id < after.member.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_that_fails_leaves_the_old_one_serving() {
    let stage = stage();
    stage.fleet.scale(2).await.unwrap();
    let before = stage.fleet.members();
    stage.journal.take();
    stage.driver.next(1, dies_after(0));
    let error = stage.fleet.reload().await.unwrap_err();
    assert!(error.to_string().contains("before it was ready"), "{error}");
    assert_eq!(stage.journal.take(), ["start app-1", "exit app-1", "stop app-1"]);
    let ids = |members: Vec<MemberStatus>| members.into_iter().map(|status| status.member.id);
    assert!(ids(stage.fleet.members()).eq(ids(before)));
}

#[tokio::test(start_paused = true)]
async fn a_successor_serves_when_the_old_one_dies_meanwhile() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    stage.journal.take();
    let reload = stage.spawn_reload();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.states(), ["app-1 Ready", "app-1 Starting"]);
    stage.driver.crash("app-1", Exit::Code(1));
    reload.await.unwrap().unwrap();
    assert_eq!(
        stage.journal.take(),
        ["start app-1", "lost app-1", "ready app-1", "join app-1", "exit app-1"]
    );
    assert_eq!(stage.states(), ["app-1 Ready"]);
}

#[tokio::test(start_paused = true)]
async fn stop_interrupts_a_start_and_refuses_queued_operations() {
    let stage = stage();
    stage.driver.next(2, never_ready());
    let scale = stage.spawn_scale(2);
    let reload = stage.spawn_reload();
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(stage.states(), ["app-1 Ready", "app-2 Starting"]);
    let began = Instant::now();
    stage.fleet.stop().await;
    assert_eq!(began.elapsed(), seconds(2), "the drain of app-1");
    assert!(matches!(scale.await.unwrap(), Err(FleetError::Stopped)));
    assert!(matches!(reload.await.unwrap(), Err(FleetError::Stopped)));
    assert_eq!(stage.driver.living(), 0);
    assert!(stage.fleet.members().is_empty());

    stage.fleet.scale(1).await.unwrap();
    assert_eq!(stage.states(), ["app-1 Ready"]);
}

#[tokio::test(start_paused = true)]
async fn stop_kills_after_the_grace() {
    let stage = stage();
    let deaf = Script { stop: seconds(1000), ..Script::default() };
    stage.driver.next(1, deaf);
    stage.fleet.scale(2).await.unwrap();
    stage.journal.take();
    let began = Instant::now();
    stage.fleet.stop().await;
    assert_eq!(began.elapsed(), seconds(12));
    assert_eq!(stage.journal.take().last().unwrap(), "kill app-1");
}

#[tokio::test(start_paused = true)]
async fn a_scale_waits_for_the_reload_before_it() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    stage.journal.take();
    let reload = stage.spawn_reload();
    tokio::task::yield_now().await;
    let scale = stage.spawn_scale(0);
    reload.await.unwrap().unwrap();
    scale.await.unwrap().unwrap();
    let steps = stage.journal.take();
    let expected = ["start", "ready", "join", "drain", "drained", "stop", "exit"];
    assert!(steps[..7].iter().zip(expected).all(|(step, word)| step.starts_with(word)));
    assert_eq!(steps[7..], ["drain app-1", "drained app-1", "stop app-1", "exit app-1"]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_goes_on_when_nobody_waits_for_it() {
    let stage = stage();
    let early = tokio::time::timeout(Duration::from_millis(10), stage.fleet.scale(2)).await;
    assert!(early.is_err());
    // Waits for the first.
    stage.fleet.scale(2).await.unwrap();
    let journal = stage.journal.take();
    let starts = journal.iter().filter(|line| line.starts_with("start"));
    assert_eq!(starts.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_kills() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    let scale = stage.spawn_scale(2);
    tokio::task::yield_now().await;
    let Stage { fleet, driver, journal } = stage;
    drop(fleet.clone());
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(driver.living(), 2);
    scale.abort();
    drop(fleet);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(driver.living(), 0);
    assert!(journal.take().contains(&"kill app-1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_dies_while_drained_is_lost() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    stage.journal.take();
    let scale = stage.spawn_scale(0);
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(stage.states(), ["app-1 Draining"]);
    stage.driver.crash("app-1", Exit::Code(1));
    scale.await.unwrap().unwrap();
    assert_eq!(stage.journal.take(), ["drain app-1", "lost app-1", "exit app-1"]);
    assert!(stage.fleet.members().is_empty());
}

#[tokio::test(start_paused = true)]
async fn more_instances_than_ports_are_refused() {
    let stage = stage();
    stage.fleet.scale(1).await.unwrap();
    stage.journal.take();
    for many in [65_536, usize::MAX] {
        let error = stage.fleet.scale(many).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{many} instances need as many ports")), "{error}");
    }
    assert_eq!(stage.states(), ["app-1 Ready"]);
    assert!(stage.journal.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn scale_and_reload_do_not_wait_for_a_crash_loop() {
    let stage = stage();
    for _ in 0..3 {
        stage.driver.next(1, dies_after(2));
    }
    stage.driver.next(1, dies_after(0));
    stage.driver.next(1, dies_after(0));
    stage.fleet.scale(1).await.unwrap();
    stage.fleet.crash_loop().await;

    let began = Instant::now();
    let reload = stage.fleet.reload().await.unwrap_err();
    assert!(matches!(reload, FleetError::Start(StartError::Exited { .. })), "{reload}");
    stage.fleet.scale(2).await.unwrap_err();
    assert_eq!(stage.states(), ["app-1 Backoff"], "what was new is taken away again");
    assert_eq!(began.elapsed(), Duration::ZERO);

    stage.fleet.scale(2).await.unwrap();
    assert_eq!(began.elapsed(), seconds(1));
    assert_eq!(stage.states(), ["app-1 Ready", "app-2 Ready"]);
    stage.fleet.scale(0).await.unwrap();
    assert!(stage.fleet.members().is_empty());
    let looping = tokio::time::timeout(seconds(100), stage.fleet.crash_loop()).await;
    assert!(looping.is_err(), "nothing is left that could loop");
}

#[tokio::test(start_paused = true)]
async fn released_instances_are_neither_drained_nor_stopped() {
    let stage = stage();
    stage.fleet.scale(2).await.unwrap();
    stage.journal.take();
    stage.fleet.release().await;
    let mut journal = stage.journal.take();
    journal.sort();
    assert_eq!(journal, ["release app-1", "release app-2"]);
    assert!(stage.states().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_join_is_stopped() {
    let (driver, journal) = FakeDriver::new(Script::default());
    let refusal = StartError::System { name: "app-1".into(), reason: "no room".into() };
    let membership = FakeMembership::refusing(&journal, refusal);
    let fleet = Fleet::new(App::named("app"), Arc::new(driver.clone()), Arc::new(membership));
    let error = fleet.scale(1).await.unwrap_err().to_string();
    assert!(error.contains("no room"), "{error}");
    let journal = journal.take();
    assert_eq!(journal[2..], ["join app-1", "lost app-1", "stop app-1", "exit app-1"]);
    assert_eq!(driver.living(), 0);
}
