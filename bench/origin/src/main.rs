//! The servers of the benchmarks: behind the proxies, and under the load generators. As little as
//! answers HTTP/1.1, so that something else is what is measured.
//!
//! - `server`: one thread, many connections, one request at a time.
//! - `files`: answers of a fixed size, at once.
//! - `shop`: answers for a script of many steps, at once.
//! - `instances`: answers that take their time, of several servers that share one sequence of times.
//! - `times`: answers that take their time, and the truth about it.
//! - `chance`: numbers that look random.

mod chance;
mod files;
mod instances;
mod server;
mod shop;
mod times;

use std::net::SocketAddr;

const USAGE: &str = "usage: bench-origin files ADDRESS
       bench-origin shop ADDRESS
       bench-origin times fixed|bimodal|stalling ADDRESS
       bench-origin instances SEED ADDRESS...";

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["files", address] => files::serve(parsed(address)),
        ["shop", address] => shop::serve(parsed(address)),
        ["times", pattern, address] => times::serve(parsed(pattern), parsed(address)),
        ["instances", seed, addresses @ ..] if !addresses.is_empty() => {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|text| parsed(text)).collect();
            instances::serve(parsed(seed), &addresses)
        }
        _ => misused(),
    }
}

fn parsed<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| misused())
}

fn misused() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2);
}
