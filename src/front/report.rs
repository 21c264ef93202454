//! The statistics as text and as JSON: into a descriptor or a buffer of the caller's, without memory of the
//! heap's and on little stack.

use core::fmt::{self, Write};

use super::start;
use super::stats::{Census, ClassCensus, hits_and_misses};
use crate::base::classes::Class;
use crate::sys::file::{Fd, Text};
use crate::sys::rseq::{self, RseqMode};
use crate::sys::{fault, process};
use crate::{percpu, policy, region, topo};

fn mode_name() -> &'static str {
    match rseq::mode() {
        RseqMode::Libc => "libc",
        RseqMode::Own => "own",
        RseqMode::None => "none",
    }
}

fn classes() -> impl Iterator<Item = ClassCensus> {
    Class::all().filter_map(ClassCensus::of)
}

/// A target that each line of text goes to whole, by one system call.
struct Lines<'a, Out>(&'a mut Out);

/// Bytes of a line, at most.
const LINE_BYTES: usize = 96;

impl<Out: Write> Lines<'_, Out> {
    fn line(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        let mut buffer = [0; LINE_BYTES];
        let mut text = Text::new(&mut buffer);
        writeln!(text, "{line}")?;
        self.0.write_str(text.text())
    }

    fn number(&mut self, name: &str, value: u64) -> fmt::Result {
        self.line(format_args!("  {name:<21} {value}"))
    }
}

fn write_text(out: &mut impl Write) -> fmt::Result {
    let mut lines = Lines(out);
    let fake = if topo::is_fake() { " (fake)" } else { "" };
    lines.line(format_args!("homenode {}", env!("CARGO_PKG_VERSION")))?;
    lines.line(format_args!("  rseq mode             {}", mode_name()))?;
    lines.line(format_args!("  nodes                 {}{fake}", topo::nodes()))?;
    // It may be longer than a line.
    writeln!(lines.0, "  policy                {}", policy::current().0)?;
    lines.line(format_args!(
        "  slice                 {} MiB a node",
        region::geometry().bytes >> 20
    ))?;
    let census = Census::take();
    for (name, value) in census.fields() {
        lines.number(name, value)?;
    }
    if rseq::is_fast_path_closed() {
        lines.number("hits", census.hits)?;
    }
    write_tables(&mut lines)?;
    let [minor, major] = process::page_faults();
    lines.number("page faults", minor)?;
    lines.number("page faults, major", major)?;
    for (name, count) in fault::refusals().filter(|(_, count)| *count > 0) {
        lines.line(format_args!("  refused {name:<13} {count}"))?;
    }
    lines.number("map splits", fault::splits().into())?;
    lines.number("map seams", region::seams().into())
}

#[inline(never)]
fn write_tables(lines: &mut Lines<'_, impl Write>) -> fmt::Result {
    lines.line(format_args!(
        "    {:>5} {:>4} {:>11} {:>7} {:>5} {:>11} {:>9} {:>9}",
        "cpu", "node", "slab bytes", "cached", "away", "misses", "drained", "sent home"
    ))?;
    for cpu in percpu::census() {
        let [_, misses] = hits_and_misses(&cpu);
        lines.line(format_args!(
            "    {:>5} {:>4} {:>11} {:>7} {:>5} {misses:>11} {:>9} {:>9}",
            cpu.cpu.0,
            cpu.node.get(),
            cpu.bytes,
            cpu.cached,
            cpu.away,
            cpu.drained,
            cpu.sent_home
        ))?;
    }
    lines.line(format_args!(
        "    {:>7} {:>7} {:>9} {:>7} {:>7} {:>9} {:>11} {:>11}",
        "class", "spans", "out", "cached", "racked", "refills", "taken", "returned"
    ))?;
    for class in classes() {
        lines.line(format_args!(
            "    {:>7} {:>7} {:>9} {:>7} {:>7} {:>9} {:>11} {:>11}",
            class.size,
            class.spans,
            class.out(),
            class.cached,
            class.racked,
            class.refills,
            class.taken,
            class.returned
        ))?;
    }
    Ok(())
}

fn write_json(out: &mut impl Write) -> fmt::Result {
    write!(out, "{{\"version\":\"{}\",\"rseq\":\"{}\"", env!("CARGO_PKG_VERSION"), mode_name())?;
    write!(out, ",\"nodes\":{},\"fake\":{}", topo::nodes(), topo::is_fake())?;
    write!(out, ",\"policy\":\"{}\"", policy::current().0)?;
    write!(out, ",\"slice_bytes\":{}", region::geometry().bytes)?;
    let census = Census::take();
    for (name, value) in census.fields() {
        write!(out, ",\"{name}\":{value}")?;
    }
    if rseq::is_fast_path_closed() {
        write!(out, ",\"hits\":{}", census.hits)?;
    }
    let [minor, major] = process::page_faults();
    write!(out, ",\"page_faults\":{minor},\"page_faults_major\":{major}")?;
    write!(out, ",\"map_splits\":{},\"map_seams\":{}", fault::splits(), region::seams())?;
    write!(out, ",\"refused\":{{")?;
    for (index, (name, count)) in fault::refusals().enumerate() {
        write!(out, "{}\"{name}\":{count}", comma(index))?;
    }
    write!(out, "}},\"slabs\":[")?;
    write_slabs(out)?;
    write!(out, "],\"classes\":[")?;
    write_classes(out)?;
    write!(out, "]}}")
}

#[inline(never)]
fn write_slabs(out: &mut impl Write) -> fmt::Result {
    for (index, cpu) in percpu::census().enumerate() {
        let [hits, misses] = hits_and_misses(&cpu);
        write!(out, "{}{{\"cpu\":{},\"node\":{}", comma(index), cpu.cpu.0, cpu.node.get())?;
        write!(out, ",\"bytes\":{},\"cached\":{},\"away\":{}", cpu.bytes, cpu.cached, cpu.away)?;
        write!(out, ",\"misses\":{misses},\"drained\":{}", cpu.drained)?;
        if rseq::is_fast_path_closed() {
            write!(out, ",\"hits\":{hits}")?;
        }
        write!(out, ",\"sent_home\":{}}}", cpu.sent_home)?;
    }
    Ok(())
}

#[inline(never)]
fn write_classes(out: &mut impl Write) -> fmt::Result {
    for (index, class) in classes().enumerate() {
        write!(out, "{}{{\"size\":{},\"spans\":{}", comma(index), class.size, class.spans)?;
        write!(out, ",\"out\":{},\"cached\":{}", class.out(), class.cached)?;
        write!(out, ",\"racked\":{},\"refills\":{}", class.racked, class.refills)?;
        write!(out, ",\"taken\":{},\"returned\":{}}}", class.taken, class.returned)?;
    }
    Ok(())
}

fn comma(index: usize) -> &'static str {
    if index > 0 { "," } else { "" }
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
