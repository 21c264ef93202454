//! Shows a machine as text: a tree of nodes with what is next to them, then what is between them.

use std::fmt;

use crate::{Cache, Device, DeviceKind, Machine, Node};

/// The drawing: a tree of nodes, each with its caches, devices and further memory, and tables of distances,
/// bandwidths and latencies where they are known.
impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory: u64 = self.nodes.iter().map(|node| node.bytes).sum();
        writeln!(out, "machine: {}, {}", count(self.nodes.len(), "node"), bytes(memory))?;
        let branches = self.branches();
        for (at, (title, leaves)) in branches.iter().enumerate() {
            let is_last = at + 1 == branches.len();
            writeln!(out, "{}{title}", if is_last { "└─ " } else { "├─ " })?;
            for (at, leaf) in leaves.iter().enumerate() {
                let stem = if is_last { "   " } else { "│  " };
                writeln!(
                    out,
                    "{stem}{}{leaf}",
                    if at + 1 == leaves.len() { "└─ " } else { "├─ " }
                )?;
            }
        }
        self.draw_distances(out)?;
        self.draw_accesses(out)
    }
}

type Branch = (String, Vec<String>);

impl Machine {
    /// The nodes with what is next to them, then devices that are next to no node more than to another.
    fn branches(&self) -> Vec<Branch> {
        let mut branches: Vec<Branch> = self
            .nodes
            .iter()
            .filter(|node| self.leads(node))
            .map(|node| self.branch(node))
            .collect();
        let homeless = self.useful_devices().filter(|device| !self.has_home(device));
        branches.extend(homeless.map(|device| (draw_device(device), Vec::new())));
        branches
    }

    fn branch(&self, node: &Node) -> Branch {
        // A cache is shown once: memory that is next to more CPUs than another node's is next to their caches, too.
        let is_narrower = |other: &&Node| other.cpus.len() < node.cpus.len();
        let narrower: Vec<_> = self.nodes.iter().filter(is_narrower).collect();
        let is_new = |cache: &&Cache| !narrower.iter().any(|other| other.caches.contains(*cache));
        let caches =
            node.caches.iter().filter(is_new).map(|cache| {
                format!("L{} {}: {}", cache.level, bytes(cache.bytes), cpus(&cache.cpus))
            });
        let beside = self.nodes.iter().filter(|other| other.number != node.number);
        let beside = beside.filter(|other| other.cpus == node.cpus).map(draw_node);
        let devices = self
            .useful_devices()
            .filter(|device| self.has_home(device) && device.nodes.first() == Some(&node.number));
        let leaves = caches.chain(beside).chain(devices.map(draw_device)).collect();
        (format!("{}, {}", draw_node(node), cpus(&node.cpus)), leaves)
    }

    /// True for the first of the nodes that are next to the same CPUs.
    fn leads(&self, node: &Node) -> bool {
        let first = self.nodes.iter().find(|other| other.cpus == node.cpus);
        first.is_some_and(|first| first.number == node.number)
    }

    /// False where a device is next to several nodes with CPUs of their own.
    fn has_home(&self, device: &Device) -> bool {
        let leading = self.nodes.iter().filter(|node| self.leads(node));
        leading.filter(|node| device.nodes.contains(&node.number)).count() == 1
    }

    fn draw_distances(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(distances) = &self.distances else { return Ok(()) };
        write!(out, "\ndistances (10: a node's own memory)\n  from \\ to")?;
        for node in &distances.nodes {
            write!(out, "{node:>5}")?;
        }
        writeln!(out)?;
        for (node, row) in distances.nodes.iter().zip(&distances.rows) {
            write!(out, "  node {node:<4}")?;
            for distance in row {
                write!(out, "{distance:>5}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn draw_accesses(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.accesses.is_empty() {
            writeln!(out, "\nbandwidth and latency")?;
        }
        for access in &self.accesses {
            let bandwidth = access.bandwidth_mib_s.map(|number| format!("{number} MiB/s"));
            let latency = access.latency_ns.map(|number| format!("{number} ns"));
            let values: Vec<_> = bandwidth.into_iter().chain(latency).collect();
            let values = values.join(", ");
            writeln!(out, "  {} to node {}: {values}", cpus(&access.cpus), access.node)?;
        }
        Ok(())
    }
}

fn draw_node(node: &Node) -> String {
    format!("node {}: {} {}", node.number, bytes(node.bytes), node.tier)
}

fn draw_device(device: &Device) -> String {
    let kind = match device.kind {
        DeviceKind::Network => "network",
        DeviceKind::Rdma => "RDMA",
        DeviceKind::Storage => "storage",
        DeviceKind::Gpu => "GPU",
        DeviceKind::Coprocessor => "coprocessor",
        DeviceKind::Dma => "DMA",
        DeviceKind::Other => "other",
    };
    match &device.pci {
        Some(pci) if *pci != device.name => format!("{}: {kind}, {pci}", device.name),
        _ => format!("{}: {kind}", device.name),
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// "CPU 3", "CPUs 0-3,8", "no CPUs".
fn cpus(numbers: &[u32]) -> String {
    match numbers {
        [] => "no CPUs".into(),
        [only] => format!("CPU {only}"),
        _ => format!("CPUs {}", ranges(numbers)),
    }
}

/// Rising numbers as the kernel writes lists: "0-3,8".
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|left, right| left + 1 == *right);
    let texts: Vec<_> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run.first().map_or_else(String::new, u32::to_string),
        })
        .collect();
    texts.join(",")
}

/// A size in the largest unit that leaves something before the point; one digit after it, where that says more.
fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return format!("{bytes} B");
    };
    let tenths = ((bytes >> (shift - 4)) * 10) >> 4;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, cpus, ranges};

    #[test]
    fn lists_are_written_as_the_kernel_does() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[]), "");
        assert_eq!((cpus(&[]), cpus(&[7])), ("no CPUs".into(), "CPU 7".into()));
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(64 << 30), "64 GiB");
        assert_eq!(bytes(25_276_502_016), "23.5 GiB");
        assert_eq!(bytes(1 << 50), "1024 TiB");
    }
}
