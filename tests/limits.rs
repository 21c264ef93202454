//! Limits of the system: on address space, data, locked memory, and maps; set before the start and after it
//! (case P10).
#![allow(unsafe_code, reason = "maps of the program's own beside the heap")]

mod support;

use support::{EVERY_SETTING, Run, Setting, compile, in_each_setting, passes, small_programs};

/// Ways to run a test that needs no other program.
const SETTINGS: &[&[(&str, &str)]] = &[&[], &[("HOMENODE_FAKE_NODES", "2")]];

#[test]
fn a_program_may_limit_its_address_space() {
    for call in ["setrlimit", "setrlimit64", "prlimit", "prlimit64"] {
        passes("a_program_may_limit_its_address_space.c", &[call, "256"], EVERY_SETTING);
    }
    passes("a_program_may_limit_its_address_space.c", &["setrlimit", "4096"], &[Setting::OwnRseq]);
}

/// Runs a C program under a limit of address space that was set before its start.
fn passes_limited(program: &str, mib: u32, args: &[&str]) {
    let program = compile(program, &[]);
    let script = format!("ulimit -v {} && exec \"$@\"", mib * 1024);
    for &setting in EVERY_SETTING {
        let shell = Run::on_homenode("/bin/sh".as_ref(), setting);
        shell.args(&["-c", &script, "sh"]).args(&[&program]).args(args).passes();
    }
}

#[test]
fn nearly_all_of_a_limit_is_had() {
    // Of it the program and its libraries take some 8 MiB, and the stacks of threads that ended up to 8 more.
    for (mib, percent) in [(64, "70"), (128, "80"), (1024, "92")] {
        for bytes in ["1000", "1048576"] {
            let args = [&mib.to_string(), bytes, percent];
            passes_limited("nearly_all_of_a_limit_is_had.c", mib, &args);
        }
    }
}

#[test]
fn a_growing_heap_and_other_maps_never_meet() {
    const PROGRAM: &str = "a_growing_heap_and_other_maps_never_meet.c";
    passes_limited(PROGRAM, 400, &["400", "before"]);
    passes(PROGRAM, &["600", "after"], EVERY_SETTING);
}

#[test]
fn refused_limits_follow_libc() {
    passes("refused_limits_follow_libc.c", &[], EVERY_SETTING);
}

#[test]
fn a_vfork_child_limits_itself_alone() {
    passes("a_vfork_child_limits_itself_alone.c", &[], EVERY_SETTING);
}

/// Maps a page at each of `count` places of the address space from `start` on, where nothing is yet.
fn maps_between(start: usize, step: usize, count: usize) -> Vec<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let places = (0..count).map(|number| start + number * step);
    let map = |address| {
        let place = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: a new map that replaces none.
        unsafe { libc::mmap(place, 4096, access, flags, -1, 0) }.cast::<u8>()
    };
    places.map(map).filter(|map| map.addr() != libc::MAP_FAILED.addr()).collect()
}

/// The address where the slice of a block starts.
fn slice_start(block: *mut u8) -> usize {
    block.expose_provenance() >> 40 << 40
}

#[test]
fn a_map_in_what_was_given_up_is_not_taken_for_ours() {
    in_each_setting("a_map_in_what_was_given_up_is_not_taken_for_ours", SETTINGS, || {
        const STEP: usize = 128 << 20;
        let block = homenode::alloc(100);
        let start = slice_start(block);
        homenode::fit_address_space(2 << 30);
        // In the tables, in the room, and behind the last compound, of one slice or of both.
        let maps = maps_between(start - (1 << 40), STEP, (3 << 40) / STEP);
        assert!(maps.len() > 8000, "the reservation is given up: {}", maps.len());
        for &map in &maps {
            // SAFETY: the page was just mapped, and is this test's own.
            unsafe { map.write_bytes(9, 4096) };
            // SAFETY: the address is no block of the heap.
            assert_eq!(unsafe { homenode::usable_size(map) }, None, "{map:p}");
        }
        let blocks: Vec<_> = (0..10).map(|_| homenode::alloc(3 << 20)).collect();
        for &block in &blocks {
            assert!(!block.is_null());
            // SAFETY: the block was just handed out, and is that long.
            unsafe { block.write_bytes(7, 3 << 20) };
        }
        let count = free_all(&take_all(32 << 20));
        assert!(count <= 8, "{count} blocks of 32 MiB more, and a map is in the way");
        for &map in &maps {
            // SAFETY: the page is mapped, and this test's own.
            let bytes = unsafe { std::slice::from_raw_parts(map, 4096) };
            assert!(bytes.iter().all(|&byte| byte == 9), "the heap wrote at {map:p}");
        }
        for &map in &maps {
            // SAFETY: the map is this test's own, and not used any more.
            assert_eq!(unsafe { libc::munmap(map.cast(), 4096) }, 0);
        }
        assert!(
            !homenode::alloc(1 << 30).is_null(),
            "it grows where nothing is in the way any more"
        );
        free_all(&blocks);
        free_all(&[block]);
        homenode::trim();
        assert!(homenode::check().is_ok());
    });
}

