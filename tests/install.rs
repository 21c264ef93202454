//! `make install`: what it leaves is found by pkg-config and by `CMake`, and programs built so run.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Run, has_tool, scratch, shared_library, tool};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = scratch("install");
        fs::create_dir_all(&path).expect("a folder in the scratch folder");
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("the scratch folder has a plain name")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is in the target folder, and of no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that must succeed; what it prints.
fn must(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn install(variables: &[(&str, &str)]) {
    let mut command = Command::new(root().join("scripts/install"));
    for name in ["PREFIX", "LIBDIR", "DESTDIR"] {
        command.env_remove(name);
    }
    must(command.envs(variables.iter().copied()));
}

/// Files below `folder`, by their path from there.
fn files(folder: &Path) -> Vec<String> {
    let list = must(Command::new("find").current_dir(folder).args([".", "!", "-type", "d"]));
    let mut names: Vec<_> = list.lines().map(|line| line[2..].into()).collect();
    names.sort();
    names
}

/// Installed where `make cli` built it.
const COMMAND: &str = "bin/homenode";

fn command_is_built() -> bool {
    root().join("target/release/homenode").exists()
}

const INSTALLED: &[&str] = &[
    "include/homenode.h",
    "lib/cmake/homenode/homenode-config-version.cmake",
    "lib/cmake/homenode/homenode-config.cmake",
    "lib/libhomenode.a",
    "lib/libhomenode.so",
    "lib/libhomenode.so.0",
    concat!("lib/libhomenode.so.", env!("CARGO_PKG_VERSION")),
    "lib/pkgconfig/homenode.pc",
];

#[test]
fn the_library_carries_the_name_that_programs_look_for() {
    let text = tool("readelf", &["-dW"], &shared_library());
    assert!(text.contains("soname: [libhomenode.so.0]"), "{text}");
    let beside = shared_library().with_file_name("libhomenode.so.0");
    assert!(beside.exists(), "`make build` leaves no libhomenode.so.0");
}

#[test]
fn a_staged_tree_knows_its_prefix_alone() {
    let folder = Folder::new();
    install(&[("PREFIX", "/opt/hn"), ("DESTDIR", folder.text())]);
    let mut expected = INSTALLED.to_vec();
    if command_is_built() {
        expected.insert(0, COMMAND);
    }
    assert_eq!(files(&folder.0.join("opt/hn")), expected);
    assert_eq!(files(&folder.0).len(), expected.len());
    for file in INSTALLED.iter().filter(|file| file.ends_with(".pc") || file.ends_with(".cmake")) {
        let text = fs::read_to_string(folder.0.join("opt/hn").join(file)).expect("installed");
        assert!(!text.contains(folder.text()), "{file} has the staging folder in it");
        assert!(!text.contains('@'), "{file} has an open place in it");
    }
}

#[test]
fn the_folder_of_libraries_may_be_another() {
    let folder = Folder::new();
    install(&[("PREFIX", "/usr"), ("LIBDIR", "/usr/lib/multi/arch"), ("DESTDIR", folder.text())]);
    assert!(folder.0.join("usr/lib/multi/arch/libhomenode.so.0").exists());
    let text = fs::read_to_string(folder.0.join("usr/lib/multi/arch/pkgconfig/homenode.pc"));
    assert!(text.expect("installed").contains("\nlibdir=/usr/lib/multi/arch\n"));
}

#[test]
fn the_installed_command_runs_programs_on_the_installed_library() {
    if !command_is_built() {
        return;
    }
    let prefix = Folder::new();
    install(&[("PREFIX", prefix.text())]);
    let show = ["run", "--", "sh", "-c", "echo $LD_PRELOAD"];
    let mut command = Command::new(prefix.0.join(COMMAND));
    let shown = must(command.env_remove("LD_PRELOAD").env_remove("HOMENODE_LIBRARY").args(show));
    assert_eq!(shown, format!("{}/lib/libhomenode.so.0\n", prefix.text()));
}

/// Runs a program that was linked with the installed library; no other folder has it.
fn runs(program: &Path, prefix: &Folder) {
    Run::plain(program).env("LD_LIBRARY_PATH", &format!("{}/lib", prefix.text())).passes();
}

#[test]
fn pkg_config_finds_the_library() {
    if !has_tool("pkg-config") {
        return;
    }
    let prefix = Folder::new();
    install(&[("PREFIX", prefix.text())]);
    for kind in [&[][..], &["--static"]] {
        let flags = must(
            Command::new("pkg-config")
                .env("PKG_CONFIG_PATH", prefix.0.join("lib/pkgconfig"))
                .args(["--cflags", "--libs"])
                .args(kind)
                .arg("homenode"),
        );
        let program = prefix.0.join("program");
        let (link, define) =
            if kind.is_empty() { ("-g", "-g") } else { ("-static", "-DCHECK_STATIC") };
        must(
            Command::new("cc")
                .args([link, define, "-fno-builtin", "-o"])
                .arg(&program)
                .arg(root().join("tests/c/a_linked_program_runs.c"))
                .args(flags.split_whitespace()),
        );
        runs(&program, &prefix);
    }
}

#[test]
fn cmake_finds_the_library() {
    if !has_tool("cmake") {
        return;
    }
    let (prefix, build) = (Folder::new(), Folder::new());
    install(&[("PREFIX", prefix.text())]);
    must(
        Command::new("cmake")
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.text()))
            .arg("-S")
            .arg(root().join("tests/cmake"))
            .args(["-B", build.text()]),
    );
    must(Command::new("cmake").args(["--build", build.text()]));
    for program in ["shared", "static"] {
        runs(&build.0.join(program), &prefix);
    }
}

#[test]
fn cmake_takes_no_version_that_programs_may_not_run_with() {
    if !has_tool("cmake") {
        return;
    }
    let (prefix, build) = (Folder::new(), Folder::new());
    install(&[("PREFIX", prefix.text())]);
    let project = build.0.join("CMakeLists.txt");
    for (version, found) in [("0.1", true), ("0.2", false), ("1.0", false), ("0.0.9", false)] {
        let text = format!(
            "cmake_minimum_required(VERSION 3.13)\nproject(p C)\nfind_package(homenode {version} REQUIRED)\n"
        );
        fs::write(&project, text).expect("a file in our folder");
        let output = Command::new("cmake")
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.text()))
            .args(["-S", build.text(), "-B", &format!("{}/{version}", build.text())])
            .output()
            .expect("cmake runs");
        assert_eq!(output.status.success(), found, "version {version}");
    }
}
