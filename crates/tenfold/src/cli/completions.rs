//! `tenfold completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::outcome::Outcome;

#[derive(Args, Debug)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let mut command = super::Cli::command();
        clap_complete::generate(self.shell, &mut command, "tenfold", &mut std::io::stdout());
        Ok(Outcome::Done)
    }
}
