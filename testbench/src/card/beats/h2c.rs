//! Host to card: frames into the shell's H2C stream.

use rtl_bridge::axis::Source;
use rtl_bridge::stall::Stall;
use rtl_bridge::verilated::{Input, PortError, Simulation};

/// Host to card.
pub(super) struct H2c {
    pub(super) source: Source,
    pub(super) qid: Input<u16>,
    pub(super) metadata: Input<u32>,
    pub(super) zero_byte: Input<bool>,
}

impl H2c {
    pub(super) fn bind(simulation: &mut Simulation, stall: Stall) -> Result<H2c, PortError> {
        const PREFIX: &str = "s_axis_qdma_h2c_sim_";
        Ok(H2c {
            source: Source::bind(simulation, PREFIX, 0, 1, stall)?,
            qid: simulation.input(&format!("{PREFIX}tuser_qid"))?,
            metadata: simulation.input(&format!("{PREFIX}tuser_mdata"))?,
            zero_byte: simulation.input(&format!("{PREFIX}tuser_zero_byte"))?,
        })
    }

    /// The next frame, with its side fields, which hold for all of it.
    pub(super) fn load(&mut self, simulation: &mut Simulation, frame: models::stream::H2cFrame) -> Vec<u8> {
        simulation.set(self.qid, frame.qid.0);
        simulation.set(self.metadata, frame.metadata);
        simulation.set(self.zero_byte, frame.data.is_empty());
        self.source.load(frame.data, frame.err)
    }
}
