//! The command `homenode`.
//!
//! | module | what it does |
//! |---|---|
//! | `options` | the command line |
//! | `run` | `homenode run`: readies the environment and becomes the program |
//! | `library` | finds libhomenode.so.0 |
//! | `program` | finds the program, and says why one cannot be served |
//! | `image` | what an ELF file tells of itself |
//! | `privilege` | whether a program gains rights when it starts |
//!
//! `run` finds the library and does not carry it: a preload has to be a file that children find, too, for as
//! long as any of them runs, and one that is installed is shared by all and replaced with the package.

mod image;
mod library;
mod options;
mod privilege;
mod program;
mod run;

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use homenode_topology::Machine;

use options::{Command, Options, Topo};

/// The command failed before there was a program to run.  As env(1), nohup(1) and timeout(1) have it.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            // Where the text cannot be printed, the status still tells.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS };
        }
    };
    match options.command {
        Command::Run(options) => {
            let failure = run::run(&options);
            complain(&failure);
            ExitCode::from(failure.status())
        }
        Command::Topo(options) => topo(&options),
    }
}

fn topo(options: &Topo) -> ExitCode {
    let text = match Machine::this() {
        Ok(machine) if options.json => machine.to_json() + "\n",
        Ok(machine) => machine.to_string(),
        Err(error) => {
            complain(&error);
            return ExitCode::from(FAILED);
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        // A reader that has seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&error);
            ExitCode::from(FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}

fn complain(what: &dyn Display) {
    eprintln!("homenode: {what}");
}
