//! Machines that are invented, kept as XML, and real: what is asked of each, and its drawing.

use homenode_topology::{DeviceKind, Error, Machine};

/// Two packages, each with DRAM and HBM; one node of CXL memory; cards and disks at three places.
fn tiers() -> Machine {
    Machine::from_xml(include_str!("machines/tiers.xml")).expect("the file is well-formed")
}

fn invented(description: &str) -> Machine {
    Machine::from_synthetic(description).expect("the description is well-formed")
}

#[test]
fn an_invented_machine_has_its_nodes_and_cpus() {
    let machine = invented("node:3 core:2 pu:1");
    let cpus: Vec<_> = machine.nodes.iter().map(|node| (node.number, &node.cpus[..])).collect();
    assert_eq!(cpus, [(0, &[0, 1][..]), (1, &[2, 3]), (2, &[4, 5])]);
    assert_eq!((machine.distances, machine.accesses, machine.devices), (None, vec![], vec![]));
}

#[test]
fn caches_stand_at_their_node() {
    let machine = invented("node:2 l3:2(size=1048576) l2:1 core:2 pu:1");
    let caches: Vec<_> = machine.nodes[1]
        .caches
        .iter()
        .map(|cache| (cache.level, cache.bytes, &cache.cpus[..]))
        .collect();
    assert_eq!(caches, [(3, 1 << 20, &[4, 5][..]), (3, 1 << 20, &[6, 7])]);
}

#[test]
fn many_nodes_keep_their_numbers() {
    let machine = invented("node:64 pu:16");
    assert_eq!(machine.nodes.len(), 64);
    assert_eq!(machine.nodes[63].cpus, (1008..1024).collect::<Vec<_>>());
}

#[test]
fn a_text_that_describes_nothing_is_an_error() {
    for error in [Machine::from_synthetic("node:x"), Machine::from_xml("<topology/>")] {
        let error = error.expect_err("it describes nothing");
        assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
        assert!(error.to_string().starts_with("hwloc cannot read the "), "{error}");
    }
}

#[test]
fn a_device_is_found_by_name_and_by_address() {
    let machine = tiers();
    for name in ["ens1f0", "mlx5_0", "nvme0n1", "0000:3b:00.0", "3b:00.0", "3B:00.0"] {
        let device = machine.device(name).expect(name);
        assert_eq!(
            (&device.nodes[..], &device.cpus[..]),
            (&[0, 2][..], &[0, 1, 2, 3][..]),
            "{name}"
        );
    }
    let gpu = machine.device("cuda0").expect("the machine has one");
    assert_eq!((gpu.kind, &gpu.nodes[..]), (DeviceKind::Coprocessor, &[1, 3][..]));
    assert_eq!(gpu.pci.as_deref(), Some("0000:af:00.0"));
    assert_eq!(machine.device("ens1f0").map(|device| device.kind), Ok(DeviceKind::Network));
    assert_eq!(machine.device("mlx5_0").map(|device| device.kind), Ok(DeviceKind::Rdma));
}

#[test]
fn a_device_without_a_driver_has_its_address_for_a_name() {
    let machine = tiers();
    let gpu = machine.device("0000:b0:00.0").expect("the machine has one");
    assert_eq!(
        (&gpu.name[..], gpu.kind, &gpu.nodes[..]),
        ("0000:b0:00.0", DeviceKind::Gpu, &[1, 3][..])
    );
}

#[test]
fn a_device_at_no_package_is_next_to_every_node() {
    let machine = tiers();
    assert_eq!(machine.device("sda").map(|disk| disk.nodes.clone()), Ok(vec![0, 1, 2, 3, 4]));
}

#[test]
fn an_unknown_device_is_named_with_those_that_there_are() {
    let error = tiers().device("eth7").expect_err("there is none").to_string();
    assert_eq!(
        error,
        "there is no device \"eth7\": there are 0000:b0:00.0, cuda0, ens1f0, mlx5_0, nvme0n1, sda"
    );
}

#[test]
fn tiers_have_names_and_the_fastest_is_first() {
    let machine = tiers();
    let names: Vec<_> = machine.tiers.iter().map(|tier| &tier.name[..]).collect();
    assert_eq!(names, ["HBM", "DRAM", "CXL-DRAM"]);
    assert_eq!(machine.nodes_of_tier("hbm"), Ok(vec![2, 3]));
    assert_eq!(machine.nodes_of_tier("CXL"), Ok(vec![4]));
    let error = machine.nodes_of_tier("NVM").expect_err("there is none").to_string();
    assert_eq!(error, "there is no memory of tier \"NVM\": there are HBM, DRAM, CXL-DRAM");
}

#[test]
fn bandwidth_latency_and_distance_are_asked_by_number() {
    let machine = tiers();
    assert_eq!(machine.bandwidth(1, 2), Some(400_000));
    assert_eq!((machine.latency(1, 4), machine.latency(5, 4)), (Some(250), Some(270)));
    assert_eq!(machine.bandwidth(5, 2), None);
    assert_eq!((machine.distance(0, 0), machine.distance(0, 1)), (Some(10), Some(21)));
    assert_eq!((machine.distance(4, 3), machine.distance(0, 9)), (Some(30), None));
}

#[test]
fn the_drawing_shows_what_is_next_to_what() {
    assert_eq!(tiers().to_string(), include_str!("machines/tiers.txt"));
}

#[test]
fn the_json_has_every_part() {
    let json: serde_json::Value = serde_json::from_str(&tiers().to_json()).expect("it is JSON");
    assert_eq!(json["nodes"][2]["tier"], "HBM");
    assert_eq!(json["nodes"][4]["bytes"], 137_438_953_472_u64);
    assert_eq!(json["tiers"][0]["nodes"], serde_json::json!([2, 3]));
    let devices = json["devices"].as_array().expect("a list");
    let device = devices.iter().find(|device| device["name"] == "mlx5_0").expect("one is so named");
    assert_eq!((&device["kind"], &device["pci"]), (&"rdma".into(), &"0000:3b:00.0".into()));
    assert_eq!(json["distances"]["rows"][0], serde_json::json!([10, 21, 12, 23, 24]));
    assert_eq!(json["accesses"][0]["bandwidth_mib_s"], 120_000);
}

#[test]
fn this_machine_has_the_nodes_that_the_kernel_tells() {
    let machine = Machine::this().expect("hwloc reads /sys");
    assert!(!machine.nodes.is_empty());
    for node in &machine.nodes {
        assert!(node.bytes > 0, "{node:?}");
        let folder = format!("/sys/devices/system/node/node{}", node.number);
        let has_nodes = std::path::Path::new("/sys/devices/system/node/node0").exists();
        assert!(!has_nodes || std::path::Path::new(&folder).exists(), "there is no {folder}");
    }
    assert!(machine.nodes.iter().any(|node| !node.cpus.is_empty()));
    for device in &machine.devices {
        assert_eq!(machine.device(&device.name).map(|found| &found.name), Ok(&device.name));
        assert!(!device.nodes.is_empty(), "{device:?}");
    }
}