/// Blocks of `bytes` until there are no more.
fn take_all(bytes: usize) -> Vec<*mut u8> {
    let blocks = std::iter::repeat_with(|| homenode::alloc(bytes));
    blocks.take_while(|block| !block.is_null()).collect()
}

/// Frees blocks; how many they are.
fn free_all(blocks: &[*mut u8]) -> usize {
    // SAFETY: the blocks were handed out, and are not used any more.
    blocks.iter().for_each(|&block| unsafe { homenode::free(block) });
    blocks.len()
}

/// Limits this process to `bytes` of address space.
fn limit_to(bytes: usize) {
    homenode::fit_address_space(bytes);
    let limit = libc::rlimit { rlim_cur: bytes as u64, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

#[test]
fn the_heap_grows_as_far_as_each_limit_allows() {
    in_each_setting("the_heap_grows_as_far_as_each_limit_allows", SETTINGS, || {
        const PIECE: usize = 16 << 20;
        // What the process has beside the heap is less than this.
        const REST: usize = 400 << 20;
        let mut most = 0;
        for gib in [1, 3, 2, 4] {
            limit_to((gib << 30) + REST);
            let blocks = take_all(PIECE);
            let bytes = free_all(&blocks) * PIECE;
            // What was used once stays mapped.
            most = gib.max(most);
            assert!(bytes >= (most << 30) - (64 << 20), "{gib} GiB: {bytes}");
            assert!(bytes < (most << 30) + REST, "{gib} GiB: {bytes}");
            homenode::trim();
        }
        assert!(homenode::check().is_ok());
    });
}

#[test]
fn all_memory_may_be_locked() {
    passes("all_memory_may_be_locked.c", &["0"], EVERY_SETTING);
    // A table of 32 MiB for each node, stacks of threads, and half of the rest to grow into.
    passes("all_memory_may_be_locked.c", &["700"], EVERY_SETTING);
}

#[test]
fn a_strict_sandbox_suffices() {
    for answer in ["refused", "killed"] {
        passes("a_strict_sandbox_suffices.c", &[answer], EVERY_SETTING);
    }
}

#[test]
fn a_strict_sandbox_may_run_out_of_memory() {
    let program = compile("a_strict_sandbox_may_run_out_of_memory.c", &[]);
    for &setting in EVERY_SETTING {
        for what in ["alone", "idle", "busy"] {
            let run = Run::on_homenode(&program, setting).args(&[what]);
            run.env("HOMENODE_SLICE", "64").passes();
        }
    }
}

#[test]
fn a_sandbox_from_the_start_suffices_and_is_silent() {
    let program = compile("a_sandbox_from_the_start_suffices.c", &[]);
    for &setting in EVERY_SETTING {
        let outcome = Run::on_homenode(&program, setting).outcome();
        assert!(outcome.passed(), "{setting:?}: {outcome:?}");
        assert!(!outcome.stderr.contains("homenode:"), "{setting:?}: {outcome:?}");
    }
}

#[test]
fn a_refused_reservation_is_tried_smaller() {
    let program = compile("a_refused_reservation_is_tried_smaller.c", &[]);
    // 37 bits: what one of 39 bits grants beside other maps; 35: slices of 256 MiB for 64 nodes.
    for shift in ["37", "35"] {
        for nodes in ["0", "1", "8", "64"] {
            let run = Run::on_homenode(&program, Setting::Default).args(&[shift]);
            let outcome = run.env("HOMENODE_FAKE_NODES", nodes).outcome();
            assert!(outcome.passed(), "{nodes} nodes within 2^{shift} bytes: {outcome:?}");
            assert!(!outcome.stderr.contains("homenode:"), "{nodes} nodes: {outcome:?}");
        }
    }
}

/// The system's own shell sets the limit, in KiB, and runs under it, too.
fn runs_limited(limit: &str, mib: u32, command: &str) -> support::Outcome {
    let script = format!("ulimit -{limit} {} && exec {command}", mib * 1024);
    let shell = Run::on_homenode("/bin/sh".as_ref(), Setting::Default);
    shell.args(&["-c", &script]).outcome()
}

#[test]
fn real_programs_run_under_small_limits() {
    for (command, answer) in small_programs() {
        for (limit, sizes) in [("v", [64, 128, 256, 1024]), ("d", [16, 64, 256, 1024])] {
            for mib in sizes {
                let outcome = runs_limited(limit, mib, command);
                assert!(outcome.passed(), "ulimit -{limit} of {mib} MiB: {command}: {outcome:?}");
                assert_eq!(
                    outcome.stdout.trim(),
                    answer,
                    "ulimit -{limit} of {mib} MiB: {command}"
                );
            }
        }
    }
}
