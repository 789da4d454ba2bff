//! Every run, in an embedded SQLite file under the state directory.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, anyhow};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use crate::process::exit_code::misuse;
use crate::store::state_dir;

/// The open history.
pub struct History {
    database: Connection,
    path: PathBuf,
}

/// What it is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Write,
    /// Where the disk is full or may not be written, earlier runs can still be read.
    Read,
}

/// A run to keep.
pub struct NewRun<'a> {
    /// `plan`, `cost` or `load`.
    pub kind: &'a str,
    /// RFC 3339.
    pub started_at: &'a str,
    /// Where it was started: `npm start` is another app elsewhere.
    pub directory: &'a str,
    pub command: &'a str,
    /// The answer in one sentence.
    pub summary: &'a str,
    /// The whole value as JSON.
    pub document: &'a str,
}

/// A run as its user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunName {
    /// The number that `tenfold runs` lists.
    Number(i64),
    /// `last`, or `last~1` for the one before it.
    Latest { back: u32 },
}

/// A run as `tenfold runs` lists it.
pub struct Run {
    pub id: i64,
    pub kind: String,
    pub started_at: String,
    pub command: String,
    pub summary: String,
}

/// A run of the same kind, directory and command as another.
pub struct Alike {
    pub id: i64,
    pub started_at: String,
    /// As JSON.
    pub document: String,
}

/// Which runs are meant.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Runs before this one.
    pub before: Option<i64>,
    pub kind: Option<String>,
    /// A part of the command or of the summary.
    pub search: Option<String>,
}

const FILE: &str = "history.sqlite";
const SCHEMA_VERSION: i64 = 1;
const SCHEMA: &str = "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        started_at TEXT NOT NULL,
        directory TEXT NOT NULL,
        command TEXT NOT NULL,
        summary TEXT NOT NULL,
        document TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 1;
";

/// Makes the file, if need be, so that only its owner can read it, and closes an earlier one to others. SQLite gives its
/// other files the same rights. What fails here fails with SQLite's reason when it opens the file.
fn keep_private(path: &Path) {
    let _ = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let _ = state_dir::close_to_others(path, 0o600);
}

impl History {
    /// Opens the file and proves that it can be written, so that a measurement is not made in vain.
    pub fn open() -> anyhow::Result<History> {
        History::open_at(&state_dir::directory()?.join(FILE), Purpose::Write)
    }

    /// Opens the file, which need not be writable, nor be there.
    pub fn read() -> anyhow::Result<History> {
        History::open_at(&state_dir::place()?.join(FILE), Purpose::Read)
    }

    fn open_at(path: &Path, purpose: Purpose) -> anyhow::Result<History> {
        let explain = |error| explain(&error, path);
        let is_nothing = purpose == Purpose::Read && matches!(path.try_exists(), Ok(false));
        if purpose == Purpose::Write {
            keep_private(path);
        }
        let database =
            if is_nothing { Connection::open_in_memory() } else { Connection::open(path) };
        let database = database.map_err(explain)?;
        database.busy_timeout(std::time::Duration::from_secs(5)).map_err(explain)?;
        let mut history = History { database, path: path.to_owned() };
        if history.is_foreign().map_err(explain)? {
            return Err(foreign(path));
        }
        if purpose == Purpose::Write || history.version().map_err(explain)? == 0 {
            history.migrate().map_err(explain)?;
        }
        match history.version().map_err(explain)? {
            SCHEMA_VERSION => Ok(history),
            newer => Err(anyhow!(
                "{} was written by a newer Tenfold (schema {newer}): update Tenfold, or set TENFOLD_STATE_DIR",
                path.display()
            )),
        }
    }

