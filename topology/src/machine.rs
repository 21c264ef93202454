//! A machine in plain data, and the questions put to it.
//!
//! CPUs and nodes are the kernel's numbers throughout, in rising order where nothing else is said.

use serde::Serialize;

use crate::Error;

/// A machine, or the part of it that this process may use: hwloc leaves out CPUs and nodes that the
/// process's cpuset does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Every NUMA node; at least one.
    pub nodes: Vec<Node>,
    /// The nodes again, by kind of memory: the fastest first, where bandwidths are known.
    pub tiers: Vec<Tier>,
    /// Devices below a bus, by name.
    pub devices: Vec<Device>,
    /// How far nodes are from each other; none where the firmware does not tell, as with one node.
    pub distances: Option<Distances>,
    /// How fast CPUs reach nodes.  Firmware tells it through its HMAT table, seldom for all pairs.
    pub accesses: Vec<Access>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The kernel's number.
    pub number: u32,
    /// Memory, in bytes.
    pub bytes: u64,
    /// Kind of memory: hwloc's subtype, such as `DRAM`, `HBM`, `CXL-DRAM` or `NVM`.  Where hwloc does not
    /// say, as where all memory is alike: `DRAM`.
    pub tier: String,
    /// CPUs that are next to it.  Memory without CPUs of its own (HBM, CXL) is next to those that the
    /// firmware names, and to all where it names none.
    pub cpus: Vec<u32>,
    /// The last-level caches of these CPUs.
    pub caches: Vec<Cache>,
}

/// A last-level cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 3 for an L3.
    pub level: u32,
    /// Size, in bytes.
    pub bytes: u64,
    /// CPUs that share it.
    pub cpus: Vec<u32>,
}

/// Nodes with one kind of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// As [`Node::tier`].
    pub name: String,
    /// Numbers of the nodes.
    pub nodes: Vec<u32>,
}

/// What a device is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A network interface: `eth0`.
    Network,
    /// An RDMA device: `mlx5_0`.
    Rdma,
    /// A disk: `nvme0n1`.
    Storage,
    /// A display or compute GPU: `card0`.
    Gpu,
    /// Another processor: `cuda0`.
    Coprocessor,
    /// A DMA engine: `dma0chan0`.
    Dma,
    /// Anything else on a PCI bus.
    Other,
}

/// A device and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// The kernel's name, or the PCI address of one that has no name.
    pub name: String,
    /// What it is for.
    pub kind: DeviceKind,
    /// PCI address, `domain:bus:device.function` in hexadecimal.
    pub pci: Option<String>,
    /// The nearest nodes, ordinary memory first.  All nodes where the machine does not tell.
    pub nodes: Vec<u32>,
    /// The nearest CPUs.
    pub cpus: Vec<u32>,
}

/// How far nodes are from each other, as the firmware's SLIT table has it: 10 is a node's own memory, 20
/// is twice as far.  Source: ACPI 6.5, section 5.2.17.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Distances {
    /// Numbers of the nodes, rising, as rows and columns are.
    pub nodes: Vec<u32>,
    /// A row for each node that asks, in it a number for each that is asked.
    pub rows: Vec<Vec<u64>>,
}

/// How fast some CPUs reach a node.  Source: ACPI 6.5, section 5.2.28 (HMAT), read and write averaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// CPUs that ask.
    pub cpus: Vec<u32>,
    /// The node that is asked.
    pub node: u32,
    /// In MiB a second.
    pub bandwidth_mib_s: Option<u64>,
    /// In nanoseconds.
    pub latency_ns: Option<u64>,
}

impl Machine {
    /// The device of this name (`eth0`, `mlx5_0`, `nvme0n1`) or this PCI address (`0000:3b:00.0`; in
    /// domain 0 also `3b:00.0`).
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] names the devices that there are.
    pub fn device(&self, name: &str) -> Result<&Device, Error> {
        let address = name.to_ascii_lowercase();
        let in_domain_zero = format!("0000:{address}");
        let has_address = |device: &&Device| {
            device.pci.as_ref().is_some_and(|pci| *pci == address || *pci == in_domain_zero)
        };
        let named = self.devices.iter().find(|device| device.name == name);
        named.or_else(|| self.devices.iter().find(has_address)).ok_or_else(|| Error::NoDevice {
            asked: name.into(),
            known: self.useful_devices().map(|device| device.name.clone()).collect(),
        })
    }

    /// Devices that move data, that is without bridges, timers and the like.
    pub(crate) fn useful_devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| device.kind != DeviceKind::Other)
    }

    /// Nodes of a tier: of `HBM`, or of `CXL`, which is also `CXL-DRAM` and `CXL-NVM`.
    ///
    /// # Errors
    ///
    /// [`Error::NoTier`] names the tiers that there are.
    pub fn nodes_of_tier(&self, name: &str) -> Result<Vec<u32>, Error> {
        let is_of = |tier: &&Tier| {
            let stem = tier.name.split('-').next().unwrap_or_default();
            tier.name.eq_ignore_ascii_case(name) || stem.eq_ignore_ascii_case(name)
        };
        let mut nodes: Vec<_> =
            self.tiers.iter().filter(is_of).flat_map(|tier| tier.nodes.clone()).collect();
        nodes.sort_unstable();
        if nodes.is_empty() {
            let known = self.tiers.iter().map(|tier| tier.name.clone()).collect();
            return Err(Error::NoTier { asked: name.into(), known });
        }
        Ok(nodes)
    }

    /// How far `to` is from `from`: 10 for a node's own memory.  None where it is not known.
    #[must_use]
    pub fn distance(&self, from: u32, to: u32) -> Option<u64> {
        let distances = self.distances.as_ref()?;
        let place = |node| distances.nodes.iter().position(|&other| other == node);
        distances.rows.get(place(from)?)?.get(place(to)?).copied()
    }

    /// Bandwidth from a CPU to a node, in MiB a second.  None where it is not known.
    #[must_use]
    pub fn bandwidth(&self, cpu: u32, node: u32) -> Option<u64> {
        self.accesses_from(cpu, node).find_map(|access| access.bandwidth_mib_s)
    }

    /// Latency from a CPU to a node, in nanoseconds.  None where it is not known.
    #[must_use]
    pub fn latency(&self, cpu: u32, node: u32) -> Option<u64> {
        self.accesses_from(cpu, node).find_map(|access| access.latency_ns)
    }

    fn accesses_from(&self, cpu: u32, node: u32) -> impl Iterator<Item = &Access> {
        self.accesses.iter().filter(move |access| access.node == node && access.cpus.contains(&cpu))
    }

    /// The machine as JSON: an object with this type's fields.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("numbers, words and lists of them have a JSON form")
    }
}
