//! Fills a [`Machine`] from hwloc.

use std::fmt::Display;
use std::ops::Deref;

use hwlocality::Topology;
use hwlocality::bitmap::Bitmap;
use hwlocality::memory::attribute::{Initiator, MemoryAttribute};
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::{ObjectAttributes, PCIDeviceAttributes};
use hwlocality::object::distance::DistancesKind;
use hwlocality::object::types::{OSDeviceType, ObjectType};
use hwlocality::topology::builder::{TopologyBuilder, TypeFilter};

use crate::{Access, Cache, Device, DeviceKind, Distances, Error, Machine, Node, Tier};

/// Kind of memory where hwloc names none.
const ORDINARY: &str = "DRAM";
/// Last-level first.
const CACHES: [(ObjectType, u32); 5] = [
    (ObjectType::L5Cache, 5),
    (ObjectType::L4Cache, 4),
    (ObjectType::L3Cache, 3),
    (ObjectType::L2Cache, 2),
    (ObjectType::L1Cache, 1),
];

impl Machine {
    /// The machine that this process runs on.  hwloc's variables hold, so that `HWLOC_XMLFILE` and
    /// `HWLOC_SYNTHETIC` put another one in its place.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] where hwloc finds nothing, as without /sys and /proc.
    pub fn this() -> Result<Self, Error> {
        build("this machine", Topology::builder())
    }

    /// A machine invented by hwloc's synthetic description, such as `node:3 core:2 pu:1`.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] where hwloc does not understand it.
    pub fn from_synthetic(description: &str) -> Result<Self, Error> {
        let what = "the synthetic description";
        build(what, Topology::builder().from_synthetic(description).map_err(unreadable(what))?)
    }

    /// A machine kept as XML by `lstopo machine.xml`.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] where hwloc does not understand it.
    pub fn from_xml(xml: &str) -> Result<Self, Error> {
        let what = "the XML";
        build(what, Topology::builder().from_xml(xml).map_err(unreadable(what))?)
    }
}

fn unreadable<Why: Display>(what: &'static str) -> impl Fn(Why) -> Error {
    move |why| Error::Unreadable { what, why: why.to_string() }
}

fn build(what: &'static str, builder: TopologyBuilder) -> Result<Machine, Error> {
    // All devices: hwloc takes some that are asked for by name, as software RDMA, for unimportant.
    let builder = builder.with_io_type_filter(TypeFilter::KeepAll).map_err(unreadable(what))?;
    Ok(machine(&builder.build().map_err(unreadable(what))?))
}

fn machine(topology: &Topology) -> Machine {
    let mut nodes: Vec<_> = topology
        .objects_with_type(ObjectType::NUMANode)
        .map(|object| node(topology, object))
        .collect();
    nodes.sort_by_key(|node| node.number);
    let accesses = accesses(topology);
    let mut devices: Vec<_> = topology
        .os_devices()
        .chain(topology.pci_devices().filter(|object| object.io_children().len() == 0))
        .filter_map(|object| device(object, &nodes))
        .collect();
    devices.sort_by(|left, right| left.name.cmp(&right.name));
    Machine {
        tiers: tiers(&nodes, &accesses),
        distances: distances(topology),
        nodes,
        devices,
        accesses,
    }
}

/// The kernel's numbers in a set of CPUs or nodes.
fn numbers(set: Option<impl Deref<Target = impl AsRef<Bitmap>>>) -> Vec<u32> {
    let number = |index| u32::try_from(usize::from(index)).ok();
    set.map_or_else(Vec::new, |set| (*set).as_ref().iter_set().filter_map(number).collect())
}

fn number_of(object: &TopologyObject) -> u32 {
    object.os_index().and_then(|index| u32::try_from(index).ok()).unwrap_or(0)
}

fn node(topology: &Topology, object: &TopologyObject) -> Node {
    let cpus = numbers(object.cpuset());
    let subtype = object.subtype().map(|name| name.to_string_lossy().into_owned());
    let bytes = match object.attributes() {
        Some(ObjectAttributes::NUMANode(node)) => node.local_memory().map_or(0, u64::from),
        _ => 0,
    };
    Node {
        number: number_of(object),
        bytes,
        tier: subtype.unwrap_or_else(|| ORDINARY.into()),
        caches: caches(topology, &cpus),
        cpus,
    }
}

/// Of the highest level that there is, the caches of `cpus`.
fn caches(topology: &Topology, cpus: &[u32]) -> Vec<Cache> {
    let of_level = |(kind, level)| -> Vec<Cache> {
        let objects = topology.objects_with_type(kind);
        let caches = objects.map(|object| Cache {
            level,
            bytes: match object.attributes() {
                Some(ObjectAttributes::Cache(cache)) => cache.size().map_or(0, u64::from),
                _ => 0,
            },
            cpus: numbers(object.cpuset()),
        });
        caches.filter(|cache| cache.cpus.iter().all(|cpu| cpus.contains(cpu))).collect()
    };
    CACHES.into_iter().map(of_level).find(|caches| !caches.is_empty()).unwrap_or_default()
}

