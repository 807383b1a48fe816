//! The test top `rtl/bridge_probe.sv`, by the run-time build, with its clocks.
#![allow(dead_code)] // each test file uses its part

use std::path::PathBuf;

use rtl_bridge::clock::{Clocks, Timing};
use rtl_bridge::tops::{self, Library, TopSpec};
use rtl_bridge::verilated::{Options, Simulation, Stopped};

/// Numbers of the clocks.
pub const STREAM: usize = 0;
pub const LITE: usize = 1;

pub fn spec() -> TopSpec {
    TopSpec::new("bridge_probe", tops::crate_dir().join("tests/rtl/bridge_probe.f"))
}

pub fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("verilated")
}

pub fn library() -> Library {
    tops::build_in(&cache(), &spec(), &|_, _, _| {}).expect("the probe builds").0
}

/// A probe out of reset, assertions on.
pub struct Probe {
    pub simulation: Simulation,
    pub clocks: Clocks,
}

impl Probe {
    pub fn start(options: &Options) -> Probe {
        let simulation = library().start(options).expect("starts");
        let mut probe = Probe { simulation, clocks: Clocks::new() };
        probe.add_clocks();
        probe.reset();
        probe
    }

    pub fn add_clocks(&mut self) {
        let [stream, lite] = ["stream_clk", "lite_clk"].map(|name| self.simulation.input(name).expect("a port"));
        self.clocks.add(&mut self.simulation, stream, Timing { num: 4000, den: 1, phase_ps: 4000 });
        self.clocks.add(&mut self.simulation, lite, Timing { num: 102_400, den: 33, phase_ps: 500 });
    }

    pub fn reset(&mut self) {
        let resets = ["stream_rstn", "lite_rstn"].map(|name| self.simulation.input::<bool>(name).expect("a port"));
        for pin in resets {
            self.simulation.set(pin, false);
        }
        self.run(10).expect("nothing happens in reset");
        for pin in resets {
            self.simulation.set(pin, true);
        }
        self.run(2).expect("nor after it");
        self.simulation.assertions(true);
    }

    /// `edges` edges of any clock.
    pub fn run(&mut self, edges: usize) -> Result<(), Box<Stopped>> {
        for _ in 0..edges {
            let edge = self.clocks.begin(&mut self.simulation)?;
            self.clocks.commit(&mut self.simulation, edge)?;
        }
        Ok(())
    }

    pub fn drive<T: rtl_bridge::verilated::Value>(&mut self, name: &str, value: T) {
        let pin = self.simulation.input(name).expect("a port");
        self.simulation.set(pin, value);
    }

    pub fn read<T: rtl_bridge::verilated::Value>(&self, name: &str) -> T {
        self.simulation.get(self.simulation.output(name).expect("a port"))
    }
}
