//! The machines, and the programs that run on each.

/// An emulated machine and the programs to run there.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    /// Options of `vm`.
    pub(crate) options: &'static [&'static str],
    /// A program's source and its arguments, after any variables that it is to be run with.
    pub(crate) cases: &'static [&'static str],
}

pub(crate) const MACHINES: &[Machine] = &[
    Machine {
        name: "three nodes",
        options: &["--nodes", "3"],
        cases: &[
            "the_machine_has_nodes.c 3",
            "rseq_is_libcs.c",
            "objects_do_not_overlap.c",
            "threads_come_and_go.c 200",
            "a_fork_amid_churn_does_not_hang.c 10",
            "handlers_may_allocate.c 2 3 2000",
            "drains_bring_objects_home.c",
            "a_quiet_drain_sees_every_task.c 1",
            "stress_tagged.c -s 5 -t 6 -p -f 200 -q 200 -k 5 -r 200",
            "GLIBC_TUNABLES=glibc.pthread.rseq=0 stress_tagged.c -s 5 -t 6 -p -f 200 -q 200 -k 5 -r 200",
            "overcommit_is_obeyed.c 0",
            "overcommit_is_obeyed.c 1",
            "overcommit_is_obeyed.c 2",
            "a_memory_group_is_enough.c -",
            "few_maps_suffice.c 1000",
            "few_maps_suffice.c 200",
            "fresh_objects_are_on_the_own_node.c",
            "on_peers fresh_objects_are_on_the_own_node.c",
            "what_one_node_made_comes_home_from_all.c",
            "on_peers what_one_node_made_comes_home_from_all.c",
            "a_dead_threads_memory_stays_at_its_node.c",
            "each_cpu_gets_the_nearest_memory.c",
            "a_full_node_spills_to_the_next.c 768",
            "one_node_of_a_cpuset_serves.c -",
            "refused_policies_leave_a_plain_malloc.c -",
            "one_cpu_has_the_only_cache.c -",
            "cpus_may_go_and_come.c",
            "a_cpuset_may_change_under_way.c allowed",
            "a_cpuset_may_change_under_way.c given_back",
            "HOMENODE_POLICY=bind:1 a_bound_heap_is_on_its_node.c",
            "pages_are_where_the_policy_says.c",
            "a_full_node_is_seen.c 1000000",
            "a_full_node_is_seen.c 1000",
            "pages_come_at_the_first_touch.c 0",
            "balanced pages_come_at_the_first_touch.c 0 5",
            "HOMENODE_POLICY=firsttouch pages_come_at_the_first_touch.c 1",
        ],
    },
    Machine {
        name: "eight nodes",
        options: &["--nodes", "8"],
        cases: &[
            "the_machine_has_nodes.c 8",
            "fresh_objects_are_on_the_own_node.c",
            "on_peers fresh_objects_are_on_the_own_node.c",
            "what_one_node_made_comes_home_from_all.c",
            "on_peers what_one_node_made_comes_home_from_all.c",
            "each_cpu_gets_the_nearest_memory.c",
            "stress_tagged.c -s 5 -t 8 -p -f 200 -q 200 -k 5 -r 200",
        ],
    },
    Machine {
        name: "bare node",
        options: &["--nodes", "8", "--bare"],
        cases: &["the_machine_has_nodes.c 8", "each_cpu_gets_the_nearest_memory.c"],
    },
    Machine {
        name: "kernel 6.1",
        options: &["--nodes", "2", "--kernel", "6.1"],
        cases: &[
            "the_machine_has_nodes.c 2",
            "rseq_is_libcs.c",
            "threads_come_and_go.c 200",
            "a_fork_amid_churn_does_not_hang.c 10",
            "drains_bring_objects_home.c",
            "a_quiet_drain_sees_every_task.c 1",
            "stress_tagged.c -s 5 -t 6 -p -f 200 -q 200 -k 5 -r 200",
            "GLIBC_TUNABLES=glibc.pthread.rseq=0 stress_tagged.c -s 5 -t 6 -p -f 200 -q 200 -k 5 -r 200",
            "overcommit_is_obeyed.c 2",
            "a_memory_group_is_enough.c -",
            "few_maps_suffice.c 1000",
            "fresh_objects_are_on_the_own_node.c",
            "cpus_may_go_and_come.c",
            "a_cpuset_may_change_under_way.c allowed",
        ],
    },
];
