//! Compiles the C programs of `tests/c` and runs them on the release library, each with a time limit.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// What a C program answers when the system does not let it test anything.
const SKIPPED: i32 = 77;

/// One way to run the library; a fault often shows in one of them only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// As a user meets it: libc's rseq registration.
    Default,
    /// CPU 0 is node 0, CPU 1 is node 1: frees off the node take the remote path.
    FakeNodes,
    /// libc registers nothing, so the library registers an area of its own.
    OwnRseq,
    /// No rseq at all.
    NoRseq,
}

pub(crate) const EVERY_SETTING: &[Setting] =
    &[Setting::Default, Setting::FakeNodes, Setting::OwnRseq, Setting::NoRseq];

impl Setting {
    fn variables(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Default => None,
            Self::FakeNodes => Some(("HOMENODE_FAKE_NODES", "2")),
            Self::OwnRseq => Some(("GLIBC_TUNABLES", "glibc.pthread.rseq=0")),
            Self::NoRseq => Some(("HOMENODE_RSEQ", "off")),
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) hung: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    pub(crate) fn passed(&self) -> bool {
        !self.hung && (self.status.success() || self.status.code() == Some(SKIPPED))
    }
}

/// A program about to be run.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    name: String,
    limit: Duration,
}

impl Run {
    /// `program` with nothing preloaded and a clean set of variables.
    pub(crate) fn plain(program: &Path) -> Self {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("HOMENODE_") || text.starts_with("LD_") || text == "GLIBC_TUNABLES"
            {
                command.env_remove(&name);
            }
        }
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { command, name, limit: Duration::from_secs(60) }
    }

    /// `program` on the library, in `setting`.
    pub(crate) fn on_homenode(program: &Path, setting: Setting) -> Self {
        let mut run = Self::plain(program).preload(&[shared_library()]);
        run.command.env("TEST_NEEDS_HOMENODE", "1");
        if let Some((name, value)) = setting.variables() {
            run.command.env(name, value);
        }
        run.name += &format!(" ({setting:?})");
        run
    }

    pub(crate) fn preload(self, libraries: &[PathBuf]) -> Self {
        let paths: Vec<_> = libraries.iter().map(|path| path.to_string_lossy()).collect();
        self.env("LD_PRELOAD", &paths.join(":"))
    }

    pub(crate) fn args<A: AsRef<std::ffi::OsStr>>(mut self, args: &[A]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(self, name: &str, value: &str) -> Self {
        self.env_os(name, value.as_ref())
    }

    pub(crate) fn env_os(mut self, name: &str, value: &std::ffi::OsStr) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn user(mut self, id: u32) -> Self {
        self.command.uid(id).gid(id);
        self
    }

    pub(crate) fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs to the end or to the limit. Output goes through files, so that a stray grandchild that
    /// holds a pipe open cannot hold the test up.
    pub(crate) fn outcome(mut self) -> Outcome {
        let stdout = scratch("out");
        let stderr = scratch("err");
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).expect("a scratch file"))
            .stderr(File::create(&stderr).expect("a scratch file"))
            .process_group(0)
            .spawn();
        let mut child =
            child.unwrap_or_else(|error| panic!("{} does not start: {error}", self.name));
        let end = Instant::now() + self.limit;
        let mut hung = false;
        let status = loop {
            if let Some(status) = child.try_wait().expect("the child is ours to wait for") {
                break status;
            }
            if Instant::now() > end {
                hung = true;
                kill_group(child.id());
                break child.wait().expect("the child is ours to wait for");
            }
            thread::sleep(Duration::from_millis(3));
        };
        Outcome { status, hung, stdout: take(&stdout), stderr: take(&stderr) }
    }

    /// Fails the test unless the program ends with 0 (or says that there is nothing to test here).
    pub(crate) fn passes(self) {
        let name = self.name.clone();
        let limit = self.limit;
        let outcome = self.outcome();
        assert!(!outcome.hung, "{name} hangs: killed after {limit:?}\n{}", outcome.stderr);
        assert!(
            outcome.passed(),
            "{name}: {}\n{}{}",
            outcome.status,
            outcome.stderr,
            outcome.stdout
        );
    }
}

/// Runs one program of `tests/c` on the library in each of `settings`.
pub(crate) fn passes(source: &str, args: &[&str], settings: &[Setting]) {
    let program = compile(source, &[]);
    for &setting in settings {
        Run::on_homenode(&program, setting).args(args).passes();
    }
}

/// The library that `make build` left.
pub(crate) fn shared_library() -> PathBuf {
    built("HOMENODE_SO", "libhomenode.so")
}

/// The archive that `make build` left.
pub(crate) fn archive() -> PathBuf {
    built("HOMENODE_A", "libhomenode.a")
}

fn built(variable: &str, file: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("release").join(file),
        PathBuf::from,
    );
    assert!(path.is_file(), "{} is absent: run `make build` first", path.display());
    path
}

/// Compiles a program of `tests/c` with `flags`, once.
pub(crate) fn compile(source: &str, flags: &[&str]) -> PathBuf {
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    compile_with(compiler, source, flags).unwrap_or_else(|errors| panic!("{source}: {errors}"))
}

