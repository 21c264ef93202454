//! The ways into a process: preload, dlopen, plugins, auditors, static links, secure programs
//! (cases P1, P2, P3, P7, P9).

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::{
    EVERY_SETTING, Run, Setting, archive, compile, compile_library, compile_with, has_tool,
    scratch, shared_library, tool,
};

const NOBODY: u32 = 65534;

/// Copies of the library under names that the loader takes for other libraries.
fn copies(count: usize) -> Vec<PathBuf> {
    let copy = || {
        let path = scratch("copy").with_extension("so");
        fs::copy(shared_library(), &path).expect("the library can be copied");
        path
    };
    (0..count).map(|_| copy()).collect()
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        fs::remove_file(path).expect("our copy can be removed");
    }
}

#[test]
fn three_copies_load_in_a_plain_program() {
    let program = compile("three_copies_load.c", &[]);
    let paths = copies(3);
    Run::plain(&program).args(&paths).passes();
    Run::plain(&program).args(&paths).env("GLIBC_TUNABLES", "glibc.pthread.rseq=0").passes();
    remove(&paths);
}

#[test]
fn three_copies_load_beside_a_preloaded_one() {
    let program = compile("three_copies_load.c", &[]);
    let paths = copies(3);
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).args(&paths).passes();
    }
    remove(&paths);
}

#[test]
fn a_close_after_use_is_safe() {
    let program = compile("a_close_after_use_is_safe.c", &[]);
    Run::plain(&program).args(&[shared_library()]).passes();
    Run::plain(&program)
        .args(&[shared_library()])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .passes();
}

#[test]
fn a_foreign_pointer_is_freed_by_its_owner() {
    let program = compile("a_foreign_pointer_is_freed.c", &[]);
    let plugin = compile_library("deepbind_plugin.c");
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).args(&[&plugin]).passes();
    }
}

#[test]
fn an_auditor_may_allocate() {
    let program = compile("an_interposer_may_allocate.c", &[]);
    let auditor = compile_library("auditor.c");
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).env("LD_AUDIT", &auditor.to_string_lossy()).passes();
    }
}

/// The library then lives in the auditor's namespace, beside the preloaded one in the program's.
/// (Named in `LD_AUDIT` itself it cannot be: ld.so unloads what is no auditor, and trips over any
/// library that refuses to be unloaded.)
#[test]
fn an_auditor_linked_with_us_may_allocate() {
    let program = compile("an_interposer_may_allocate.c", &[]);
    let library = shared_library();
    let library = library.to_string_lossy();
    let folder = format!("-Wl,-rpath,{}", shared_library().parent().expect("a folder").display());
    let auditor =
        compile("auditor.c", &["-shared", "-fPIC", "-Wl,--no-as-needed", &library, &folder]);
    Run::plain(&program).env("LD_AUDIT", &auditor.to_string_lossy()).passes();
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).env("LD_AUDIT", &auditor.to_string_lossy()).passes();
    }
}

#[test]
fn an_interposer_before_or_after_us_may_allocate() {
    let program = compile("an_interposer_may_allocate.c", &[]);
    let interposer = compile_library("interposer.c");
    for &setting in EVERY_SETTING {
        let order = [shared_library(), interposer.clone()];
        Run::on_homenode(&program, setting).preload(&order).passes();
        let order = [interposer.clone(), shared_library()];
        Run::on_homenode(&program, setting).preload(&order).passes();
    }
}

#[test]
fn a_static_program_works() {
    let archive = archive();
    let flags = ["-static", "-DWITH_HOMENODE", "-Wl,-u,malloc", &archive.to_string_lossy()];
    let program = compile("a_static_program_works.c", &flags);
    let malloc = tool("nm", &["--defined-only"], &program);
    assert!(malloc.contains(" hn_drain_all"), "the archive is not linked in");
    for (name, value) in [
        ("HOMENODE_FAKE_NODES", "2"),
        ("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
        ("HOMENODE_RSEQ", "off"),
        ("LANG", "C"),
    ] {
        Run::plain(&program).env(name, value).passes();
    }
}

#[test]
fn a_static_program_finds_every_name() {
    let archive = archive();
    let flags = ["-static", &archive.to_string_lossy()];
    let source = "a_static_program_finds_every_name.c";
    Run::plain(&compile(source, &flags)).passes();
    if let Some(program) = compile_with_musl(source, &flags) {
        Run::plain(&program).passes();
    }
    let flags = ["-static", "-DCHECK_STATIC", flags[1]];
    Run::plain(&compile("second_names_are_the_same_malloc.c", &flags)).passes();
}

#[test]
fn a_failing_new_throws_in_a_static_program() {
    let archive = archive();
    // Linkers warn of static programs that name dlopen.
    let fatal = "-Wl,--fatal-warnings";
    let flags = ["-static", "-DCHECK_STATIC", fatal, &archive.to_string_lossy()];
    let program = compile("a_failing_new_calls_the_handler.cc", &flags);
    let names = tool("nm", &["--defined-only"], &program);
    assert!(names.contains("homenode"), "the archive is not linked in");
    Run::plain(&program).passes();
    Run::plain(&program).env("HOMENODE_RSEQ", "off").passes();
}

#[test]
fn a_failing_new_throws_in_a_library_that_is_loaded_late() {
    let program = compile("a_late_library_fails_as_cxx_does.c", &[]);
    let library = compile_library("a_failing_new_calls_the_handler.cc");
    Run::plain(&program).args(&[&library]).passes();
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).args(&[&library]).passes();
    }
}