fn device(object: &TopologyObject, nodes: &[Node]) -> Option<Device> {
    let pci = match object.attributes()? {
        ObjectAttributes::PCIDevice(pci) => Some(pci),
        _ => object.ancestors().find_map(|above| match above.attributes() {
            Some(ObjectAttributes::PCIDevice(pci)) => Some(pci),
            _ => None,
        }),
    };
    let (kind, name) = match object.attributes()? {
        ObjectAttributes::OSDevice(device) => (kind(device.device_type()), object.name()),
        _ => (kind_on_bus(pci?.class_id()), None),
    };
    let address = pci.map(address);
    let name = name.map(|name| name.to_string_lossy().into_owned()).or_else(|| address.clone())?;
    let place = object.first_non_io_ancestor();
    let cpus = numbers(place.and_then(TopologyObject::cpuset));
    let near = numbers(place.and_then(TopologyObject::nodeset));
    Some(Device { name, kind, pci: address, nodes: nearest(&near, &cpus, nodes), cpus })
}

/// Of the nodes that are local to the device's place, those that are local to nothing wider; ordinary memory
/// first.
fn nearest(near: &[u32], cpus: &[u32], nodes: &[Node]) -> Vec<u32> {
    let mut near: Vec<_> = nodes.iter().filter(|node| near.contains(&node.number)).collect();
    let is_within = |node: &&Node| node.cpus.iter().all(|cpu| cpus.contains(cpu));
    if near.iter().any(is_within) {
        near.retain(is_within);
    }
    near.sort_by_key(|node| (node.tier != ORDINARY, node.number));
    near.iter().map(|node| node.number).collect()
}

fn address(pci: &PCIDeviceAttributes) -> String {
    let (domain, bus) = (pci.domain(), pci.bus_id());
    format!("{domain:04x}:{bus:02x}:{:02x}.{:x}", pci.bus_device(), pci.function())
}

fn kind(kind: OSDeviceType) -> DeviceKind {
    match kind {
        OSDeviceType::Storage => DeviceKind::Storage,
        OSDeviceType::GPU => DeviceKind::Gpu,
        OSDeviceType::Network => DeviceKind::Network,
        OSDeviceType::OpenFabrics => DeviceKind::Rdma,
        OSDeviceType::DMA => DeviceKind::Dma,
        OSDeviceType::CoProcessor => DeviceKind::Coprocessor,
        _ => DeviceKind::Other,
    }
}

/// By the PCI class of a device without a driver's name.  Source: PCI Code and ID Assignment, revision 1.15.
fn kind_on_bus(class: u16) -> DeviceKind {
    match (class >> 8, class) {
        (_, 0x0207 | 0x0c06) => DeviceKind::Rdma,
        (0x01, _) => DeviceKind::Storage,
        (0x02, _) => DeviceKind::Network,
        (0x03, _) => DeviceKind::Gpu,
        (0x0b | 0x12, _) => DeviceKind::Coprocessor,
        _ => DeviceKind::Other,
    }
}

fn distances(topology: &Topology) -> Option<Distances> {
    let kind = DistancesKind::MEANS_LATENCY;
    let all = topology.distances_with_type(Some(kind), ObjectType::NUMANode).ok()?;
    let matrix = all.first()?;
    let mut order: Vec<_> = matrix.objects().flatten().map(number_of).zip(0..).collect();
    order.sort_unstable();
    let values = matrix.distances();
    let row = |from: usize| -> Option<Vec<u64>> {
        let cell = |&(_, to): &(u32, usize)| values.get(from * order.len() + to).copied();
        order.iter().map(cell).collect()
    };
    let rows = order.iter().map(|&(_, from)| row(from)).collect::<Option<_>>()?;
    Some(Distances { nodes: order.into_iter().map(|(node, _)| node).collect(), rows })
}

fn accesses(topology: &Topology) -> Vec<Access> {
    let mut found: Vec<Access> = Vec::new();
    for object in topology.objects_with_type(ObjectType::NUMANode) {
        let node = number_of(object);
        for (cpus, bandwidth) in values(MemoryAttribute::bandwidth(topology), object) {
            let bandwidth_mib_s = Some(bandwidth);
            found.push(Access { cpus, node, bandwidth_mib_s, latency_ns: None });
        }
        for (cpus, latency) in values(MemoryAttribute::latency(topology), object) {
            let latency_ns = Some(latency);
            let known = found.iter_mut().find(|known| known.node == node && known.cpus == cpus);
            match known {
                Some(access) => access.latency_ns = latency_ns,
                None => found.push(Access { cpus, node, bandwidth_mib_s: None, latency_ns }),
            }
        }
    }
    found.sort_by(|left, right| (left.node, &left.cpus).cmp(&(right.node, &right.cpus)));
    found
}

/// The values of an attribute of a node, with the CPUs that it has them for.
fn values(attribute: MemoryAttribute<'_>, node: &TopologyObject) -> Vec<(Vec<u32>, u64)> {
    // hwloc has an error for "none".
    let (initiators, values) = attribute.initiators(node).unwrap_or_default();
    let cpus = |initiator: &Initiator<'_>| match initiator {
        Initiator::CpuSet(set) => numbers(Some(&**set)),
        Initiator::Object(object) => numbers(object.cpuset()),
    };
    initiators.iter().map(cpus).zip(values).collect()
}

fn tiers(nodes: &[Node], accesses: &[Access]) -> Vec<Tier> {
    let mut tiers: Vec<Tier> = Vec::new();
    for node in nodes {
        match tiers.iter_mut().find(|tier| tier.name == node.tier) {
            Some(tier) => tier.nodes.push(node.number),
            None => tiers.push(Tier { name: node.tier.clone(), nodes: vec![node.number] }),
        }
    }
    let best = |tier: &Tier| {
        let into = accesses.iter().filter(|access| tier.nodes.contains(&access.node));
        into.filter_map(|access| access.bandwidth_mib_s).max()
    };
    tiers.sort_by_key(|tier| std::cmp::Reverse(best(tier)));
    tiers
}