/// Compiles a shared library of `tests/c`.
pub(crate) fn compile_library(source: &str) -> PathBuf {
    compile(source, &["-shared", "-fPIC"])
}

/// As [`compile`], but a compiler that is absent or fails is the caller's decision.
pub(crate) fn compile_with(
    compiler: &str,
    source: &str,
    flags: &[&str],
) -> Result<PathBuf, String> {
    // One at a time: tests of one binary share programs.
    static COMPILING: Mutex<()> = Mutex::new(());
    let _one = COMPILING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let input = folder.join(source);
    let stem: String = format!("{compiler}-{source}{}", flags.concat())
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(shorten(&stem));
    let headers =
        ["check.h", "rules.h", "seccomp.h", "stack.h", "stats.h", "stock.h", "misuse/misuse.h"];
    let inputs: Vec<_> = [source].iter().chain(&headers).map(|name| folder.join(name)).collect();
    if flags.iter().all(|flag| !flag.ends_with(".a")) && newer(&output, &inputs) {
        return Ok(output);
    }
    // Built aside and renamed, because other test processes may run the old one.
    let aside = scratch("build");
    // -fno-builtin: the compiler removes a malloc whose result it can follow.
    let result = Command::new(compiler)
        .args(["-O1", "-g", "-pthread", "-fno-builtin", "-w", "-o"])
        .arg(&aside)
        .arg(&input)
        .args(flags)
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    if !result.status.success() {
        return Err(String::from_utf8_lossy(&result.stderr).into_owned());
    }
    fs::rename(&aside, &output).map_err(|error| error.to_string())?;
    Ok(output)
}

/// The standard output of a tool that must succeed, such as `nm`.
pub(crate) fn tool(command: &str, args: &[&str], file: &Path) -> String {
    let output = Command::new(command).args(args).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{command} {args:?} {}: {}", file.display(), output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// True where `tool` is installed. A test that lacks one is skipped, but not by CI.
pub(crate) fn has_tool(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "{tool} is absent, and CI needs it");
    found
}

/// A new path in the scratch folder, unlike any other process's.
pub(crate) fn scratch(kind: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{kind}-{}-{number}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A number from the environment, for runs longer than CI's.
pub(crate) fn number(variable: &str, default: u32) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_string())
}

fn shorten(stem: &str) -> OsString {
    let start = stem.len().saturating_sub(120);
    stem[start..].into()
}

fn newer(output: &Path, inputs: &[PathBuf]) -> bool {
    let Ok(built) = modified(output) else {
        return false;
    };
    inputs.iter().all(|input| modified(input).is_ok_and(|changed| changed < built))
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

fn take(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    fs::remove_file(path).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

fn kill_group(leader: u32) {
    let kill = format!("kill -9 -{leader}");
    Command::new("/bin/sh").args(["-c", &kill]).status().expect("/bin/sh runs");
}

/// Names the test whose body this process is to run.
const BODY: &str = "TEST_BODY";

/// Runs `body` in a process of its own in each of `settings`: the heap is one a process.
pub(crate) fn in_each_setting(test: &str, settings: &[&[(&str, &str)]], body: fn()) {
    in_each_setting_within(60, test, settings, body);
}

/// As [`in_each_setting`], with a limit in seconds; what the processes wrote to standard error.
pub(crate) fn in_each_setting_within(
    seconds: u64,
    test: &str,
    settings: &[&[(&str, &str)]],
    body: fn(),
) -> String {
    if std::env::var_os(BODY).is_some() {
        body();
        return String::new();
    }
    let program = std::env::current_exe().expect("a program has a path");
    let mut said = String::new();
    for setting in settings {
        let run = Run::plain(&program).args(&[test, "--exact", "--nocapture"]).env(BODY, test);
        let run = setting.iter().fold(run, |run, (name, value)| run.env(name, value));
        let outcome = run.limit(seconds).outcome();
        assert!(outcome.passed(), "{test} in {setting:?}: {outcome:?}");
        said += &outcome.stderr;
    }
    said
}

/// Short real programs, and what they print; each also runs in little memory.
const SMALL_PROGRAMS: &[(&str, &str, &str)] = &[
    ("python3", "python3 -c 'print(sum(len(str(i)) for i in range(20000)))'", "88890"),
    ("lua5.4", "lua5.4 -e 't = {} for i = 1, 20000 do t[i] = i .. \"\" end print(#t)'", "20000"),
    ("sqlite3", "sqlite3 :memory: 'select 6 * 7'", "42"),
    ("sh", "sh -c 'echo $((6 * 7))'", "42"),
];

/// The commands of those that are installed, for a shell, and what they print.
pub(crate) fn small_programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_there = |program: &str| {
        let question = format!("command -v {program}");
        Run::plain("/bin/sh".as_ref()).args(&["-c", &question]).outcome().passed()
    };
    let there = SMALL_PROGRAMS.iter().filter(move |(program, ..)| is_there(program));
    there.map(|&(_, command, answer)| (command, answer))
}
