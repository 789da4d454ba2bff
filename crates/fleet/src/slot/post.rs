//! One instance in its slot, from its start to its end.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Context;
use crate::board::{Past, State};
use crate::driver::{Identity, Instance, Member};
use crate::error::{Output, StartError};
use crate::exit::{Exit, MORE_MEMORY};

/// Lines of the app's own output that are quoted of a crash.
const QUOTED_LINES: usize = 10;

/// What a slot is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stay {
    Serve,
    Leave,
}

/// An instance in service.
pub(super) struct Post {
    pub(super) member: Member,
    pub(super) instance: Box<dyn Instance>,
    pub(super) ready_at: Instant,
}

/// Why there is no [`Post`].
pub(super) enum Refusal {
    /// The slot was told to leave meanwhile.
    Interrupted,
    Failed(Box<Crash>, StartError),
}

/// The end of an instance that nobody asked for.
pub(super) struct Crash {
    pub(super) cause: String,
    /// Nothing when it did not end by itself.
    pub(super) exit: Option<Exit>,
    pub(super) output: Output,
    /// Its row on the board.
    pub(super) id: Option<u64>,
}

impl Post {
    /// For one that has died; waits for what is left of it.
    pub(super) async fn crash(&mut self) -> Crash {
        let exit = self.instance.exited().await;
        Crash {
            cause: match exit {
                Exit::OutOfMemory { .. } => format!("{exit} ({MORE_MEMORY})"),
                exit => exit.to_string(),
            },
            exit: Some(exit),
            output: Output(self.instance.last_lines(QUOTED_LINES)),
            id: Some(self.member.id),
        }
    }
}

impl Refusal {
    fn failed(error: StartError, id: Option<u64>) -> Refusal {
        let mut bare = error.clone();
        let output = bare.take_output();
        let exit = match &bare {
            StartError::Exited { exit, .. } => Some(*exit),
            _ => None,
        };
        let crash = Crash { cause: bare.to_string(), exit, output, id };
        Refusal::Failed(Box::new(crash), error)
    }
}

/// Resolves when the slot is told to leave, or its supervisor is gone.
pub(super) async fn left(leave: &mut watch::Receiver<Stay>) {
    let _ = leave.wait_for(|stay| *stay == Stay::Leave).await;
}

/// Starts an instance and waits until it is ready. Its row takes the place of the row `before`, and
/// stays on the board when it fails.
pub(super) async fn launch(
    context: Arc<Context>,
    identity: Identity,
    past: Past,
    before: Option<u64>,
    mut leave: watch::Receiver<Stay>,
) -> Result<Post, Refusal> {
    let board = &context.board;
    let started = tokio::select! {
        biased;
        () = left(&mut leave) => Err(Refusal::Interrupted),
        started = context.driver.start(&context.app, &identity) => {
            started.map_err(|error| Refusal::failed(error, None))
        }
    };
    if let Some(before) = before
        && matches!(started, Ok(_) | Err(Refusal::Interrupted))
    {
        board.remove(before);
    }
    let mut instance = started?;
    let mut member = Member {
        id: identity.id,
        index: identity.index,
        name: identity.name,
        address: instance.address(),
        pid: instance.pid(),
    };
    board.insert(member.clone(), past, instance.notice());

    let ready = tokio::select! {
        biased;
        () = left(&mut leave) => Err(Refusal::Interrupted),
        ready = instance.ready(&context.app.readiness) => {
            ready.map_err(|error| Refusal::failed(error, Some(member.id)))
        }
    };
    if let Err(refusal) = ready {
        board.set(member.id, State::Stopping);
        instance.stop(context.app.grace).await;
        if let Refusal::Interrupted = refusal {
            board.remove(member.id);
        }
        return Err(refusal);
    }
    member.address = instance.address();
    Ok(Post { member, instance, ready_at: Instant::now() })
}

/// Drains, then stops.
pub(super) async fn retire(context: &Context, mut post: Post) {
    let (app, id) = (&context.app, post.member.id);
    context.board.set(id, State::Draining);
    let drain = context.membership.drain(&post.member, app.drain);
    let died = tokio::select! {
        biased;
        () = post.instance.died() => true,
        () = drain => false,
    };
    if died {
        context.membership.lost(&post.member);
        post.instance.exited().await;
    } else {
        context.board.set(id, State::Stopping);
        post.instance.stop(app.grace).await;
    }
    context.board.remove(id);
}
