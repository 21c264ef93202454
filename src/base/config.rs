//! Every tunable: its unit, and its reason or measurement.

/// log2 of a run, in bytes: 32 KiB.  One class byte says what lives in a run.
pub const RUN_SHIFT: u32 = 15;
/// A run, in bytes.
pub(crate) const RUN_BYTES: usize = 1 << RUN_SHIFT;
/// log2 of a compound page, in bytes: 2 MiB, the huge page of x86-64 and of aarch64 with 4 KiB base pages.
pub(crate) const COMPOUND_SHIFT: u32 = 21;
/// A compound page, in bytes.
pub(crate) const COMPOUND_BYTES: usize = 1 << COMPOUND_SHIFT;
/// Runs in a compound page; one bit each in a run map.
pub(crate) const RUNS_PER_COMPOUND: usize = COMPOUND_BYTES / RUN_BYTES;

/// A group of compounds, in bytes: 1 GiB, the largest huge page.
pub(crate) const GROUP_BYTES: usize = 1 << 30;

/// Slices are tried from this size down, in bytes: 64 of them fit 47 bits of address space.
pub(crate) const SLICE_BYTES_MAX: usize = 1 << 40;
/// The smallest slice that still holds a program, in bytes.
pub(crate) const SLICE_BYTES_MIN: usize = 1 << 25;
/// Address space asked for in all, in bytes: what more nodes share.
pub(crate) const RESERVE_BYTES_MAX: usize = 1 << 46;
/// Compounds made writable at once: 64 MiB.  Many small mprotect islands make fork slow
/// (200 of them: three times slower), one growing map does not.
pub(crate) const COMMIT_STEP: u32 = 32;
/// Compounds that a slice in use may hand out after a cut without being mapped more, at least.
pub(crate) const CUT_COMPOUNDS_MIN: u32 = 1;
/// Compounds that a slice is mapped longer by at once, beyond what is asked for: 64 MiB;
pub(crate) const LENGTHEN_STEP: u32 = 32;
/// but no more than this fraction of what a limit on address space leaves, and of what the slice has handed
/// out: the rest is for stacks of threads and other maps.
pub(crate) const LENGTHEN_FRACTION: u32 = 8;
/// Where address space is limited at start, slices are mapped as they are used, and may come to be as long as
/// this many times the limit: room for their tables, and for a limit that is raised.
pub(crate) const LIMIT_TIMES: usize = 4;
/// Places that are tried for slices that are mapped as they are used, each below the one before.
pub(crate) const PLACES_TRIED: usize = 8;
/// What a compound costs beside itself in tables and room: this fraction of it, and somewhat less.
pub(crate) const CUT_FRACTION: usize = 16;
/// Free compounds that keep their pages, per node, at least: 32 MiB.
pub(crate) const FREE_RESIDENT_MIN: u32 = 16;
/// Free compounds that keep their pages, per node, are at most this fraction of those in use, where
/// that is more.  Beyond, each call that takes or gives compounds gives the pages of one back.
pub(crate) const FREE_RESIDENT_FRACTION: u32 = 8;
/// Free compounds with pages, per node, beyond which a call gives back all that it adds: 256 MiB, or that
/// fraction of those in use, where it is more.
/// A program that frees more and never calls again keeps no more than this.  Four buffers that grow
/// together to 64 MiB, again and again, take 1.4 times as long with 128 MiB, and 1.8 times with 32.
pub(crate) const FREE_RESIDENT_HARD: u32 = 128;
/// Ranges of free compounds that a search looks at before it takes the best so far, and others that it
/// looks at where none of them fits: 10 ns each, and 1.5 us for the maps of 100,000 compounds where
/// nothing is free.  The first touch of a compound takes 100 us and more.
pub(crate) const RANGES_SEARCHED: u32 = 256;