/// A program that includes our header and is linked with `-lhomenode`.
fn linked(source: &str) -> PathBuf {
    let library = shared_library();
    let folder = library.parent().expect("a folder").to_string_lossy();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("cabi/include");
    let include = format!("-I{}", include.display());
    compile(
        source,
        &[&include, &format!("-L{folder}"), "-lhomenode", &format!("-Wl,-rpath,{folder}")],
    )
}

#[test]
fn a_linked_program_runs() {
    let program = linked("a_linked_program_runs.c");
    Run::plain(&program).env("TEST_NEEDS_HOMENODE", "1").passes();
}

#[test]
fn statistics_may_come_first() {
    let program = linked("statistics_may_come_first.c");
    for (name, value) in [
        ("LANG", "C"),
        ("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
        ("HOMENODE_RSEQ", "off"),
        ("HOMENODE_SLICE", "64"),
    ] {
        Run::plain(&program).env("TEST_NEEDS_HOMENODE", "1").env(name, value).passes();
    }
}

/// Compiles a program against musl; none where that is not installed.
fn compile_with_musl(source: &str, flags: &[&str]) -> Option<PathBuf> {
    has_tool("musl-gcc").then(|| {
        compile_with("musl-gcc", source, flags)
            .unwrap_or_else(|errors| panic!("{source}: {errors}"))
    })
}

#[test]
fn a_musl_program_runs_under_a_preload() {
    for (source, arguments) in
        [("objects_do_not_overlap.c", &[][..]), ("threads_come_and_go.c", &["400"])]
    {
        let Some(program) = compile_with_musl(source, &[]) else { return };
        for setting in [Setting::Default, Setting::FakeNodes, Setting::NoRseq] {
            Run::on_homenode(&program, setting).args(arguments).passes();
        }
    }
}

/// musl's `pthread_create` takes no memory from malloc, so threads start the allocator.
#[test]
fn threads_may_race_to_the_first_request() {
    let Some(program) = compile_with_musl("threads_come_and_go.c", &[]) else { return };
    for _ in 0..150 {
        Run::on_homenode(&program, Setting::NoRseq).args(&["16"]).passes();
    }
}

#[test]
fn a_static_musl_program_works() {
    let archive = archive();
    let flags = ["-static", "-DWITH_HOMENODE", "-Wl,-u,malloc", &archive.to_string_lossy()];
    let Some(program) = compile_with_musl("a_static_program_works.c", &flags) else { return };
    for (name, value) in [("LANG", "C"), ("HOMENODE_FAKE_NODES", "2"), ("HOMENODE_RSEQ", "off")] {
        Run::plain(&program).env(name, value).passes();
    }
}

#[test]
fn children_inherit_the_preload() {
    let program = compile("children_inherit_the_preload.c", &[]);
    let mut children = vec![PathBuf::from("/bin/true")];
    children.push(compile("a_static_program_works.c", &["-static"]));
    // A musl program ignores a glibc library.
    children.extend(compile_with_musl("a_static_program_works.c", &["-static"]));
    // The loader of a 32-bit program says that it ignores the library, and goes on.
    children.extend(compile_with("cc", "a_static_program_works.c", &["-m32"]).ok());
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).args(&children).passes();
    }
}

/// A setuid copy of a program in a folder that another user may enter.
fn setuid_copy(program: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("secure");
    fs::copy(program, &copy).expect("the program can be copied");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).expect("our file's mode");
    copy
}

/// A folder that every user may enter, unlike the target folder.
fn open_folder() -> PathBuf {
    let name = scratch("homenode").file_name().expect("scratch names a file").to_owned();
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder).expect("a folder for temporary files");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our folder's mode");
    folder
}

fn is_root() -> bool {
    tool("stat", &["-c", "%u"], "/proc/self".as_ref()).trim() == "0"
}

#[test]
fn a_secure_program_starts_under_a_preload() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let program = setuid_copy(&compile("a_secure_program_starts.c", &[]), &folder);
    Run::on_homenode(&program, Setting::FakeNodes).user(NOBODY).passes();
    fs::remove_dir_all(folder).expect("our folder can be removed");
}

#[test]
fn a_secure_program_ignores_our_settings() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    for name in ["libhomenode.so", "libhomenode.so.0"] {
        fs::copy(shared_library(), folder.join(name)).expect("the library can be copied");
    }
    let path = folder.to_string_lossy();
    let program = compile_with(
        "cc",
        "a_secure_program_starts.c",
        &[&format!("-L{path}"), "-Wl,--no-as-needed", "-lhomenode", &format!("-Wl,-rpath,{path}")],
    )
    .expect("a program linked with the library compiles");
    let warned = |run: Run| {
        let outcome = run.args(&["linked"]).env("HOMENODE_FAKE_NODES", "banana").outcome();
        assert!(outcome.passed(), "{outcome:?}");
        outcome.stderr.contains("HOMENODE_FAKE_NODES")
    };
    assert!(warned(Run::plain(&program)), "a bad value is worth a warning");
    let secure = setuid_copy(&program, &folder);
    assert!(!warned(Run::plain(&secure).user(NOBODY)), "a secure program read our settings");
    fs::remove_dir_all(folder).expect("our folder can be removed");
    fs::remove_file(program).expect("our program can be removed");
}
