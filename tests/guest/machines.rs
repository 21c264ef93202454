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

pub(crate) const MACHINES: &[Machine] = &[Machine {
    name: "three nodes",
    options: &["--nodes", "3"],
    cases: &["the_machine_has_nodes.c 3"],
}];
