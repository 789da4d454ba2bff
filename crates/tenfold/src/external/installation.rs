//! The program on this machine, and its version.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::config::BalancerProgram;

/// A program that is new enough.
#[derive(Clone, Debug)]
pub struct Installation {
    pub program: BalancerProgram,
    pub path: PathBuf,
    pub version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Installation {
    /// Looks in PATH, and where Debian has it, which is in the PATH of root only.
    pub fn find(program: BalancerProgram) -> anyhow::Result<Installation> {
        let name = program.name().to_lowercase();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories =
            std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
        let found = directories.map(|directory| directory.join(&name)).find(|path| path.is_file());
        let Some(path) = found else {
            bail!(
                "{} is not installed here: install it, as by `apt install {name}`, or leave out --balancer",
                program.name()
            );
        };
        let asked = Command::new(&path).arg("-v").output();
        let asked = asked.with_context(|| {
            format!("cannot run {}: install {name} again, or leave out --balancer", path.display())
        })?;
        let said = String::from_utf8_lossy(&asked.stdout) + String::from_utf8_lossy(&asked.stderr);
        let version = Version::within(&said).with_context(|| {
            format!("{} -v tells no version: install {name} 1.22 or later", path.display())
        });
        Installation::of(program, path, version?)
    }

    fn of(
        program: BalancerProgram,
        path: PathBuf,
        version: Version,
    ) -> anyhow::Result<Installation> {
        let (least, why) = match program {
            // Servers that are added while it runs.
            BalancerProgram::Haproxy => (Version(2, 6, 0), "adds servers while it runs"),
            // Idle connections to servers end before the servers close them.
            _ => (Version(1, 15, 3), "keeps connections to instances as it should"),
        };
        if version < least {
            let (name, path) = (program.name(), path.display());
            bail!(
                "{path} is {name} {version}, and only {least} or later {why}: install a later one, or leave out --balancer"
            );
        }
        Ok(Installation { program, path, version })
    }

    /// Name and version.
    pub fn describe(&self) -> String {
        format!("{} {}", self.program.name(), self.version)
    }

    /// A command of it.
    pub fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(directory);
        command
    }
}

impl Version {
    /// The first version in a text.
    fn within(text: &str) -> Option<Version> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
            let mut numbers = word.split('.').map(str::parse::<u32>);
            let mut next = || numbers.next()?.ok();
            let (major, minor) = (next()?, next()?);
            Some(Version(major, minor, next().unwrap_or(0)))
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Version(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let within = Version::within;
        assert_eq!(within("nginx version: nginx/1.22.1\n"), Some(Version(1, 22, 1)));
        let haproxy = "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/";
        assert_eq!(within(haproxy), Some(Version(2, 6, 12)));
        assert_eq!(within("version 3.1-dev2"), Some(Version(3, 1, 0)));
        assert_eq!(within("none"), None);
    }

    #[test]
    fn an_old_program_is_refused() {
        let of = |program, version| Installation::of(program, "/x".into(), version);
        let old = of(BalancerProgram::Haproxy, Version(2, 4, 22)).unwrap_err().to_string();
        assert!(
            old.starts_with("/x is HAProxy 2.4.22, and only 2.6.0 or later adds servers"),
            "{old}"
        );
        assert!(of(BalancerProgram::Nginx, Version(1, 14, 9)).is_err());
        assert_eq!(
            of(BalancerProgram::Nginx, Version(1, 22, 1)).unwrap().describe(),
            "nginx 1.22.1"
        );
    }
}
