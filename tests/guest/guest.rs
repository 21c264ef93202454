//! C programs run on the release library in emulated machines: 1 to 8 nodes, nodes without memory, old kernels.
//!
//! All programs of one machine share one boot, which happens when the first of them is asked for; each is a test
//! of its own. A program is of this folder, or of `tests/c`. Where no guest can be run, all are ignored, and the
//! reason is told.

mod batch;
mod machines;

use std::process::{Command, ExitCode};
use std::sync::Arc;

use batch::{Batch, Verdict};
use libtest_mimic::{Arguments, Failed, Trial};
use machines::{MACHINES, Machine};

/// What `vm` answers where this machine cannot run a guest.
const CANNOT: i32 = 77;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let can_run = arguments.list || MACHINES.iter().all(is_fetched);
    let trials = MACHINES.iter().flat_map(|machine| trials(machine, &arguments, can_run)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Fills the cache for a machine, so that no test's time is spent on it.
fn is_fetched(machine: &Machine) -> bool {
    let status = Command::new(batch::VM).args(machine.options).arg("--fetch").status();
    match status.expect("tests/guest/vm starts").code() {
        Some(0) => true,
        Some(CANNOT) => false,
        other => panic!("tests/guest/vm --fetch ends with {other:?}"),
    }
}

fn trials(machine: &'static Machine, arguments: &Arguments, can_run: bool) -> Vec<Trial> {
    let name = |case: &str| format!("{} {case}", machine.name);
    let chosen = machine.cases.iter().filter(|case| is_chosen(&name(case), arguments)).copied();
    let chosen: Vec<_> = chosen.collect();
    let batch = Arc::new(Batch::new(machine, chosen.clone()));
    let trial = |case: &'static str| {
        let batch = Arc::clone(&batch);
        let test = move || match batch.verdict(case) {
            Verdict::Passed(rows) => {
                rows.lines().for_each(|row| eprintln!("{} {row}", machine.name));
                Ok(())
            }
            Verdict::Failed(why) => Err(Failed::from(why)),
        };
        Trial::test(name(case), test).with_ignored_flag(!can_run)
    };
    chosen.into_iter().map(trial).collect()
}

/// As the test runner itself chooses: a boot runs only what was asked for.
fn is_chosen(name: &str, arguments: &Arguments) -> bool {
    let matches =
        |pattern: &String| if arguments.exact { name == pattern } else { name.contains(pattern) };
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}
