//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs programs on homenode, a memory allocator that keeps memory on its NUMA node, and shows the machine.
#[derive(Debug, Parser)]
#[command(name = "homenode", version, arg_required_else_help = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Topo(Topo),
}

/// Run a program with homenode as its malloc
///
/// The library is preloaded, so that programs which the program starts have it, too. Exits as the program does;
/// with 127 where there is no such program, 126 where it cannot be run or not be served, 125 where the command
/// itself fails.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Where memory is placed: local, bind:1, preferred:0,1, interleave:0-3, weighted:0*3,2*1 or firsttouch
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) policy: Option<String>,
    /// Count hits of the caches in the statistics, too; slower
    #[arg(long)]
    pub(crate) stats: bool,
    /// Check every call for faults of the program; much slower
    #[arg(long, value_name = "HOW")]
    pub(crate) check: Option<Check>,
    /// The library to preload, in place of the one that was installed with this command
    #[arg(long, value_name = "FILE", env = "HOMENODE_LIBRARY")]
    pub(crate) library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Check {
    Off,
    Full,
}

/// Show the machine: nodes, caches, memory tiers, devices, distances, bandwidths and latencies
#[derive(Args, Debug)]
pub(crate) struct Topo {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The text of a policy, checked as the library does when it starts.
fn policy(text: &str) -> Result<String, homenode_core::ParseError> {
    text.parse::<homenode_core::Policy>().map(|_| text.into())
}
