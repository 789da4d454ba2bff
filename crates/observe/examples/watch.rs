//! Prints the usage of process groups once a second, as JSON, and what a sample costs.
//!
//! `cargo run -p observe --example watch -- SECONDS PGID...`

use observe::{Machine, Observer, Target};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1);
    let mut numbers = arguments.map(|argument| argument.parse::<i32>());
    let seconds = numbers.next().ok_or("usage: watch SECONDS PGID...")??;
    let mut observer = Observer::new();
    for pgid in numbers {
        let pgid = pgid?;
        observer.watch(Target::group(pgid.to_string(), pgid));
    }
    println!("{}", serde_json::to_string_pretty(&Machine::read())?);
    let mut last = observer.sample();
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        let begin = Instant::now();
        let sample = observer.sample();
        let cost = begin.elapsed();
        println!("{}", serde_json::to_string_pretty(&sample.since(&last))?);
        println!("// {} targets read in {cost:?}", sample.targets.len());
        for source in &sample.missing {
            println!("// {source}");
        }
        last = sample;
    }
    Ok(())
}
