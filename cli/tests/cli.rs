//! The command as a user meets it: what it runs, what it refuses and in which words, and what it draws.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

const COMMAND: &str = env!("CARGO_BIN_EXE_homenode");
/// Prints the library's statistics as JSON.
const REPORT: &str = r#"
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    int main(void) {
        static char text[65536];
        size_t (*json)(char *, size_t) = (size_t(*)(char *, size_t))dlsym(RTLD_DEFAULT, "hn_stats_json");
        for (int i = 0; i < 10; i++) { void *volatile p = malloc(100); free(p); }
        if (json == NULL || json(text, sizeof text) >= sizeof text) return 1;
        return puts(text) < 0;
    }
"#;
const NOTHING: &str = "int main(void) { return 0; }";
const USER: u32 = 65534;

/// The library that `make build` left.
fn library() -> PathBuf {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/libhomenode.so");
    let path = std::env::var_os("HOMENODE_SO").map_or_else(|| built.into(), PathBuf::from);
    fs::canonicalize(&path)
        .unwrap_or_else(|_| panic!("no library {}: run make build", path.display()))
}

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("homenode-cli-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a folder among temporary ones");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the folder is ours");
        Self(path)
    }

    /// A file with this text, executable.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        write(&path, text.as_bytes());
        mode(&path, 0o755);
        path
    }

    /// A program from C source; none where the compiler cannot make one.
    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
        let (program, file) = (self.0.join(name), self.0.join(format!("{name}.c")));
        write(&file, source.as_bytes());
        let mut compiler = Command::new("cc");
        compiler.arg("-fno-builtin").arg("-o").arg(&program).arg(&file).args(flags).arg("-ldl");
        output(&mut compiler).status.success().then_some(program)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is among temporary files, and of no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

/// The command with nothing of ours in its environment.
fn clean(command: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(command);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["HOMENODE_", "HWLOC_", "LD_"].iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}

/// `homenode run` on the library that was built.
fn run(options: &[&str]) -> Command {
    let mut command = clean(COMMAND);
    command.arg("run").args(options).env("HOMENODE_LIBRARY", library());
    command
}

/// Held for writing while a program's file is open: another thread's new process would have it open, too, and
/// no file that is open for writing can be run.
static FILES: RwLock<()> = RwLock::new(());

fn write(path: &Path, contents: &[u8]) {
    let _guard = FILES.write();
    fs::write(path, contents).expect("a file in our folder");
}

fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        let _guard = FILES.read();
        command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
    };
    child.wait_with_output().expect("the child is ours to wait for")
}

/// What a command that must succeed prints.
fn says(command: &mut Command) -> String {
    let output = output(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("the output is text")
}

/// Fails the test unless the command ends with `status` and says `line` alone.
fn fails(command: &mut Command, status: i32, line: &str) {
    let output = output(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(status), &*format!("homenode: {line}\n")));
    assert!(output.stdout.is_empty(), "{command:?} prints something");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|owner| std::os::unix::fs::MetadataExt::uid(&owner) == 0)
}

#[test]
fn a_program_runs_on_the_library() {
    assert_eq!(says(run(&["--"]).arg("true")), "");
    assert_eq!(says(run(&[]).args(["/bin/echo", "-n", "--", "x"])), "-- x");
}

#[test]
fn options_reach_the_library() {
    let folder = Folder::new();
    let program = folder.compile("report", REPORT, &[]).expect("a C compiler is there");
    let number = |options: &[&str], name: &str| -> Option<u64> {
        let text = says(run(options).arg(&program));
        let (_, rest) = text.split_once(&format!("\"{name}\":"))?;
        rest.split([',', '}']).next()?.trim().parse().ok()
    };
    assert_eq!(number(&[], "hits"), None, "hits are not counted");
    assert_eq!(number(&["--check", "full"], "cpus"), Some(0), "full checks close the caches");
    if number(&[], "cpus") > Some(0) {
        assert!(number(&["--stats"], "hits") > Some(0), "hits are counted");
    }
}

#[test]
fn options_become_settings() {
    let settings = "echo $HOMENODE_POLICY, $HOMENODE_STATS, $HOMENODE_CHECK";
    let all = ["--policy", "local", "--stats", "--check", "off"];
    assert_eq!(says(run(&all).args(["--", "sh", "-c", settings])), "local, full, off\n");
    let mut inherited = run(&[]);
    inherited.env("HOMENODE_STATS", "brief");
    assert_eq!(says(inherited.args(["--", "sh", "-c", settings])), ", brief,\n");
}

#[test]
fn arguments_stay_as_they_are() {
    let arguments = ["", " a  b ", "*", "$HOME", "--help", "--", "\u{e4}"];
    let printed = says(run(&["--", "printf", "[%s]"]).args(arguments));
    assert_eq!(printed, arguments.map(|argument| format!("[{argument}]")).concat());
    // What a program is called by tells some which of their parts to be.
    assert_eq!(
        says(&mut run(&["--", "sh", "-c", "tr '\\0' '\\n' </proc/$$/cmdline | head -n 1"])),
        "sh\n"
    );
}

