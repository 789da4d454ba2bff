//! Servers that something else runs, added and taken out while requests come.

use std::time::Duration;

use axum::extract::State as Extract;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use balancer::{Address, Backend, BackendPhase, BackendSnapshot, Drained, Role, Slots};
use serde::{Deserialize, Serialize};

use super::state::{Pool, Refusal, State};
use super::status::{self, Status};
use crate::config;

/// Body of `POST /servers/add`. What it leaves open is as for the app's other servers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Addition {
    /// Not needed where one app has servers.
    pub app: Option<String>,
    pub address: Address,
    /// The address by default.
    pub name: Option<String>,
    pub slots: Option<Slots>,
    pub weight: Option<u32>,
    pub backup: bool,
}

/// Body of `POST /servers/remove`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Removal {
    /// Not needed where one app has a server of this name.
    pub app: Option<String>,
    /// Its name or its address.
    pub server: String,
    /// Time for its requests in flight.
    pub drain: Duration,
}

/// Answer of `POST /servers/remove`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Removed {
    /// Requests that were still in flight in the end. They go on for as long as the server answers them.
    pub in_flight: usize,
    pub status: Status,
}

/// For the owner of the socket.
pub fn routes() -> Router<State> {
    Router::new().route("/servers/add", post(add)).route("/servers/remove", post(remove))
}

async fn add(
    Extract(state): Extract<State>,
    Json(addition): Json<Addition>,
) -> Result<Json<Status>, Refusal> {
    let Addition { app, address, name, slots, weight, backup } = addition;
    let pool = match pools(&state, app.as_deref())?.as_slice() {
        [pool] => *pool,
        pools => {
            let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
            return refuse(format!(
                "several apps have servers ({}): say which with --app",
                names.join(", ")
            ));
        }
    };
    if serving(&state, &[pool]).iter().any(|server| server.address == address) {
        return Err((
            StatusCode::CONFLICT,
            format!("{address} is there already: remove it first, or add another one"),
        ));
    }
    if let Some(sentence) = config::no_server(&address, state.listen.iter()) {
        return refuse(sentence);
    }
    let weight = weight.unwrap_or(pool.backend.weight);
    if !(1..=Backend::MAX_WEIGHT).contains(&weight) {
        let most = Backend::MAX_WEIGHT;
        return refuse(format!("a weight of {weight} is impossible: write 1 to {most}"));
    }
    let backend = Backend {
        name: name.unwrap_or_else(|| address.to_string()),
        address,
        slots: slots.unwrap_or(pool.backend.slots),
        weight,
        role: if backup { Role::Backup } else { Role::Primary },
        ..pool.backend.clone()
    };
    state.controlled.handle().add(pool.app, backend);
    Ok(Json(status::read(&state)))
}

/// Answers when the server has no request in flight, or its time is over.
async fn remove(
    Extract(state): Extract<State>,
    Json(removal): Json<Removal>,
) -> Result<Json<Removed>, Refusal> {
    let Removal { app, server, drain } = removal;
    let pools = pools(&state, app.as_deref())?;
    let mut found = serving(&state, &pools);
    found.retain(|other| other.name == server || other.address.to_string() == server);
    let id = match found.as_slice() {
        [one] => one.id,
        [] => {
            return refuse(format!(
                "no server {server} is here: write a name or an address that `tenfold status` shows"
            ));
        }
        _ => {
            return refuse(format!(
                "several servers are called {server}: write the address, and --app if several apps have it"
            ));
        }
    };
    let in_flight = match state.controlled.handle().drain(id, drain).await {
        Drained::Clean => 0,
        Drained::InFlight(in_flight) => in_flight,
    };
    Ok(Json(Removed { in_flight, status: status::read(&state) }))
}

/// The apps with servers, or the one of this name; at least one.
fn pools<'s>(state: &'s State, name: Option<&str>) -> Result<Vec<&'s Pool>, Refusal> {
    let named = |pool: &&Pool| name.is_none_or(|name| pool.name == name);
    let found: Vec<_> = state.pools.iter().filter(named).collect();
    match name {
        _ if !found.is_empty() => Ok(found),
        Some(name) => refuse(format!(
            "no app {name} has servers here: write an app with `backends`, or scale it if Tenfold runs it"
        )),
        None => refuse(
            "everything here is run by Tenfold itself: change the number of instances with `tenfold scale`".to_owned(),
        ),
    }
}

/// The servers that get requests.
fn serving(state: &State, pools: &[&Pool]) -> Vec<BackendSnapshot> {
    let apps = state.controlled.handle().snapshot().apps;
    let meant = apps.into_iter().filter(|app| pools.iter().any(|pool| pool.app == app.id));
    let servers = meant.flat_map(|app| app.backends);
    servers.filter(|server| server.state == BackendPhase::Serving).collect()
}

fn refuse<T>(sentence: String) -> Result<T, Refusal> {
    Err((StatusCode::BAD_REQUEST, sentence))
}
