//! Stories: the program as its users meet it, over real sockets, on real apps.
//!
//! A story that measures has the machine to itself; the others share it.

#![allow(unreachable_pub, reason = "a program has no outside: `pub` means beyond the module here")]

mod app_failures;
mod apps;
mod attacks;
mod bad_input;
mod balancers;
mod compose;
mod cost;
mod docker;
mod exports;
mod faults;
mod findings;
mod guides;
mod harness;
mod history;
mod kill;
mod limits;
mod live_page;
mod load;
mod memory;
mod nginx;
mod open_connections;
mod operation;
mod overload;
mod plan;
mod plan_behind;
mod poison;
mod report;
mod sandbox;
mod scripts;
mod servers;
mod services;
mod settings;
mod systemd;
mod systemd_machine;
mod takeover;
mod terminal;
mod traffic;
mod unit_templates;
mod unreliable;
mod up;
mod user_manager;