#[test]
fn what_was_preloaded_stays_behind_the_library() {
    let preloaded = |before: Option<&str>| {
        let mut command = run(&["--", "sh", "-c", "echo $LD_PRELOAD"]);
        says(command.envs(before.map(|before| ("LD_PRELOAD", before))))
    };
    let (ours, other) = (library().display().to_string(), "libm.so.6");
    assert_eq!(preloaded(None), format!("{ours}\n"));
    assert_eq!(preloaded(Some("")), format!("{ours}\n"));
    assert_eq!(preloaded(Some(other)), format!("{ours}:{other}\n"));
}

#[test]
fn statuses_and_signals_are_the_programs() {
    assert_eq!(output(run(&["--", "sh", "-c", "exit 42"]).env("X", "")).status.code(), Some(42));
    let killed = output(&mut run(&["--", "sh", "-c", "kill -TERM $$"]));
    assert_eq!(killed.status.signal(), Some(15));
}

#[test]
fn a_program_that_is_not_there_is_127() {
    fails(run(&["--"]).arg("nosuch-x"), 127, "nosuch-x: there is no such program in PATH");
    fails(run(&["--"]).arg("/nosuch/x"), 127, "/nosuch/x: there is no such program");
}

#[test]
fn a_file_that_is_no_program_is_126() {
    let folder = Folder::new();
    let file = folder.script("data", "#!/bin/sh\n");
    mode(&file, 0o644);
    let name = file.display();
    fails(run(&["--"]).arg(&file), 126, &format!("{name} is not executable"));
    fails(
        run(&["--"]).arg("data").env("PATH", &folder.0),
        126,
        &format!("{name} is not executable"),
    );
    fails(run(&["--"]).arg("/tmp"), 126, "/tmp is a directory");
}

#[test]
fn a_wrong_command_line_is_125() {
    for line in
        [&["run"][..], &["run", "--bogus", "true"], &["run", "--policy", "", "true"], &["x"]]
    {
        assert_eq!(output(clean(COMMAND).args(line)).status.code(), Some(125), "{line:?}");
    }
    assert_eq!(output(clean(COMMAND).arg("--version")).status.code(), Some(0));
}