/// Compounds in use on a node from which on huge pages are asked for under those cut into runs: 16 MiB.
/// CPU time against none at all, paired, on a virtual machine: python 0.90, lua 0.89 from 16 MiB on, 0.98
/// and 0.91 from 32, 0.92 and 1.08 from the first; g++ 1.00.
pub(crate) const HUGE_FROM: u32 = 8;
/// Calls that may split a map, after which no more of them are made for speed alone: a quarter of the
/// maps that a process may have by default (`vm.max_map_count`).
pub(crate) const SPLITS_MAX: u32 = 16 << 10;
/// Seams that moved pages may leave: this fraction of the maps that a process may have.
pub(crate) const MAPS_FRACTION: u32 = 4;
/// Fresh compounds that are left after a block that has grown, for it to grow into: this many times its
/// own, so that it moves once while it becomes eight times as long;
pub(crate) const GROWTH_ROOM: u32 = 7;
/// but no more than this, 128 MiB, or its own length where that is more.
pub(crate) const GROWTH_ROOM_MAX: u32 = 64;
/// Room for growth takes at most this fraction of what a slice has never handed out.
pub(crate) const GROWTH_ROOM_FRACTION: u32 = 8;

/// Compounds from which on a block is spread over nodes page by page where memory is interleaved; shorter
/// ones have one node each, in turn.
pub(crate) const SPREAD_FROM: u32 = 2;
/// Pages that the kernel is asked of at once, where they are: their addresses and answers are on the stack of
/// the slow path.
pub(crate) const PAGES_ASKED: usize = 16;

/// CPUs that park a huge block each; those of larger numbers share the slots of others, or on machines
/// of several nodes have none.
pub(crate) const PARKING_SLOTS: usize = 256;
/// Calls of slow paths on one CPU between two birthdays of a slot: at 30 objects of 1000 bytes each, a
/// program takes 2 MB in them.
pub(crate) const PARKING_TICKS: u32 = 64;

/// Objects moved between a CPU's slab and the layers below at once.  The batch lives on the
/// stack of the slow path, which has 1 KiB in all (16 KiB threads, small signal stacks).
pub(crate) const BATCH_MAX: usize = 32;
/// A batch holds at most this many bytes, but at least one object.  Objects of 16 KiB that go from one
/// thread to another take 71 ns with eight to a batch, 151 with four.
pub(crate) const BATCH_BYTES: usize = 128 << 10;
/// Trays of a rack: whole batches of one class that wait between CPUs.  Few under loom.
pub(crate) const RACK_TRAYS_MAX: usize = if cfg!(loom) { 2 } else { 64 };
/// Bytes that one rack holds at most, but at least one batch: all racks of a lane hold 51 MiB of a node.
pub(crate) const RACK_BYTES: usize = 512 << 10;
/// Lanes: CPUs that share a last-level cache share racks.  Further caches share the lanes of others.
pub(crate) const LANES_MAX: usize = 16;

/// Bytes of a CPU's slab, at most: header and stacks.  Only what is used is resident.
pub(crate) const SLAB_BYTES_MAX: usize = 256 << 10;
/// Bytes of a slab that is packed: a page of header, a page of stacks; half a KiB more for each of
/// several nodes.
pub(crate) const SLAB_BYTES_PACKED: usize = 8 << 10;
/// Bytes of a slab's area, at least.
pub(crate) const SLAB_BYTES_LEAST: usize = 32 << 10;
/// Slabs that fit a node's metadata room: a CPU has two, or three while it is drained.
pub(crate) const ROOM_SLABS: usize = 64;
/// Objects of one class that a CPU's slab holds at most.
pub(crate) const SLAB_OBJECTS_MAX: usize = 2048;
/// Bytes of objects that each CPU's slab may be divided for without asking.
pub(crate) const SLAB_FREE_BYTES: usize = 2 << 20;
/// Bytes of objects that all CPUs' slabs together may be divided for, beyond [`SLAB_FREE_BYTES`] each:
/// two CPUs can keep a thousand objects of 16 KiB.
pub(crate) const SLAB_SHARED_BYTES: usize = 64 << 20;
/// Objects of more bytes are cached by a CPU only after one came back that was soon wanted again.
pub(crate) const SLAB_EAGER_BYTES: usize = 32 << 10;
/// Objects of one other node that a CPU's slab holds before they go home.
pub(crate) const REMOTE_OBJECTS: usize = 64;
/// Calls of slow paths on a CPU between two looks at what waits there for another node, one node a look: what has
/// waited from one look to the next, while none of that node left, goes home.
pub(crate) const AWAY_TICKS: u64 = 64;
/// Larger objects of another node go home at once: a CPU holds back 2 MiB of a node at most.
pub(crate) const REMOTE_BYTES_EACH: usize = 32 << 10;

