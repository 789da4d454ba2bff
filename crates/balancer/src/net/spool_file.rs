//! One unlinked temporary file for what clients are slow to read, shared by all threads.
//!
//! It is a single file, because a file for each answer would take the open files that connections need. It
//! is cut into blocks, so that its size follows what waits now, not what has ever passed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::config::limits::Limits;

/// The file, and which blocks of it are in use.
pub(crate) struct SpoolFile {
    folder: PathBuf,
    /// Blocks that all answers together may have.
    most: usize,
    /// Blocks that one answer may have.
    most_of_answer: usize,
    notice: fn(&str),
    state: Mutex<State>,
    /// Opened with the first block, and closed with the last one, which gives its space back. Opening may
    /// block, so it has a lock of its own.
    file: Mutex<Option<Arc<File>>>,
    answers: AtomicU64,
    failures: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Blocks before `end` that nobody has. The lowest is used first, so that the file stays short.
    free: BTreeSet<u32>,
    end: u32,
    /// No block is given before that: the file could not be written.
    failed_until: Option<Instant>,
    /// Whether the operator knows.
    is_told: bool,
}

/// A block of the file. It is given back when dropped.
pub(crate) struct Block {
    spool_file: Arc<SpoolFile>,
    index: u32,
}

/// Large enough for few system calls. Small enough that a client that takes little holds little.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;

/// How long nothing is written after a failure. A full disk is not asked for every answer.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);

impl SpoolFile {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let Limits { spool_file_bytes, spool_total_bytes, .. } = config.limits;
        Arc::new(SpoolFile {
            folder: config.spool_folder.clone(),
            most: blocks(spool_total_bytes),
            most_of_answer: blocks(spool_file_bytes),
            notice: config.notice,
            state: Mutex::default(),
            file: Mutex::default(),
            answers: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    /// A block for an answer that has `held` of them. An answer gets no more than are left, so that a few
    /// large ones leave room to all others.
    pub(crate) fn block(self: &Arc<Self>, held: usize) -> Option<Block> {
        let mut state = self.state();
        let left = self.most.saturating_sub(state.used());
        if held >= self.most_of_answer || held >= left {
            return None;
        }
        if state.failed_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        state.failed_until = None;
        let index = match state.free.pop_first() {
            Some(free) => free,
            None => {
                state.end += 1;
                state.end - 1
            }
        };
        Some(Block { spool_file: Arc::clone(self), index })
    }

    /// Counts an answer that has its first block.
    pub(crate) fn count_answer(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers that had a block so far.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Reads and writes that failed so far.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        (self.state().used() * BLOCK_BYTES) as u64
    }

    fn file(&self) -> io::Result<Arc<File>> {
        let mut opened = self.opened();
        if let Some(file) = &*opened {
            return Ok(Arc::clone(file));
        }
        // It has no name (O_TMPFILE, or removed at once), and only its owner could read it.
        let file = Arc::new(tempfile::tempfile_in(&self.folder)?);
        *opened = Some(Arc::clone(&file));
        Ok(file)
    }

    fn failed(&self, error: &io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        state.failed_until = Some(Instant::now() + PAUSE_AFTER_FAILURE);
        let is_told = std::mem::replace(&mut state.is_told, true);
        drop(state);
        if !is_told {
            let folder = self.folder.display();
            (self.notice)(&format!(
                "answers that clients read slowly cannot be kept in {folder} ({error}), so their slots wait for the clients; free space there, or name another folder with spool_folder"
            ));
        }
    }

    fn opened(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn used(&self) -> usize {
        self.end as usize - self.free.len()
    }
}

impl Block {
    /// Writes up to [`BLOCK_BYTES`]. It may block.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.spool_file.file().and_then(|file| file.write_all_at(bytes, self.at()));
        written.inspect_err(|error| self.spool_file.failed(error))
    }

    /// Reads what was written at `offset`. It may block.
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()> {
        let at = self.at() + offset as u64;
        let read = self.spool_file.file().and_then(|file| file.read_exact_at(bytes, at));
        read.inspect_err(|error| self.spool_file.failed(error))
    }

    fn at(&self) -> u64 {
        u64::from(self.index) * BLOCK_BYTES as u64
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.spool_file.state();
        state.free.insert(self.index);
        if state.used() > 0 {
            return;
        }
        state.free.clear();
        state.end = 0;
        // Nobody opens it now, because nobody has a block.
        let file = self.spool_file.opened().take();
        drop(state);
        // The system frees the space of a large file within the call that closes it.
        if let (Some(file), Ok(runtime)) = (file, tokio::runtime::Handle::try_current()) {
            runtime.spawn_blocking(move || drop(file));
        }
    }
}

fn blocks(bytes: u64) -> usize {
    let most = u64::from(u32::MAX);
    (bytes / BLOCK_BYTES as u64).min(most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool_file(folder: PathBuf, blocks: u64, of_answer: u64) -> Arc<SpoolFile> {
        let mut config = Config { spool_folder: folder, notice: |_| (), ..Config::default() };
        config.limits.spool_total_bytes = blocks * BLOCK_BYTES as u64;
        config.limits.spool_file_bytes = of_answer * BLOCK_BYTES as u64;
        SpoolFile::new(&config)
    }

    #[test]
    fn blocks_keep_what_is_written_and_are_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let spool_file = spool_file(folder.path().into(), 4, 4);
        let [one, two] = [0, 1].map(|held| spool_file.block(held).unwrap());
        one.write(b"one").unwrap();
        two.write(&[b'2'; BLOCK_BYTES]).unwrap();
        let mut bytes = [0; 2];
        one.read(1, &mut bytes).unwrap();
        assert_eq!((&bytes, spool_file.used()), (b"ne", 2 * BLOCK_BYTES as u64));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has a name");
        drop(one);
        assert_eq!(spool_file.block(0).unwrap().index, 0);
        drop(two);
        assert!(spool_file.opened().is_none(), "the file is kept without need");
    }

    #[test]
    fn an_answer_gets_no_more_than_its_limit_and_than_it_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let limited = spool_file(folder.path().into(), 100, 2);
        let _held = [0, 1].map(|held| limited.block(held).unwrap());
        assert!(limited.block(2).is_none());
        let shared = spool_file(folder.path().into(), 5, 100);
        let held: Vec<_> = (0..).map_while(|held| shared.block(held)).collect();
        assert_eq!(held.len(), 3);
        assert!(shared.block(0).is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_left_alone_for_a_while() {
        let spool_file = spool_file("/nonexistent".into(), 5, 5);
        assert!(spool_file.block(0).unwrap().write(b"x").is_err());
        assert!(spool_file.block(0).is_none());
    }
}