#[test]
fn a_wrong_policy_is_named_with_its_place() {
    let output = output(run(&["--policy", "bind:0,x"]).arg("true"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(said.contains("'bind:0,x'") && said.contains("byte 7: a number is missing"), "{said}");
}

#[test]
fn a_static_program_is_refused() {
    let folder = Folder::new();
    for (name, flag) in [("static", "-static"), ("static-pie", "-static-pie")] {
        let program = folder.compile(name, NOTHING, &[flag]).expect("a C compiler is there");
        let line =
            "is linked statically, so nothing can be loaded into it: link it with libhomenode.a";
        fails(run(&["--"]).arg(&program), 126, &format!("{} {line}", program.display()));
    }
}

#[test]
fn a_static_program_with_the_library_in_it_runs() {
    let folder = Folder::new();
    let archive = library().with_file_name("libhomenode.a");
    let archive = archive.to_str().expect("the target folder has a plain name");
    let flags = ["-static", "-Wl,-u,malloc", archive];
    let program = folder.compile("static", NOTHING, &flags).expect("a C compiler is there");
    assert_eq!(says(run(&["--"]).arg(program)), "");
}

#[test]
fn a_setuid_program_is_refused() {
    let folder = Folder::new();
    let program = folder.compile("program", NOTHING, &[]).expect("a C compiler is there");
    let other = if is_root() { (Some(USER), Some(USER)) } else { (None, None) };
    let end = "and the loader preloads nothing into programs that gain rights";
    for (bits, word) in [(0o4755, "setuid"), (0o2755, "setgid")] {
        chown(&program, other.0, other.1).expect("the file is ours");
        mode(&program, bits);
        let line = format!("{} is {word}, {end}", program.display());
        if is_root() {
            fails(run(&["--"]).arg(&program), 126, &line);
        } else {
            // It gains nothing by being its starter's.
            assert_eq!(says(run(&["--"]).arg(&program)), "");
        }
    }
}

#[test]
fn a_program_of_another_kind_is_refused() {
    let folder = Folder::new();
    // Without 32-bit libraries there are no such programs either.
    if let Some(program) = folder.compile("small", NOTHING, &["-m32"]) {
        let line =
            format!("{} is a 32-bit program, and the library is for another", program.display());
        fails(run(&["--"]).arg(&program), 126, &line);
    }
    let program = folder.compile("program", NOTHING, &[]).expect("a C compiler is there");
    let mut bytes = fs::read(&program).expect("it was just made");
    // e_machine: s390.
    bytes[18..20].copy_from_slice(&22_u16.to_le_bytes());
    write(&program, &bytes);
    let said = String::from_utf8(output(run(&["--"]).arg(&program)).stderr).expect("text");
    assert!(said.contains(" is a program for s390, and the library is for "), "{said}");
}

#[test]
fn a_program_without_its_loader_is_refused() {
    let folder = Folder::new();
    let flags = ["-Wl,--dynamic-linker=/nosuch/ld.so"];
    let program = folder.compile("program", NOTHING, &flags).expect("a C compiler is there");
    let line = format!("{} needs a loader that is not there: /nosuch/ld.so", program.display());
    fails(run(&["--"]).arg(&program), 126, &line);
}

#[test]
fn a_script_is_served_as_its_interpreter_is() {
    let folder = Folder::new();
    let script = folder.script("script", "#! /bin/sh -e\necho \"$1\" $LD_PRELOAD\n");
    let expected = format!("a b {}\n", library().display());
    assert_eq!(says(run(&["--"]).arg(&script).arg("a b")), expected);
    assert_eq!(says(run(&["--"]).args(["script", "a b"]).env("PATH", joined(&folder))), expected);
    let plain = folder.script("plain", "echo plain\n");
    assert_eq!(says(run(&["--"]).arg(plain)), "plain\n");

    let shell = folder.compile("shell", NOTHING, &["-static"]).expect("a C compiler is there");
    let inner = folder.script("inner", &format!("#!{}\n", shell.display()));
    let outer = folder.script("outer", &format!("#!{}\n", inner.display()));
    let line = "is linked statically, so nothing can be loaded into it: link it with libhomenode.a";
    let (outer_name, shell) = (outer.display(), shell.display());
    let line = format!("{outer_name} is a script, and its interpreter {shell} {line}");
    fails(run(&["--"]).arg(&outer), 126, &line);
    let lost = folder.script("lost", "#!/nosuch/sh\n");
    let line =
        format!("{} is a script, and its interpreter /nosuch/sh is not there", lost.display());
    fails(run(&["--"]).arg(&lost), 126, &line);
}

/// PATH with a folder before it.
fn joined(folder: &Folder) -> String {
    format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap_or_default())
}

/// Copies the command to `path`.
fn install(path: &Path) {
    write(path, &fs::read(COMMAND).expect("the command was built"));
    mode(path, 0o755);
}

#[test]
fn an_installed_command_finds_its_library() {
    let show = ["run", "--", "sh", "-c", "echo $LD_PRELOAD"];
    for place in ["bin", "lib", "lib64"] {
        let prefix = Folder::new();
        let command = prefix.0.join("bin/homenode");
        fs::create_dir_all(prefix.0.join("bin")).expect("a folder in our folder");
        fs::create_dir_all(prefix.0.join(place)).expect("a folder in our folder");
        install(&command);
        let file = prefix.0.join(place).join("libhomenode.so.0");
        symlink(library(), &file).expect("a link in our folder");
        assert_eq!(says(clean(&command).args(show)), format!("{}\n", file.display()));
    }
}

#[test]
fn a_command_without_a_library_says_where_it_looked() {
    let prefix = Folder::new();
    let command = prefix.0.join("homenode");
    install(&command);
    let output = output(clean(&command).args(["run", "true"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    let start =
        format!("homenode: none of these is there: {}/libhomenode.so.0, ", prefix.0.display());
    assert!(said.starts_with(&start), "{said}");
    assert!(said.ends_with("; name the library by --library or HOMENODE_LIBRARY\n"), "{said}");
    fails(
        clean(&command).args(["run", "--library", "/etc/passwd", "true"]),
        125,
        "/etc/passwd is no library; name the library by --library or HOMENODE_LIBRARY",
    );
    let spaced = prefix.0.join("a b.so");
    symlink(library(), &spaced).expect("a link in our folder");
    let line = "no name with a space, a colon or a dollar can be preloaded";
    fails(
        clean(&command).args(["run", "--library"]).arg(&spaced).arg("true"),
        125,
        &format!("{}: {line}", spaced.display()),
    );
}

#[test]
fn topo_draws_the_machine() {
    let drawn =
        says(clean(COMMAND).arg("topo").env("HWLOC_SYNTHETIC", "node:2(memory=1073741824) pu:2"));
    let expected = "machine: 2 nodes, 2 GiB\n\
                    ├─ node 0: 1 GiB DRAM, CPUs 0-1\n\
                    └─ node 1: 1 GiB DRAM, CPUs 2-3\n";
    assert_eq!(drawn, expected);
    assert!(says(clean(COMMAND).arg("topo")).starts_with("machine: "));
}

#[test]
fn topo_tells_json() {
    let text = says(clean(COMMAND).args(["topo", "--json"]).env("HWLOC_SYNTHETIC", "node:3 pu:1"));
    let json: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["nodes"][2]["cpus"], serde_json::json!([2]));
}
