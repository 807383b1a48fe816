//! Writes the golden cases of this repository: `cargo run -p traces --example make_golden`.
//!
//! `case.toml` and the inputs of every case are written anew, from seeds. `expected.txt` is written only where its values
//! are measurements (`measured-*`); elsewhere it is `onic golden bless` that writes it. Without the measurements beside
//! the checkout the measured cases are left as they are, and that is said.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use traces::golden::{built_in, measured};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for made in built_in::all() {
        write(&root.join("golden"), &made, None)?;
    }
    let csv = root.join("../../shared/vectors/opennic_rss.csv");
    let Ok(text) = fs::read_to_string(&csv) else {
        println!("skipped: measured-*: {} is not there", csv.display());
        return Ok(());
    };
    for (made, expected) in measured::all(&measured::parse(&text)?) {
        write(&root.join("golden"), &made, Some(expected.to_string()))?;
    }
    Ok(())
}

fn write(golden: &Path, made: &built_in::Made, expected: Option<String>) -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = golden.join(made.name);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("case.toml"), made.case.to_toml())?;
    let mut bytes = 0;
    for (file, contents) in &made.files {
        fs::write(folder.join(file), contents)?;
        bytes += contents.len();
    }
    if let Some(expected) = expected {
        fs::write(folder.join("expected.txt"), expected)?;
    }
    let frames: u64 = made.case.input.iter().map(|input| input.frames).sum();
    println!("{}: {frames} frames, {bytes} bytes", made.name);
    Ok(())
}
