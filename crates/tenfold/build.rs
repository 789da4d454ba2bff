//! Takes scripts and styles of reports and of the live page from `web/dist`, where `make build` puts them. Without
//! them, which is to say without Node, reports hold tables and no charts, and the live page says how to build it.

use std::io::Write;
use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let built = Path::new(&manifest).join("../../web/dist");
    let out = env::var("OUT_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed={}", built.display());
    for name in ["report.js", "report.css", "page.js", "page.css"] {
        let bytes = fs::read(built.join(name)).unwrap_or_default();
        if name.starts_with("page") {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&bytes)?;
            fs::write(Path::new(&out).join(format!("{name}.gz")), packed.finish()?)?;
        }
        fs::write(Path::new(&out).join(name), bytes)?;
    }
    Ok(())
}
