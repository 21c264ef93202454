//! `counts`: counts the instructions of the hit paths in the built library, and keeps them so.

use clap::Parser;
use homenode_benches::contestant::homenode_so;
use homenode_benches::ledger::{ENTRIES, Ledger, faults};
use homenode_benches::objdump::Library;
use homenode_benches::{Error, Result};
use std::path::PathBuf;
use std::process::ExitCode;

/// Counts the instructions of the hit paths; prints them, unless told to write or check the file.
#[derive(Debug, Parser)]
#[command(name = "counts")]
struct Cli {
    /// Write the file.
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Exit with 1 when the build differs from the file, in either direction.
    #[arg(long)]
    check: bool,
    /// The file of kept counts.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.txt"))]
    file: PathBuf,
    /// The library, of x86-64 or aarch64; libhomenode.so of the release build unless told.
    #[arg(long)]
    library: Option<PathBuf>,
}

fn count(library: Option<&PathBuf>) -> Result<(Ledger, Vec<String>)> {
    let path = library.map_or_else(homenode_so, |path| Ok(path.clone()))?;
    let library = Library::open(&path)?;
    let (mut ledger, mut wrong) = (Ledger::default(), Vec::new());
    for symbol in ENTRIES {
        match library.hit_path(symbol)? {
            Some(path) => {
                wrong.extend(faults(symbol, path));
                ledger.enter(symbol, path);
            }
            None => eprintln!("counts: {} does not export {symbol}", path.display()),
        }
    }
    Ok((ledger, wrong))
}

fn run(cli: &Cli) -> Result<Vec<String>> {
    let (built, mut wrong) = count(cli.library.as_ref())?;
    if cli.check {
        if !cli.file.exists() {
            wrong.push(format!("{} is not there: write it with --write", cli.file.display()));
            return Ok(wrong);
        }
        let text = std::fs::read_to_string(&cli.file).map_err(Error::file(&cli.file))?;
        wrong.extend(Ledger::parse(&text)?.differences(&built));
    } else if cli.write {
        std::fs::write(&cli.file, built.text()).map_err(Error::file(&cli.file))?;
    } else {
        print!("{}", built.text());
    }
    Ok(wrong)
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            for line in wrong {
                eprintln!("counts: {line}");
            }
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("counts: {error}");
            ExitCode::from(2)
        }
    }
}