/// Nodes that the allocator tells apart; CPUs of further ones are served by the first.
pub(crate) const NODES_MAX: usize = 64;
/// CPUs that the table of slabs can hold: the kernel's largest `NR_CPUS`.
pub const CPUS_MAX: usize = 8192;
/// Rounds a waiter spins before it sleeps, each twice as long as the one before: 127 pauses in all,
/// a few microseconds, the length of several slow paths.  None under loom, so that the model checker
/// sees the sleep.
pub(crate) const SPINS: u32 = if cfg!(loom) { 0 } else { 7 };

const _: () = assert!(RUNS_PER_COMPOUND == 64, "a run map is one 64-bit word");
const _: () = assert!(SLICE_BYTES_MAX * NODES_MAX <= RESERVE_BYTES_MAX);
const _: () = assert!(BATCH_MAX * 8 <= 256, "a batch takes a quarter of the slow path's stack");

/// Blocks of fewer bytes get less slack when realloc moves them.
pub(crate) const SLACK_BYTES: usize = 8 << 10;
/// Longest span, in bytes, of which a class keeps an empty one: a buffer that grew through all classes
/// would leave one of each behind, 40 MiB of memory that has been written.
pub(crate) const SPAN_KEPT_BYTES: usize = 64 << 10;
/// Bytes of a span's record: counts and links in one cache line, then a bit an object.
pub(crate) const SPAN_RECORD_BYTES: usize = 64 + RUN_BYTES / 8 / 8;
/// Bytes of a node's page heap record and pools, at the start of its slice's metadata room.
pub(crate) const NODE_RECORD_BYTES: usize = 12 << 10;
/// The part of [`NODE_RECORD_BYTES`] that is the page heap's: its start.
pub(crate) const PAGEHEAP_RECORD_BYTES: usize = 1 << 10;
/// The part of [`NODE_RECORD_BYTES`] that is the transfer cache's: its end.
pub(crate) const TRANSFER_RECORD_BYTES: usize = 1 << 10;
/// A slice's metadata room, for records of no fixed place, is this fraction of the slice.
pub(crate) const ROOM_FRACTION: usize = 64;
/// The smallest metadata room, in bytes.
pub(crate) const ROOM_BYTES_MIN: usize = 2 << 20;
/// Bytes of metadata room made writable at once.
pub(crate) const ROOM_STEP: usize = 1 << 20;

/// Under `HOMENODE_CHECK=full`, bytes behind a block's end that are filled and looked at, at most, and
/// bytes of a fresh block that are filled: a page, which a loop that runs past its end soon reaches.
pub(crate) const CHECK_FILL_BYTES: usize = 4 << 10;
/// Bytes of a freed block that are filled and looked at, at most: 3 us.
pub(crate) const CHECK_FREED_BYTES: usize = 64 << 10;
/// Freed blocks that are held back, at most.
pub(crate) const CHECK_HELD: usize = 16 << 10;
/// Bytes of freed blocks that are held back, at most: 16 MiB, half of the least address space.
pub(crate) const CHECK_HELD_BYTES: usize = 16 << 20;
/// Longer blocks are not held back: they would drive all others out.
pub(crate) const CHECK_HELD_BYTES_EACH: usize = CHECK_HELD_BYTES / 4;
/// Bytes of the blocks freed last that each call looks at: 200 ns.
pub(crate) const CHECK_LOOK_BYTES: usize = 4 << 10;
