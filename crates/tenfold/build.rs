//! Takes the page's script and style from `web/dist`, where `make build` puts them. Without them, which is to say
//! without Node, reports hold tables and no charts.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let built = Path::new(&manifest).join("../../web/dist");
    let out = env::var("OUT_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed={}", built.display());
    for name in ["report.js", "report.css"] {
        fs::write(Path::new(&out).join(name), fs::read(built.join(name)).unwrap_or_default())?;
    }
    Ok(())
}
