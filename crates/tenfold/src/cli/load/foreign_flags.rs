//! Flags of other load tools that have another name here. An error names ours.

use clap::Args;

use super::script::{is_program, not_run};
use crate::config::quantity;
use crate::process::exit_code::misuse;

#[derive(Args, Debug)]
pub struct ForeignFlags {
    /// ab: a file to post; Artillery: a payload
    #[arg(short = 'p', hide = true)]
    post: Option<String>,
    /// ab: the body's type; wrk: a timeout
    #[arg(short = 'T', hide = true)]
    type_or_timeout: Option<String>,
    /// ab: name and password
    #[arg(short = 'A', hide = true)]
    password: Option<String>,
    /// ab: a cookie
    #[arg(short = 'C', hide = true)]
    cookie: Option<String>,
    /// ab: HEAD
    #[arg(short = 'i', hide = true)]
    head: bool,
    /// wrk: a program; ab: a timeout
    #[arg(short = 's', hide = true)]
    program_or_timeout: Option<String>,
    /// Locust: a program
    #[arg(short = 'f', hide = true)]
    program: Option<String>,
}

impl ForeignFlags {
    /// Refuses a flag with our name for it. Passwords and cookies are not repeated.
    pub fn check(&self) -> anyhow::Result<()> {
        let programs = self.program.iter().chain(&self.program_or_timeout);
        if let Some(program) = programs.clone().find(|text| is_program(text)) {
            return Err(not_run(program));
        }
        let called = if self.post.as_ref().is_some_and(|file| file.ends_with(".csv")) {
            "-p FILE.csv is no option here: name the file in the script, as config.payload"
                .to_owned()
        } else if let Some(file) = &self.post {
            format!("-p FILE is --body @FILE here: write --body @{file}")
        } else if let Some(text) = &self.type_or_timeout {
            match quantity::seconds(text) {
                Ok(_) => format!("-T TIME is --timeout TIME here: write --timeout {text}"),
                Err(_) => format!("-T TYPE is a header here: write -H \"Content-Type: {text}\""),
            }
        } else if self.password.is_some() {
            "-A NAME:PASSWORD is a part of the URL here: write http://NAME:PASSWORD@HOST/PATH"
                .to_owned()
        } else if self.cookie.is_some() {
            "-C NAME=VALUE is a header here: write -H \"Cookie: NAME=VALUE\"".to_owned()
        } else if self.head {
            "-i is a method here: write -X HEAD".to_owned()
        } else if let Some(text) = &self.program_or_timeout {
            match quantity::seconds(text) {
                Ok(_) => format!("-s TIME is --timeout TIME here: write --timeout {text}"),
                Err(_) => "-s SCRIPT is no option here: write SCRIPT.yml, an Artillery script, in place of the URL".to_owned(),
            }
        } else if self.program.is_some() {
            "-f FILE is no option here: write SCRIPT.yml, an Artillery script, in place of the URL"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(misuse(called))
    }
}

/// ab's `-r`, which takes no number.
pub fn without_number(flag: &str, value: &str) -> Option<String> {
    let is_abs = flag == "-r <R>" && (value.is_empty() || value.contains("://"));
    is_abs.then(|| "ab's -r is not needed here: a load goes on after errors".to_owned())
}

/// Hints for unknown flags that other tools have.
pub fn hint(unknown: &str, arguments: &[String]) -> Option<String> {
    let called = match unknown {
        "-z" => "-z TIME is how long: write --duration TIME here, or -d TIME",
        "-o" | "--output" => "-o FILE is --json FILE here",
        "--html" => "--html FILE is --report FILE here",
        "-l" => "-l is not needed here: answers may differ in length",
        "-g" => "-g FILE is --hgrm FILE here, or --ndjson FILE for a line a second",
        "-a" => "-a NAME:PASSWORD is a part of the URL here: write http://NAME:PASSWORD@HOST/PATH",
        "-D" => "-D FILE is --body @FILE here",
        _ if unknown.starts_with('-') => return None,
        script if arguments.get(2).is_some_and(|word| word == "run") => {
            return Some(format!("A script needs no `run` here: write tenfold load {script}"));
        }
        _ if arguments.windows(2).any(|w| w[0] == "-q" && w[1].parse::<f64>().is_ok()) => {
            "-q is --quiet here and takes no number: requests a second are --rate R"
        }
        _ => return None,
    };
    Some(called.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        foreign_flags: ForeignFlags,
    }

    #[test]
    fn flags_of_other_tools_name_ours() {
        let check = |line: &str| {
            let words = std::iter::once("load").chain(line.split(' '));
            Line::try_parse_from(words).unwrap().foreign_flags.check().unwrap_err().to_string()
        };
        for (line, remedy) in [
            ("-p order.json -T application/json", "write --body @order.json"),
            ("-p users.csv", "in the script, as config.payload"),
            ("-T application/json", "write -H \"Content-Type: application/json\""),
            ("-T 2s", "write --timeout 2s"),
            ("-s 30", "write --timeout 30"),
            ("-s post.lua", "post.lua is a program of another load tool"),
            ("-f locustfile.py", "locustfile.py is a program of another load tool"),
            ("-f shop.yml", "in place of the URL"),
            ("-i", "write -X HEAD"),
            ("-A me:s3cret", "http://NAME:PASSWORD@HOST/PATH"),
            ("-C id=s3cret", "-H \"Cookie: NAME=VALUE\""),
        ] {
            let said = check(line);
            assert!(said.contains(remedy) && !said.contains("s3cret"), "{line}: {said}");
        }
    }
}
