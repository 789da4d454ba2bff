//! One timer for a connection, armed lazily. A deadline that moves later costs nothing: the timer fires
//! at the earliest armed deadline and is armed again only then.
//!
//! Several deadlines may be polled in turn, even if one of them has passed and nobody acts on it. The
//! timer is never armed for a passed deadline. That would wake the task at once, and again after another
//! deadline is polled, without end.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::task::coop::unconstrained;
use tokio::time::Sleep;

/// Belongs to one task. Once polled, it wakes that task without being polled again.
#[derive(Debug)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    armed: Option<Instant>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Timer { sleep: None, armed: None }
    }

    /// Ready once `deadline` has passed. Until then, it wakes the task at the latest at `deadline`.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            if let (Some(armed), Some(sleep)) = (self.armed, &self.sleep)
                && armed <= deadline
                && !sleep.is_elapsed()
            {
                return Poll::Pending;
            }
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            ready!(self.arm(cx, deadline));
        }
    }

    /// Ready if `deadline` passes meanwhile.
    fn arm(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.armed = Some(deadline);
        let sleep =
            self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        sleep.as_mut().reset(deadline.into());
        // Without budget, the poll would not register the task.
        pin!(unconstrained(sleep.as_mut())).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn wait(timer: &mut Timer, after: Duration) -> Duration {
        let start = Instant::now();
        std::future::poll_fn(|cx| timer.poll(cx, start + after)).await;
        start.elapsed()
    }

    #[tokio::test]
    async fn waits_for_deadlines_that_move_either_way() {
        let mut timer = Timer::new();
        let far = Instant::now() + Duration::from_secs(60);
        std::future::poll_fn(|cx| {
            assert!(timer.poll(cx, far).is_pending());
            Poll::Ready(())
        })
        .await;
        for millis in [30, 10, 20] {
            let waited = wait(&mut timer, Duration::from_millis(millis)).await;
            assert!(
                waited >= Duration::from_millis(millis) && waited < Duration::from_secs(5),
                "{waited:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_deadline_that_passed_unheeded_does_not_keep_the_task_busy() {
        let (mut timer, mut polls) = (Timer::new(), 0);
        let passed = Instant::now();
        let far = passed + Duration::from_secs(60);
        let both = std::future::poll_fn(|cx| {
            polls += 1;
            assert!(timer.poll(cx, passed).is_ready());
            timer.poll(cx, far)
        });
        let waited = tokio::time::timeout(Duration::from_millis(20), both).await;
        assert!(waited.is_err());
        // At first, and where the timeout wakes the task.
        assert!(polls <= 2, "{polls} polls");
    }
}
