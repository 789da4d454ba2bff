//! `tenfold reload` of `balance`: a new process that has read the file again takes over.

use std::path::Path;
use std::sync::Arc;

use axum::http::StatusCode;

use super::handover::Phase;
use super::state::{ReadAgain, Refusal, State};
use super::takeover;
use crate::config::Balancing;
use crate::process::exit_code::{Misuse, misuse};
use crate::service::reexec;

/// Answers when the new process serves and this one accepts no more. What is refused has changed nothing.
pub async fn replace_process(state: &State, read_again: &ReadAgain) -> Result<(), Refusal> {
    if std::process::id() == 1 {
        return conflict(
            "it is the first process of its container, which would end with it: restart the container",
        );
    }
    if state.handover.phase() != Phase::Alone {
        return conflict("another Tenfold is taking over already: wait for it, then reload again");
    }
    let (read_again, socket) = (Arc::clone(read_again), Arc::clone(&state.socket));
    let checked = tokio::task::spawn_blocking(move || check(&read_again()?, &socket)).await;
    checked.map_err(|error| (StatusCode::CONFLICT, error.to_string()))?.map_err(|error| {
        let status = match error.is::<Misuse>() {
            true => StatusCode::BAD_REQUEST,
            false => StatusCode::CONFLICT,
        };
        (status, format!("{error:#}"))
    })?;
    tokio::select! {
        _ = state.handover.over() => {}
        ended = reexec::start() => {
            let how = ended.unwrap_or_else(|_| "no new process could be started".to_owned());
            return conflict(&format!(
                "{how}, and the running one goes on as before: look at its output for the reason"
            ));
        }
    }
    // Whoever asks from now on asks the new process.
    let _ = state.closed.subscribe().wait_for(|closed| *closed).await;
    Ok(())
}

/// A new process finds this one by its control socket, and would otherwise start beside it.
fn check(new: &Balancing, socket: &Path) -> anyhow::Result<()> {
    match takeover::control_socket(new)? == socket {
        true => Ok(()),
        false => Err(misuse(format!(
            "the first listener and `socket` cannot change while it runs, for its control socket {} is found by them: \
             change them back, or stop it and start it anew",
            socket.display()
        ))),
    }
}

fn conflict(sentence: &str) -> Result<(), Refusal> {
    Err((StatusCode::CONFLICT, sentence.to_owned()))
}
