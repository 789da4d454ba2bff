//! Single-threaded instances of an app whose requests mostly take 5 ms and sometimes 100 ms. The
//! k-th request that begins, at whichever instance, takes the k-th time of one seeded sequence: so
//! every balancer has the same work to spread.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::chance::mixed;
use crate::server::{self, Answers, Counts};

struct Instance<'a> {
    seed: u64,
    /// Requests begun at all instances.
    begun: &'a AtomicU64,
    answer: Rc<[u8]>,
}

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(100);
/// One request in so many is long.
const LONG_ONE_IN: u64 = 20;

pub fn serve(seed: u64, addresses: &[SocketAddr]) -> std::io::Result<()> {
    let begun = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let instance = |address: &SocketAddr| {
            let (address, begun) = (*address, &begun);
            scope.spawn(move || {
                wake_on_time();
                let answer = server::with_body("", b"done\n");
                server::serve(address, Instance { seed, begun, answer })
            })
        };
        let threads: Vec<_> = addresses.iter().map(instance).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no instance panics"))
    })
}

impl Answers for Instance<'_> {
    fn answer(&mut self, _: &str, _: Counts) -> Rc<[u8]> {
        let k = self.begun.fetch_add(1, Ordering::Relaxed);
        let long = mixed(self.seed.wrapping_add(k)).is_multiple_of(LONG_ONE_IN);
        // Waiting, not working: four instances then need no four cores.
        std::thread::sleep(if long { LONG } else { SHORT });
        Rc::clone(&self.answer)
    }
}

/// A sleep of this thread ends within microseconds, not within the usual 50.
fn wake_on_time() {
    if let Err(error) = std::fs::write("/proc/thread-self/timerslack_ns", "1") {
        eprintln!("bench-origin: sleeps end 50 us late: {error}");
    }
}