    /// It has tables, and not those that a history has.
    fn is_foreign(&self) -> rusqlite::Result<bool> {
        // Before the version: another Tenfold may make both in between.
        let count = "SELECT count(*), total(name = 'runs') > 0 FROM sqlite_master";
        let count = self.database.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)));
        let (tables, has_runs): (i64, bool) = count?;
        Ok(tables > 0 && (!has_runs || self.version()? == 0))
    }

    fn version(&self) -> rusqlite::Result<i64> {
        self.database.pragma_query_value(None, "user_version", |row| row.get(0))
    }

    fn migrate(&mut self) -> rusqlite::Result<()> {
        let transaction =
            self.database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == 0 {
            transaction.execute_batch(SCHEMA)?;
        } else {
            // Writing the same value again proves that the disk takes a commit.
            transaction.pragma_update(None, "user_version", version)?;
        }
        transaction.commit()
    }

    /// Keeps a run and returns its number.
    pub fn add(&self, run: &NewRun<'_>) -> anyhow::Result<i64> {
        self.database
            .execute(
                "INSERT INTO runs (kind, started_at, directory, command, summary, document)
                 VALUES (?, ?, ?, ?, ?, ?)",
                params![
                    run.kind,
                    run.started_at,
                    run.directory,
                    run.command,
                    run.summary,
                    run.document
                ],
            )
            .map_err(|error| explain(&error, &self.path))
            .context("the run is not in the history")?;
        Ok(self.database.last_insert_rowid())
    }

    /// The newest runs, newest first.
    pub fn list(&self, most: usize) -> anyhow::Result<Vec<Run>> {
        self.find(&Filter::default(), most)
    }

    /// The newest of some runs, newest first.
    pub fn find(&self, filter: &Filter, most: usize) -> anyhow::Result<Vec<Run>> {
        let read = || {
            let mut statement = self.database.prepare(
                "SELECT id, kind, started_at, command, summary FROM runs
                 WHERE id < ifnull(?, id + 1) AND kind = ifnull(?, kind)
                 AND instr(lower(command || ' ' || summary), lower(ifnull(?, ''))) > 0
                 ORDER BY id DESC LIMIT ?",
            )?;
            let Filter { before, kind, search } = filter;
            let rows = statement.query_map(params![before, kind, search, most as i64], |row| {
                Ok(Run {
                    id: row.get(0)?,
                    kind: row.get(1)?,
                    started_at: row.get(2)?,
                    command: row.get(3)?,
                    summary: row.get(4)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<Run>>>()
        };
        read().map_err(|error| explain(&error, &self.path))
    }

    /// Kind and document of a run.
    pub fn document(&self, id: i64) -> anyhow::Result<(String, String)> {
        self.database
            .query_row("SELECT kind, document FROM runs WHERE id = ?", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|error| explain(&error, &self.path))?
            .ok_or_else(|| unknown(id))
    }

    /// The number of the run with that name; counted back among those of a kind, or among all.
    pub fn number(&self, name: RunName, kind: Option<&str>) -> anyhow::Result<i64> {
        let back = match name {
            RunName::Number(id) => return Ok(id),
            RunName::Latest { back } => back,
        };
        self.database
            .query_row(
                "SELECT id FROM runs WHERE kind = ifnull(?, kind) ORDER BY id DESC LIMIT 1 OFFSET ?",
                params![kind, back],
                |row| row.get(0),
            )
            .optional()
            .map_err(|error| explain(&error, &self.path))?
            .ok_or_else(|| {
                let runs = kind.map_or("runs".to_owned(), |kind| format!("{kind} runs"));
                misuse(format!("there are not that many {runs}: `tenfold runs` lists them"))
            })
    }

    /// A run, and those of its kind, directory and command with their numbers, times and documents, newest first.
    pub fn alike(&self, id: i64, most: usize) -> anyhow::Result<(Run, Vec<Alike>)> {
        let run = self.find(&Filter { before: id.checked_add(1), ..Filter::default() }, 1)?;
        let run = run.into_iter().find(|run| run.id == id).ok_or_else(|| unknown(id))?;
        let read = || {
            let mut statement = self.database.prepare(
                "SELECT a.id, a.started_at, a.document FROM runs a JOIN runs b
                 ON a.kind = b.kind AND a.directory = b.directory AND a.command = b.command
                 WHERE b.id = ? ORDER BY a.id DESC LIMIT ?",
            )?;
            let rows = statement.query_map(params![id, most as i64], |row| {
                Ok(Alike { id: row.get(0)?, started_at: row.get(1)?, document: row.get(2)? })
            })?;
            rows.collect::<rusqlite::Result<Vec<Alike>>>()
        };
        let alike = read().map_err(|error| explain(&error, &self.path))?;
        Ok((run, alike))
    }

    /// The documents of a kind, directory and command, newest first.
    pub fn documents(
        &self,
        kind: &str,
        directory: &str,
        command: &str,
    ) -> anyhow::Result<Vec<String>> {
        let read = || {
            let mut statement = self.database.prepare(
                "SELECT document FROM runs WHERE kind = ? AND directory = ? AND command = ?
                 ORDER BY id DESC LIMIT 20",
            )?;
            let rows = statement.query_map([kind, directory, command], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| explain(&error, &self.path))
    }
}

fn unknown(id: i64) -> anyhow::Error {
    misuse(format!("there is no run {id}: `tenfold runs` lists them"))
}

impl FromStr for RunName {
    type Err = String;

    fn from_str(text: &str) -> Result<RunName, String> {
        if text == "last" {
            return Ok(RunName::Latest { back: 0 });
        }
        let back = text.strip_prefix("last~").map(|back| back.parse().ok());
        let number = || text.parse().ok().map(RunName::Number);
        back.map_or_else(number, |back| back.map(|back| RunName::Latest { back })).ok_or_else(|| {
            format!("`{text}` is no run: write a number of `tenfold runs`, last, or last~1 for the one before it")
        })
    }
}

/// The working directory, as the history keeps it.
pub fn here() -> String {
    std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned()
}

/// The directory that an app runs in, which is the working directory unless it is named.
pub fn of_app(directory: Option<&Path>) -> String {
    let whole = directory.and_then(|directory| directory.canonicalize().ok());
    whole.map_or_else(here, |whole| whole.to_string_lossy().into_owned())
}

/// One sentence with a remedy for what SQLite reports.
fn explain(error: &rusqlite::Error, path: &Path) -> anyhow::Error {
    let file = path;
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => anyhow!(
            "the disk is full at {path}: free some space, or set TENFOLD_STATE_DIR to another disk"
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => anyhow!(
            "cannot write the history {path}: make it writable, or set TENFOLD_STATE_DIR to another directory"
        ),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => foreign(file),
        Some(ErrorCode::DatabaseBusy) => {
            anyhow!("another program holds the history {path}: try again when it has ended")
        }
        _ => anyhow!("the history {path} failed ({error}): move it away, or set TENFOLD_STATE_DIR"),
    }
}

fn foreign(path: &Path) -> anyhow::Error {
    let path = path.display();
    anyhow!("{path} is not a history of Tenfold: move it away, a new one will be made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        drop(History::open_at(&path, Purpose::Write).unwrap());
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        drop(History::open_at(&path, Purpose::Write).unwrap());
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_database_of_another_program_is_refused_and_left_as_it_is() {
        for version in [0, 1] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(FILE);
            let other = Connection::open(&path).unwrap();
            other.execute_batch("CREATE TABLE bookmarks (id INTEGER PRIMARY KEY)").unwrap();
            other.pragma_update(None, "user_version", version).unwrap();
            drop(other);
            let listed = History::open_at(&path, Purpose::Write).and_then(|it| it.list(1));
            let error = listed.err().unwrap().to_string();
            let said = "is not a history of Tenfold: move it away, a new one will be made";
            assert!(error.ends_with(said) && !error.contains("SELECT"), "{error}");
            let other = Connection::open(&path).unwrap();
            let tables = "SELECT group_concat(name) FROM sqlite_master";
            let tables: String = other.query_row(tables, [], |row| row.get(0)).unwrap();
            assert_eq!(tables, "bookmarks");
        }
    }

    #[test]
    fn an_app_is_in_its_own_directory_from_wherever_it_is_started() {
        let home = tempfile::tempdir().unwrap();
        let shop = home.path().join("shop");
        std::fs::create_dir(&shop).unwrap();
        let whole = shop.canonicalize().unwrap();
        let roundabout = shop.join("../shop/.");
        assert_eq!(
            [of_app(Some(&shop)), of_app(Some(&roundabout))],
            [(); 2].map(|()| whole.to_string_lossy())
        );
        assert_eq!(of_app(None), here());
    }

    fn run<'a>(summary: &'a str, document: &'a str) -> NewRun<'a> {
        let started_at = "2026-11-21T00:00:00Z";
        let (directory, command) = ("/app", "node app.js");
        NewRun { kind: "plan", started_at, directory, command, summary, document }
    }

    #[test]
    fn keeps_runs_across_openings() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.sqlite");
        let first =
            History::open_at(&path, Purpose::Write).unwrap().add(&run("one", "{}")).unwrap();
        let history = History::open_at(&path, Purpose::Write).unwrap();
        let second = history.add(&run("two", "[]")).unwrap();
        let listed: Vec<_> =
            history.list(10).unwrap().iter().map(|r| (r.id, r.summary.clone())).collect();
        assert_eq!(listed, [(second, "two".to_owned()), (first, "one".to_owned())]);
        assert_eq!(history.document(first).unwrap().1, "{}");
        assert_eq!(history.documents("plan", "/app", "node app.js").unwrap(), ["[]", "{}"]);
        assert!(history.documents("plan", "/other", "node app.js").unwrap().is_empty());
        let found = |filter: Filter| history.find(&filter, 9).unwrap().len();
        assert_eq!(found(Filter { before: Some(second), ..Filter::default() }), 1);
        assert_eq!(found(Filter { search: Some("TWO".to_owned()), ..Filter::default() }), 1);
        assert_eq!(found(Filter { kind: Some("load".to_owned()), ..Filter::default() }), 0);
        let (run, alike) = history.alike(first, 9).unwrap();
        assert_eq!((run.summary.as_str(), alike.len(), alike[0].id), ("one", 2, second));
        assert!(history.alike(99, 9).is_err());
        let named = |name: &str, kind| history.number(name.parse().unwrap(), kind);
        assert_eq!(named("last", None).unwrap(), second);
        assert_eq!(named("last~1", Some("plan")).unwrap(), first);
        let none = named("last", Some("load")).unwrap_err().to_string();
        assert!(none.contains("not that many load runs"), "{none}");
        assert!("last~x".parse::<RunName>().is_err() && "-".parse::<RunName>().is_err());
        assert!(history.document(99).unwrap_err().to_string().contains("no run 99"));
    }

    #[test]
    fn a_missing_history_reads_as_empty() {
        let nowhere = Path::new("/proc/no-such-place/history.sqlite");
        assert!(History::open_at(nowhere, Purpose::Write).is_err());
        assert!(History::open_at(nowhere, Purpose::Read).unwrap().list(9).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_history_is_described() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.sqlite");
        std::fs::write(&path, "something else entirely, long enough to have a header").unwrap();
        let error = History::open_at(&path, Purpose::Write).err().unwrap().to_string();
        assert!(error.contains("not a history"), "{error}");
        let error = History::open_at(directory.path(), Purpose::Write).err().unwrap().to_string();
        assert!(error.contains("cannot write"), "{error}");
    }

    #[test]
    fn a_newer_schema_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.sqlite");
        drop(History::open_at(&path, Purpose::Write).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
        assert!(
            History::open_at(&path, Purpose::Write)
                .err()
                .unwrap()
                .to_string()
                .contains("newer Tenfold")
        );
    }
}
