//! Messages for people, written by a thread of its own. The caller never waits for a terminal that was
//! stopped, or for a pipe that nobody reads. What does not fit is dropped and counted.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};

/// Bytes that may wait for a reader: some thousand lines.
const CAPACITY: usize = 1 << 18;

/// One output and the messages that wait for it.
pub struct Messages {
    queue: Arc<Queue>,
    /// Written to at once where no thread can be started, as when this user may have no more.
    unthreaded: Option<Output>,
}

type Output = Arc<dyn AsFd + Send + Sync>;

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Something waits, or everything is written.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    /// Bytes of the messages that wait.
    bytes: usize,
    /// Messages that did not fit, and were not reported yet.
    dropped: u64,
    /// The writer is writing a message.
    writing: bool,
}

impl Messages {
    /// To this output.
    pub fn to(output: impl AsFd + Send + Sync + 'static) -> Messages {
        let (queue, output) = (Arc::new(Queue::default()), Arc::new(output) as Output);
        let (queued, written) = (Arc::clone(&queue), Arc::clone(&output));
        let thread = std::thread::Builder::new().name("messages".into());
        let started = thread.spawn(move || queued.write_to(&written));
        Messages { queue, unthreaded: started.is_err().then_some(output) }
    }

    /// Adds a message. Returns at once.
    pub fn push(&self, message: String) {
        if let Some(output) = &self.unthreaded {
            return write_all(output, message.as_bytes());
        }
        let mut state = self.queue.lock();
        if state.bytes + message.len() > CAPACITY {
            state.dropped += 1;
            return;
        }
        state.report_dropped();
        state.bytes += message.len();
        state.waiting.push_back(message);
        drop(state);
        self.queue.changed.notify_all();
    }

    /// Waits until everything is written, but not beyond `deadline`.
    pub fn settle(&self, deadline: Instant) {
        let mut state = self.queue.lock();
        while state.writing || !state.waiting.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.queue.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's thread. It ends with the process.
    fn write_to(&self, output: &Output) {
        let mut state = self.lock();
        loop {
            if let Some(message) = state.next() {
                drop(state);
                write_all(output, message.as_bytes());
                state = self.lock();
                state.writing = false;
                continue;
            }
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    fn next(&mut self) -> Option<String> {
        if self.waiting.is_empty() {
            self.report_dropped();
        }
        let message = self.waiting.pop_front()?;
        self.bytes -= message.len();
        self.writing = true;
        Some(message)
    }

    /// Reports dropped messages in the place where they are missing.
    fn report_dropped(&mut self) {
        let lines = match std::mem::take(&mut self.dropped) {
            0 => return,
            1 => "1 line was not written, for nobody read it".to_owned(),
            n => format!("{n} lines were not written, for nobody read them"),
        };
        let message = format!("tenfold: {lines}\n");
        self.bytes += message.len();
        self.waiting.push_back(message);
    }
}

/// Writes until the output is closed.
fn write_all(output: &Output, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match write(output, bytes) {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            // Another process with this output made it non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(output, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn messages_are_dropped_when_nobody_reads_the_output() {
        let (reader, writer) = std::io::pipe().unwrap();
        let messages = Messages::to(writer);
        let line = "x".repeat(999) + "\n";
        // More than the pipe and the queue hold; would never return if it waited.
        let said = 1_000;
        (0..said).for_each(|_| messages.push(line.clone()));
        messages.settle(Instant::now());
        assert!(messages.queue.lock().dropped > 0);

        // Whatever the writer's pace was, each line was written, or reported where it is missing.
        let lines = std::thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map(Result::unwrap);
            lines.take_while(|line| line != "after").collect::<Vec<_>>()
        });
        messages.settle(soon());
        messages.push("after\n".to_owned());
        let lines = lines.join().unwrap();
        let (written, reports): (Vec<_>, Vec<_>) = lines.iter().partition(|l| l.starts_with('x'));
        let reported = reports.iter().map(|report| report.split(' ').nth(1).unwrap());
        let dropped: usize = reported.map(|count| count.parse::<usize>().unwrap()).sum();
        assert_eq!(written.len() + dropped, said);
    }

    #[test]
    fn dropped_messages_are_reported_where_they_are_missing() {
        let mut state = State { dropped: 12, ..State::default() };
        let told = "tenfold: 12 lines were not written, for nobody read them\n";
        assert_eq!(state.next().unwrap(), told);
        assert_eq!((state.bytes, state.dropped), (0, 0));
        assert!(state.next().is_none());
    }

    #[test]
    fn pending_messages_are_written_before_the_end() {
        let (reader, writer) = std::io::pipe().unwrap();
        let messages = Messages::to(writer);
        messages.push("first\n".to_owned());
        messages.push("last\n".to_owned());
        messages.settle(soon());
        let state = messages.queue.lock();
        assert!(state.waiting.is_empty() && !state.writing);
        drop(state);
        let lines: Vec<_> = BufReader::new(reader).lines().take(2).map(Result::unwrap).collect();
        assert_eq!(lines, ["first", "last"]);
    }
}
