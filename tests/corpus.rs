//! The fuzzer's corpus, and each input that once made it crash, replayed as tests of a stable toolchain.

#[path = "support/heap.rs"]
mod heap;
#[path = "support/program.rs"]
mod program;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use program::Program;

const SETTINGS: &[&[(&str, &str)]] = &[
    &[],
    &[("HOMENODE_FAKE_NODES", "2")],
    &[("HOMENODE_RSEQ", "off")],
    &[("HOMENODE_STATS", "full"), ("HOMENODE_FAKE_NODES", "2")],
];

/// The files of a folder of `fuzz`, none where there is no such folder.
fn inputs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder);
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    paths
}

fn replay(paths: &[PathBuf]) {
    for path in paths {
        let bytes = fs::read(path).expect("an input can be read");
        // Bytes that are no program are none for the fuzzer either.
        if let Ok(program) = Program::arbitrary_take_rest(Unstructured::new(&bytes))
            && let Err(fault) = program.run()
        {
            panic!("{}: {fault}", path.display());
        }
    }
}

#[test]
fn the_corpus_holds() {
    support::in_each_setting("the_corpus_holds", SETTINGS, || {
        let paths = inputs("corpus/programs");
        assert!(paths.len() >= 50, "{} inputs", paths.len());
        replay(&paths);
    });
}

#[test]
fn what_once_crashed_holds() {
    support::in_each_setting("what_once_crashed_holds", SETTINGS, || {
        replay(&inputs("crashes"));
    });
}
