//! Machines that are not here, from the texts that their kernels would give.

extern crate std;

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::machine::{File, Machine, Texts};
use crate::base::config::NODES_MAX;
use crate::base::ids::{KernelNode, NodeIndex};
use crate::base::nodemask::NodeMask;

/// What a kernel tells of its nodes.
#[derive(Default)]
struct Told {
    has_memory: &'static str,
    online: &'static str,
    distances: Vec<(u32, String)>,
}

impl Texts for Told {
    fn read<'a>(&self, file: File, buffer: &'a mut [u8]) -> &'a [u8] {
        let text = match file {
            File::HasMemory => self.has_memory,
            File::Online => self.online,
            File::Distance(node) => {
                let row = self.distances.iter().find(|(of, _)| *of == node.0);
                row.map_or("", |(_, row)| row)
            }
        };
        let len = text.len().min(buffer.len());
        buffer[..len].copy_from_slice(&text.as_bytes()[..len]);
        &buffer[..len]
    }
}

fn rows(rows: &[(u32, &str)]) -> Vec<(u32, String)> {
    rows.iter().map(|&(node, row)| (node, format!("{row}\n"))).collect()
}

fn machine(told: &Told) -> Box<Machine> {
    machine_where(told, None)
}

fn machine_where(told: &Told, allowed: Option<&[u32]>) -> Box<Machine> {
    let mut machine = Box::new(Machine::one());
    let allowed = allowed.map(|nodes| nodes.iter().copied().collect::<NodeMask>());
    machine.read(told, &mut [0; 2048], |mask| {
        *mask = allowed.unwrap_or_default();
        allowed.is_some()
    });
    machine
}

fn kernel_numbers(machine: &Machine) -> Vec<u32> {
    (0..machine.count()).map(|node| machine.kernel(NodeIndex::new(node)).0).collect()
}

/// The nodes with memory by their distance from the one of a number, by the kernel's numbers.
fn order(machine: &Machine, from: u32) -> Vec<u32> {
    let from = machine.index_of(KernelNode(from)).expect("a node of the machine");
    let mut left = machine.memory();
    let mut order = Vec::new();
    while let Some(next) = machine.nearest(from, left) {
        left &= !(1 << next.get());
        order.push(machine.kernel(next).0);
    }
    order
}

#[test]
fn a_machine_of_one_node_is_asked_one_file() {
    let machine = machine(&Told { has_memory: "0\n", ..Told::default() });
    assert_eq!(kernel_numbers(&machine), [0]);
    assert_eq!(machine.memory(), 1);
}

#[test]
fn two_nodes_are_each_other_s_next() {
    let told = Told {
        has_memory: "0-1\n",
        online: "0-1\n",
        distances: rows(&[(0, "10 21"), (1, "21 10")]),
    };
    let machine = machine(&told);
    assert_eq!(order(&machine, 0), [0, 1]);
    assert_eq!(order(&machine, 1), [1, 0]);
    assert_eq!(machine.distance(NodeIndex::new(0), NodeIndex::new(1)), 21);
}

#[test]
fn eight_nodes_in_two_groups_spill_into_their_own_group_first() {
    let row = |node: u32| {
        let to = |other: u32| match (other == node, other / 4 == node / 4) {
            (true, _) => "10",
            (_, true) => "16",
            _ => "28",
        };
        (node, (0..8).map(to).collect::<Vec<_>>().join(" "))
    };
    let told = Told { has_memory: "0-7\n", online: "0-7\n", distances: (0..8).map(row).collect() };
    let machine = machine(&told);
    assert_eq!(order(&machine, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(order(&machine, 5), [5, 6, 7, 4, 0, 1, 2, 3]);
}

#[test]
fn numbers_with_a_hole_keep_their_distances() {
    let told = Told {
        has_memory: "0,2\n",
        online: "0,2\n",
        distances: rows(&[(0, "10 40"), (2, "40 10")]),
    };
    let machine = machine(&told);
    assert_eq!(kernel_numbers(&machine), [0, 2]);
    assert_eq!(order(&machine, 2), [2, 0]);
    assert_eq!(machine.distance(NodeIndex::new(1), NodeIndex::new(0)), 40);
    assert!(machine.index_of(KernelNode(1)).is_none());
}

#[test]
fn node_0_may_be_offline() {
    let told = Told {
        has_memory: "1-2\n",
        online: "1-2\n",
        distances: rows(&[(1, "10 20"), (2, "20 10")]),
    };
    let machine = machine(&told);
    assert_eq!(kernel_numbers(&machine), [1, 2]);
    assert_eq!(order(&machine, 2), [2, 1]);
}

#[test]
fn node_0_may_be_offline_on_a_machine_of_one_other() {
    let machine = machine(&Told { has_memory: "3\n", ..Told::default() });
    assert_eq!(kernel_numbers(&machine), [3]);
}

#[test]
fn cpus_of_a_node_without_memory_use_the_nearest() {
    let told = Told {
        has_memory: "0,2\n",
        online: "0-2\n",
        distances: rows(&[(0, "10 20 30"), (1, "20 10 12"), (2, "30 12 10")]),
    };
    let machine = machine(&told);
    assert_eq!(machine.memory(), 0b101);
    assert_eq!(order(&machine, 1), [2, 0]);
}

#[test]
fn a_node_without_cpus_is_the_last_resort_where_it_is_far() {
    let told = Told {
        has_memory: "0-2\n",
        online: "0-2\n",
        distances: rows(&[(0, "10 20 30"), (1, "20 10 30"), (2, "30 30 10")]),
    };
    let machine = machine(&told);
    assert_eq!(order(&machine, 0), [0, 1, 2]);
    assert_eq!(order(&machine, 1), [1, 0, 2]);
}

#[test]
fn sixty_four_nodes_are_told_apart_and_the_rest_is_left_out() {
    let told = Told { has_memory: "0-63\n", online: "0-63\n", distances: Vec::new() };
    let machine = machine(&told);
    assert_eq!(machine.count(), NODES_MAX);
    assert_eq!(machine.memory(), u64::MAX);
    assert_eq!(order(&machine, 62)[..4], [62, 63, 0, 1]);
    let told = Told { has_memory: "0-199\n", online: "0-199\n", distances: Vec::new() };
    assert_eq!(kernel_numbers(&machine_where(&told, None)), Vec::from_iter(0..64));
}

#[test]
fn memory_past_the_last_node_told_apart_leaves_those_before_it() {
    let told = Told { has_memory: "100-101\n", online: "0-101\n", distances: Vec::new() };
    assert_eq!(machine(&told).memory(), u64::MAX);
}

#[test]
fn rows_that_are_cut_short_count_for_nothing() {
    let told = Told {
        has_memory: "0-2\n",
        online: "0-2\n",
        distances: rows(&[(0, "10 99"), (1, "x"), (2, "30 15 10")]),
    };
    let machine = machine(&told);
    assert_eq!(order(&machine, 0), [0, 1, 2]);
    assert_eq!(machine.distance(NodeIndex::new(0), NodeIndex::new(1)), 20);
    assert_eq!(order(&machine, 2), [2, 1, 0]);
}

#[test]
fn a_machine_that_hides_its_files_has_the_nodes_that_are_allowed() {
    let machine = machine_where(&Told::default(), Some(&[1, 4]));
    assert_eq!(kernel_numbers(&machine), [1, 4]);
    assert_eq!(machine.memory(), 0b11);
    assert_eq!(kernel_numbers(&machine_where(&Told::default(), None)), [0]);
}
