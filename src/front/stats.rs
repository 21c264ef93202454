//! What the allocator has done: numbers, as text and as JSON; and a check of the whole heap.

use core::fmt::{self, Write};

use super::busy::Busy;
use super::start;
use crate::base::classes::Class;
use crate::sys::fault;
use crate::sys::file::{Fd, Text};
use crate::sys::rseq::{self, RseqMode};
use crate::{pageheap, percpu, region, slab, topo, transfer};

/// The heap's numbers at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Compound pages ever used.
    pub compounds: u64,
    /// Of those, free ones.
    pub compounds_free: u64,
    /// Of the free ones, those that keep their pages.
    pub compounds_resident: u64,
    /// Compound pages cut into runs.
    pub compounds_cut: u64,
    /// Runs handed out.
    pub runs: u64,
    /// Spans of objects.
    pub spans: u64,
    /// Batches that spans handed out.
    pub refills: u64,
    /// Objects that came back to spans.
    pub returned: u64,
    /// CPUs with a slab.
    pub cpus: u64,
    /// Objects in the slabs of CPUs.
    pub cached: u64,
    /// Objects in the racks between CPUs.
    pub racked: u64,
    /// Misses of the fast path.
    pub misses: u64,
    /// Objects that drains took from slabs.
    pub drained: u64,
}

impl Census {
    /// Counts; other threads may change the numbers meanwhile.
    #[must_use]
    pub fn take() -> Self {
        let mut census = Self::default();
        for (_, slice) in region::open_slices() {
            let [used, free, resident] = slice.census();
            census.compounds += u64::from(used);
            let parked = pageheap::large::parked(slice);
            census.compounds_free += u64::from(free + parked);
            census.compounds_resident += u64::from(resident + parked);
            let [cut, runs] = pageheap::census(slice);
            census.compounds_cut += u64::from(cut);
            census.runs += u64::from(runs);
            for class in Class::all() {
                census.racked += transfer::census(slice, class);
                let pool = slab::census(slice, class);
                census.spans += u64::from(pool.spans);
                census.refills += pool.refills;
                census.returned += pool.returned;
            }
        }
        [census.cpus, census.cached, census.misses, census.drained] = percpu::census();
        census
    }

    const fn fields(&self) -> [(&'static str, u64); 13] {
        [
            ("compounds", self.compounds),
            ("compounds_free", self.compounds_free),
            ("compounds_resident", self.compounds_resident),
            ("compounds_cut", self.compounds_cut),
            ("runs", self.runs),
            ("spans", self.spans),
            ("refills", self.refills),
            ("returned", self.returned),
            ("cpus", self.cpus),
            ("cached", self.cached),
            ("racked", self.racked),
            ("misses", self.misses),
            ("drained", self.drained),
        ]
    }
}

fn mode_name() -> &'static str {
    match rseq::mode() {
        RseqMode::Libc => "libc",
        RseqMode::Own => "own",
        RseqMode::None => "none",
    }
}

/// Each line goes out whole, by one system call.
fn write_text(out: &mut impl Write) -> fmt::Result {
    const LINE_BYTES: usize = 80;
    let census = Census::take();
    let mut line = |line: fmt::Arguments<'_>| {
        let mut buffer = [0; LINE_BYTES];
        let mut text = Text::new(&mut buffer);
        writeln!(text, "{line}")?;
        out.write_str(text.text())
    };
    let fake = if topo::is_fake() { " (fake)" } else { "" };
    line(format_args!("homenode {}", env!("CARGO_PKG_VERSION")))?;
    line(format_args!("  rseq mode             {}", mode_name()))?;
    line(format_args!("  nodes                 {}{fake}", topo::nodes()))?;
    line(format_args!("  slice                 {} MiB a node", region::geometry().bytes >> 20))?;
    for (name, value) in census.fields() {
        line(format_args!("  {name:<21} {value}"))?;
    }
    line(format_args!("  map splits            {}", fault::splits()))?;
    line(format_args!("  map seams             {}", region::seams()))?;
    for (name, count) in fault::refusals().filter(|(_, count)| *count > 0) {
        line(format_args!("  refused {name:<13} {count}"))?;
    }
    Ok(())
}

fn write_json(out: &mut impl Write) -> fmt::Result {
    write!(out, "{{\"version\":\"{}\",\"rseq\":\"{}\"", env!("CARGO_PKG_VERSION"), mode_name())?;
    write!(out, ",\"nodes\":{},\"fake\":{}", topo::nodes(), topo::is_fake())?;
    write!(out, ",\"slice_bytes\":{}", region::geometry().bytes)?;
    for (name, value) in Census::take().fields() {
        write!(out, ",\"{name}\":{value}")?;
    }
    write!(out, ",\"map_splits\":{},\"map_seams\":{}", fault::splits(), region::seams())?;
    write!(out, ",\"refused\":{{")?;
    for (index, (name, count)) in fault::refusals().enumerate() {
        write!(out, "{}\"{name}\":{count}", if index > 0 { "," } else { "" })?;
    }
    write!(out, "}}}}")
}

/// Writes the numbers as text to a file descriptor.  False: it cannot be written to.
#[must_use]
pub fn print_stats(fd: i32) -> bool {
    start::ensure() && write_text(&mut Fd(fd)).is_ok()
}

/// Writes the numbers as JSON into `buffer`, as much as fits; how many bytes they need.
#[must_use]
pub fn stats_json(buffer: &mut [u8]) -> usize {
    // The numbers of an allocator that cannot start are zeros.
    start::ensure();
    let mut text = Text::new(buffer);
    // A buffer takes everything, and counts what does not fit.
    let _ = write_json(&mut text);
    text.len()
}

/// Checks that run maps, counts, lists and bitmaps of all nodes agree.  No other thread may allocate
/// meanwhile.  The number of objects out of their spans, or where the first disagreement is.
///
/// # Errors
/// The address of the run or compound whose records disagree.
pub fn check() -> Result<u64, usize> {
    let Some(_busy) = Busy::enter() else { return Ok(0) };
    let mut out = 0;
    for (_, slice) in region::open_slices() {
        pageheap::rebuild_check(slice).map_err(|id| slice.base() + id.offset())?;
        out += slab::check(slice).map_err(|run| slice.run_address(run))?;
    }
    Ok(out)
}

/// Lets `after` more system calls named `call` through, then fails one: for tests of callers.
/// False: there is no such call.
#[must_use]
pub fn fail_call(call: &str, after: u32) -> bool {
    fault::fail_after(call, after)
}
