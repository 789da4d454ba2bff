//! `tenfold completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::process::exit_code::Outcome;
use crate::store::file;

#[derive(Args, Debug)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let mut command = super::Cli::command();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "tenfold", &mut script);
        file::write(&String::from_utf8_lossy(&script), "-".as_ref())?;
        Ok(Outcome::Done)
    }
}
