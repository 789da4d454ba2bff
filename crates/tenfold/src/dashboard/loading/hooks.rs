//! What a script does before and after its load. It has its time: whoever starts a load waits for the one, and the end
//! of `up` for the other.

use std::time::Duration;

use load::{Config, Interrupt, Run, StartError};
use tokio::task::{JoinError, JoinHandle};

use crate::process::sched_slice;

/// What each of them may take.
pub const LONGEST: Duration = Duration::from_secs(10);

/// Starts a run. What its script does before the load has ended then.
pub async fn started(config: Config, longest: Duration) -> Result<Run, String> {
    let interrupt = config.interrupt.clone();
    let start = tokio::task::spawn_blocking(|| sched_slice::shortest(|| Run::start(config)));
    match bounded(start, &interrupt, longest).await {
        (Ok(Err(StartError::Before { .. })), true) => Err(format!(
            "in the script, `before` takes longer than {} s: shorten it, or run the script by `tenfold load`",
            longest.as_secs_f64()
        )),
        (Ok(started), _) => started.map_err(|error| error.to_string()),
        (Err(error), _) => Err(error.to_string()),
    }
}

/// What comes of a task that may play such a session, and whether that was interrupted for its length.
pub async fn bounded<T>(
    mut task: JoinHandle<T>,
    interrupt: &Interrupt,
    longest: Duration,
) -> (Result<T, JoinError>, bool) {
    if let Ok(done) = tokio::time::timeout(longest, &mut task).await {
        return (done, false);
    }
    interrupt.ask();
    (task.await, true)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;

    use load::Workload;
    use script::{ScenarioSet, artillery};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    /// With a request before and after the load.
    fn config(target: &str) -> Config {
        let hook = "{flow: [{get: {url: /}}]}";
        let text = format!("{{before: {hook}, after: {hook}, scenarios: [{hook}]}}");
        let script = Arc::new(artillery::read_sent(&text, target).unwrap());
        let workload = Workload::closed(1, Duration::ZERO);
        let mut config = Config::new(script.target().clone(), workload);
        config.script = Some(Arc::new(ScenarioSet::new(script)));
        config
    }

    #[tokio::test]
    async fn a_beginning_that_does_not_end_is_refused() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}", silent.local_addr().unwrap());
        let sentence = started(config(&target), SHORT).await.err().unwrap();
        assert!(sentence.contains("`before` takes longer than 0.05 s: shorten it"), "{sentence}");
    }

    #[tokio::test]
    async fn a_beginning_that_fails_says_how() {
        let target = {
            let closed = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}", closed.local_addr().unwrap())
        };
        let sentence = started(config(&target), LONGEST).await.err().unwrap();
        assert!(sentence.contains("the script's 'before' failed"), "{sentence}");
    }
}
