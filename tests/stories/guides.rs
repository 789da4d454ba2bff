//! What guides show as output is what the program prints of a kept run.
//!
//! The program that UPDATE_GUIDES names makes the runs anew, which wants a quiet machine and ten minutes:
//! `UPDATE_GUIDES=target/release/tenfold cargo test -p tenfold --test stories guides_show`

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Home, alone, said, shared};

struct Guide {
    file: &'static str,
    /// The output stands between `<!-- NAME -->` and `<!-- /NAME -->`.
    marker: &'static str,
    shown: fn(&str) -> String,
    /// The kept run: `tests/guides/NAME.json`.
    kept: &'static str,
    /// Where the run is made, and by which words.
    folder: &'static str,
    words: &'static str,
}

const GUIDES: [Guide; 7] = [
    Guide {
        file: "README.md",
        marker: "demo",
        shown: answer_and_table,
        kept: "demo",
        folder: ".",
        words: "plan --rate 150 --p95 100ms -- tenfold demo-app",
    },
    example("examples/blocking/README.md", "blocking", "examples/blocking", "plan"),
    example("examples/fibscale/README.md", "fibscale", "examples/fibscale", "plan"),
    example("examples/search/README.md", "search", "examples/search", "plan"),
    example("examples/threads/README.md", "threads", "examples/threads", "plan --sweep=8s"),
    Guide {
        file: "docs/cost.md",
        marker: "plan",
        shown: prices,
        kept: "prices",
        folder: "examples/blocking",
        words: "plan --rate 100 --prices aws:us-east-1",
    },
    Guide {
        file: "docs/cost.md",
        marker: "cost",
        shown: str::to_owned,
        kept: "cost",
        folder: "examples/static-cost",
        words: "cost --cpus 0.1,0.3,0.5,0.7,1 --memory 2M,6M,10M,14M,20M --instances 1,3,5,7,10 \
                --longest 8s -- ./static {port} index.html 430",
    },
];

const fn example(
    file: &'static str,
    kept: &'static str,
    folder: &'static str,
    words: &'static str,
) -> Guide {
    Guide { file, marker: "output", shown: str::to_owned, kept, folder, words }
}

fn answer_and_table(output: &str) -> String {
    let paragraphs: Vec<&str> = output.splitn(4, "\n\n").take(3).collect();
    paragraphs.join("\n\n") + "\n"
}

fn prices(output: &str) -> String {
    let is_prices = |paragraph: &&str| paragraph.starts_with("What ");
    output.split("\n\n").find(is_prices).unwrap().trim_end().to_owned() + "\n"
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Guide {
    fn run(&self) -> PathBuf {
        root().join("tests/guides").join(self.kept).with_extension("json")
    }

    /// What the guide shows now, where in its text that is, and the text.
    fn output(&self) -> (String, std::ops::Range<usize>, String) {
        let text = std::fs::read_to_string(root().join(self.file)).unwrap();
        let marker = format!("<!-- {} -->\n```\n", self.marker);
        let mut start = text.find(&marker).expect(&marker) + marker.len();
        // The command may stand above its output.
        if text[start..].starts_with("$ ") {
            start += text[start..].find('\n').unwrap() + 1;
        }
        let end = start + text[start..].find("```\n").unwrap();
        (text[start..end].to_owned(), start..end, text)
    }

    /// What the program prints of the kept run.
    fn printed(&self, home: &Home) -> String {
        let output = home.tenfold("show").arg(self.run()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        (self.shown)(&String::from_utf8(output.stdout).unwrap())
    }

    /// Makes the run anew, without the place of this checkout, and puts its output into the guide.
    fn record(&self, home: &Home, program: &Path) {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", program.parent().unwrap().display());
        let (command, words) = self.words.split_once(' ').unwrap_or((self.words, ""));
        let mut measure = Command::new(program);
        measure.args([command, "--quiet", "--json"]).arg(self.run()).args(words.split_whitespace());
        measure.env("TENFOLD_STATE_DIR", home.path()).env("PATH", path);
        let output = measure.current_dir(root().join(self.folder)).output().unwrap();
        assert!(output.status.success(), "{}: {}", self.kept, said(&output));
        let run = std::fs::read_to_string(self.run()).unwrap();
        let anywhere = run.replace(root().to_str().unwrap(), "/src/tenfold");
        std::fs::write(self.run(), anywhere).unwrap();
        let (_, place, mut text) = self.output();
        text.replace_range(place, &self.printed(home));
        std::fs::write(root().join(self.file), text).unwrap();
    }
}

#[test]
fn guides_show_what_the_program_prints() {
    let home = Home::new();
    if let Some(program) = std::env::var_os("UPDATE_GUIDES") {
        let program = root().join(program);
        let _machine = alone();
        let compile = ["-O2", "-static", "-o", "static", "static.c"];
        let folder = root().join("examples/static-cost");
        assert!(Command::new("cc").args(compile).current_dir(folder).status().unwrap().success());
        GUIDES.iter().for_each(|guide| guide.record(&home, &program));
    }
    let _machine = shared();
    for guide in &GUIDES {
        assert_eq!(guide.output().0, guide.printed(&home), "{}: {}", guide.file, guide.kept);
    }
}
