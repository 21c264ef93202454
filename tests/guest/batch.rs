//! One boot of a machine, in which all its chosen programs run one after the other.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::machines::Machine;

pub(crate) const VM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vm");

/// Seconds that a program may take; emulated code runs some 20 times slower.
const PROGRAM_LIMIT: u32 = 120;
/// Seconds that a machine may take with all its programs.
const MACHINE_LIMIT: &str = "600";
/// Starts a line between the programs' own.
const MARK: &str = "@@guest";

/// How a program ended.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// With the rows of tables that it printed.
    Passed(String),
    Failed(String),
}

/// The programs of one machine, and how they ended once they ran.
#[derive(Debug)]
pub(crate) struct Batch {
    machine: &'static Machine,
    cases: Vec<&'static str>,
    verdicts: OnceLock<HashMap<&'static str, Verdict>>,
}

impl Batch {
    pub(crate) fn new(machine: &'static Machine, cases: Vec<&'static str>) -> Self {
        Self { machine, cases, verdicts: OnceLock::new() }
    }

    /// How a case ended; the first question boots the machine.
    pub(crate) fn verdict(&self, case: &str) -> Verdict {
        self.verdicts.get_or_init(|| self.run())[case].clone()
    }

    fn run(&self) -> HashMap<&'static str, Verdict> {
        let name: String = self.machine.name.replace(' ', "-");
        let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guest-{name}"));
        fs::write(&script, self.script()).expect("the folder for scratch files is there");
        let output = Command::new(VM)
            .args(self.machine.options)
            .args(["--timeout", MACHINE_LIMIT, "--", "/bin/sh"])
            .arg(&script)
            .stdin(Stdio::null())
            .output()
            .expect("tests/guest/vm starts");
        let said = String::from_utf8_lossy(&output.stdout);
        let last_words = String::from_utf8_lossy(&output.stderr);
        let verdict = |(number, &case)| (case, verdict(number, &said, &last_words));
        self.cases.iter().enumerate().map(verdict).collect()
    }

    /// What the guest runs: each program between two marks, and the machine's settings as they were after it.
    fn script(&self) -> String {
        let mut script = format!(". {}/after_each\nexec 2>&1\n", env!("CARGO_MANIFEST_DIR"));
        for (number, case) in self.cases.iter().enumerate() {
            let command = command(case);
            writeln!(
                script,
                "echo '{MARK} {number} begins'\n\
                 timeout -s KILL {PROGRAM_LIMIT} env LD_PRELOAD={library} TEST_NEEDS_HOMENODE=1 {command}\n\
                 printf '\\n{MARK} {number} ends %s\\n' $?\n\
                 after_each",
                library = shared_library().display(),
            )
            .expect("a string takes all");
        }
        script
    }
}

/// The part of `said` between the marks of case `number`, judged.
fn verdict(number: usize, said: &str, last_words: &str) -> Verdict {
    let Some((_, rest)) = said.split_once(&format!("{MARK} {number} begins\n")) else {
        return Verdict::Failed(format!("the machine did not come this far: {last_words}"));
    };
    let Some((own, rest)) = rest.split_once(&format!("\n{MARK} {number} ends ")) else {
        return Verdict::Failed(format!("the machine ended amid it: {rest}{last_words}"));
    };
    match rest.lines().next() {
        Some("0") => {
            let rows = own.lines().filter(|line| line.starts_with('|'));
            Verdict::Passed(rows.map(|row| format!("{row}\n")).collect())
        }
        Some("137") => {
            Verdict::Failed(format!("killed, if not before, after {PROGRAM_LIMIT} s: {own}"))
        }
        status => Verdict::Failed(format!("exit code {}: {own}", status.unwrap_or_default())),
    }
}

/// The words of a case, its program compiled, and a script of this folder by its path.
fn command(case: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let word = |word: &str| match word.strip_suffix(".c") {
        Some(stem) => compile(stem).display().to_string(),
        None if here.join(word).is_file() => format!("sh {}", here.join(word).display()),
        None => word.to_owned(),
    };
    case.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn compile(stem: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = here.with_file_name("c");
    let source = format!("{stem}.c");
    let own = here.join(&source);
    let input = if own.is_file() { own } else { shared.join(&source) };
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guest-{stem}"));
    // -fno-builtin: the compiler removes a malloc whose result it can follow.
    let result = Command::new("cc")
        .args(["-O1", "-g", "-pthread", "-fno-builtin", "-w", "-I"])
        .arg(&shared)
        .arg("-I")
        .arg(here.join("../../cabi/include"))
        .arg("-o")
        .args([&output, &input])
        .output()
        .expect("cc starts");
    assert!(result.status.success(), "{source}: {}", String::from_utf8_lossy(&result.stderr));
    output
}

/// The library that `make build` left.
fn shared_library() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("release");
    let path = path.join("libhomenode.so");
    assert!(path.is_file(), "{} is absent: run `make build` first", path.display());
    path
}
